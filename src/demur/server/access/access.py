"""Who asks, and what they may do.

A program brings its key as `Authorization: Bearer KEY`. A page brings the cookie of its login and, where it changes
something, the login's CSRF token in a header. Where no keys are asked for the service is for this machine alone, and
what comes from elsewhere, or from the page of another site in a browser here, is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from dataclasses import dataclass
from typing import NoReturn

from fastapi import Request

from demur.server.access import origins
from demur.server.access.cookies import token_in
from demur.server.access.key_ring import KeyRing
from demur.server.access.limits import UNLIMITED, Limits
from demur.server.errors import ApiError
from demur.store.service import ApiKey, Login, ServiceStore
from demur.store.service.keys import ROLES

CSRF_HEADER = "x-demur-csrf"
_LONGEST_SECRET = 200


@dataclass(frozen=True)
class Caller:
    """Who a request comes from."""

    id: str | None
    """The id of their API key; None where no keys are asked for."""
    name: str
    roles: frozenset[str]
    limits: Limits = UNLIMITED

    def may(self, role: str) -> bool:
        """Whether they have a role; who administers may do all."""
        return role in self.roles or "admin" in self.roles


ANYBODY = Caller(None, "anybody", frozenset(ROLES))
"""Whoever reaches a service that listens on this machine alone, and asks for no keys."""


async def allowed(request: Request, *roles: str) -> Caller:
    """Who asks; raises ApiError where they may not do what any of the roles allows."""
    access: Access = request.app.state.access
    caller = await access.caller(request)
    request.state.key = caller.id
    if not any(map(caller.may, roles)):
        raise ApiError(403, f"this key does not have the role {' or '.join(map(repr, roles))}", code="role_missing")
    return caller


class Access:
    """The keys and logins of a service."""

    def __init__(self, store: ServiceStore | None, *, require_keys: bool = False) -> None:
        self.store, self.ring = store, KeyRing(store, required=require_keys)

    async def caller(self, request: Request) -> Caller:
        """Who asks; raises ApiError where that is not known."""
        keys = await self.ring.read()
        if not keys.asked_for:
            origins.refuse_strangers(request)
            return ANYBODY
        told = request.headers.get("authorization")
        if told is None:
            return await self._of_login(request)
        key = keys.of_secret(_secret_in(told))
        if key is None:
            _unknown("there is no such key, or it was revoked", "invalid_api_key")
        return self._called(key)

    async def key_of(self, secret: str) -> ApiKey | None:
        """The key of a secret, for who logs in with it."""
        keys = await self.ring.read()
        return keys.of_secret(secret) if 0 < len(secret) <= _LONGEST_SECRET else None

    async def login(self, request: Request) -> tuple[Login, ApiKey] | None:
        """The login whose cookie a request brings, and its key; None where there is none that holds."""
        token = token_in(request)
        if self.store is None or not token:
            return None
        login = await asyncio.to_thread(self.store.logins.find, token, time.time_ns() // 1_000_000)
        key = None if login is None else (await self.ring.read()).of_id(login.key)
        return None if login is None or key is None else (login, key)

    async def _of_login(self, request: Request) -> Caller:
        known = await self.login(request)
        if known is None:
            _unknown("this needs a key: send `Authorization: Bearer KEY`, or log in at /login", "missing_api_key")
        login, key = known
        if request.method not in origins.HARMLESS:
            origins.refuse_other_sites(request)
            check_csrf(request, login)
        return self._called(key)

    def _called(self, key: ApiKey) -> Caller:
        self.ring.used(key)
        return Caller(key.key, key.name, frozenset(key.roles), Limits.of(key.limits))


def check_csrf(request: Request, login: Login) -> None:
    """Raise unless a request brings the token of its login, which no page of another site can know."""
    brought = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(brought.encode(), login.csrf.encode()):
        raise ApiError(403, f"the header {CSRF_HEADER} does not belong to this login", code="csrf_missing")


def _secret_in(told: str) -> str:
    kind, _, secret = told.partition(" ")
    secret = secret.strip()
    if kind.lower() != "bearer" or not 0 < len(secret) <= _LONGEST_SECRET:
        _unknown("keys come as `Authorization: Bearer KEY`", "invalid_api_key")
    return secret


def _unknown(message: str, code: str) -> NoReturn:
    raise ApiError(401, message, code=code, headers={"WWW-Authenticate": "Bearer"})
