"""Logging in to the pages with a key: a cookie for some hours, and the token that goes with whatever a page changes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from demur.server.access import origins
from demur.server.access.access import Access, check_csrf
from demur.server.access.cookies import drop_cookie, set_cookie, token_in
from demur.server.access.failures import Failures
from demur.server.api.bodies import read_body
from demur.server.api.description import described
from demur.server.api.written import JsonReply
from demur.server.errors import ApiError, busy
from demur.store.service import ApiKey, Login

HOURS = 12
"""A login holds so long."""
_MOST_BYTES = 4_096
router = APIRouter()


class LoginRequest(BaseModel):
    """Who wants to log in."""

    model_config = ConfigDict(extra="forbid")
    key: StrictStr = Field(min_length=1, max_length=200, description="An API key.")


@router.post("/login", openapi_extra=described(LoginRequest))
async def log_in(request: Request) -> Response:
    """Take a key, and give a cookie for it."""
    origins.refuse_other_sites(request)
    access: Access = request.app.state.access
    failures: Failures = request.app.state.failed_logins
    address = request.client.host if request.client is not None else ""
    if wait := failures.wait(address):
        raise busy("too many keys were tried that are none", wait, "too_many_logins")
    body = await read_body(request, LoginRequest, _MOST_BYTES)
    key = await access.key_of(body.key.strip())
    if key is None or access.store is None:
        failures.add(address)
        raise ApiError(401, "there is no such key, or it was revoked", code="invalid_api_key", param="key")
    now = time.time_ns() // 1_000_000
    await asyncio.to_thread(access.store.logins.forget, now)
    login, token = await asyncio.to_thread(access.store.logins.begin, key.key, now + HOURS * 3_600_000)
    access.ring.used(key)
    response = JsonReply(_told(login, key))
    set_cookie(request, response, token, HOURS * 3600)
    return response


@router.get("/login/state")
async def state(request: Request) -> dict[str, Any]:
    """Whether keys are asked for, and who is logged in; a page learns its CSRF token here."""
    access: Access = request.app.state.access
    keys = await access.ring.read()
    if not keys.asked_for:
        origins.refuse_strangers(request)
        return {"keys_asked_for": False, "logged_in": False}
    known = await access.login(request)
    return {"keys_asked_for": True, "logged_in": False} if known is None else _told(*known)


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the login of a request's cookie; without one there is nothing to end."""
    origins.refuse_other_sites(request)
    access: Access = request.app.state.access
    known = await access.login(request)
    response = JsonReply({"logged_in": False})
    if known is not None and access.store is not None:
        check_csrf(request, known[0])
        await asyncio.to_thread(access.store.logins.end, token_in(request))
        drop_cookie(request, response)
    return response


def _told(login: Login, key: ApiKey) -> dict[str, Any]:
    who = {"name": key.name, "roles": list(key.roles), "csrf": login.csrf, "until": login.until}
    return {"keys_asked_for": True, "logged_in": True, **who}
