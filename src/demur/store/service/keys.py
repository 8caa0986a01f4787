"""API keys: what their holders may do, and how much. Of a key itself only a digest is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import func, or_, select

from demur.errors import InvalidValue, StoreError
from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import api_keys
from demur.store.service.family import TableFamily, fresh_token
from demur.store.service.values import NAME, NAMES, OBJECT, WHOLE, Kinds, optional, record_of

ROLES = ("ask", "review", "metrics", "admin")
MARK = "demur-"
"""What every key begins with, so that one that leaked can be found."""
_KINDS: Kinds = {
    "key": NAME,
    "name": NAME,
    "roles": NAMES,
    "limits": OBJECT,
    "created": WHOLE,
    "revoked": optional(WHOLE),
    "last_used": optional(WHOLE),
}
_NO_LIMITS: Mapping[str, int] = MappingProxyType({})
_NOTED_EVERY = 60_000
"""Milliseconds: the time of the last use is no more exact."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key."""

    key: str
    """Its id, which is no secret."""
    name: str
    roles: tuple[str, ...]
    """Some of `ROLES`."""
    limits: dict[str, int]
    created: int
    revoked: int | None
    last_used: int | None


def digest_of(secret: str) -> str:
    """How a secret of 256 random bits is kept: there is nothing to guess, so no slow hash is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class ApiKeys(TableFamily):
    """The keys of a service."""

    def create(
        self, name: str, roles: Iterable[str], at: int, limits: Mapping[str, int] = _NO_LIMITS
    ) -> tuple[ApiKey, str]:
        """A new key and its secret, which is told this once. A name is taken until its key is revoked."""
        wanted = list(roles)
        if not wanted or not set(wanted) <= set(ROLES):
            raise InvalidValue(f"a key has some of the roles {', '.join(ROLES)}, not {wanted!r:.80}")
        _check_limits(limits)
        secret = MARK + fresh_token()
        given = {
            "key": "k" + secrets.token_hex(8),
            "name": name,
            "roles": [role for role in ROLES if role in wanted],
            "limits": dict(limits),
            "created": at,
        }
        row = {column: _KINDS[column].given(column, value) for column, value in given.items()}
        return self._enter(row | {"digest": digest_of(secret)}), secret

    @patient
    def _enter(self, row: dict[str, object]) -> ApiKey:
        with self.writing() as connection:
            insert_new(connection, api_keys, [row])
            there = connection.execute(select(api_keys).where(api_keys.c.key == row["key"])).first()
            if there is None:
                raise StoreError(f"there is a key {row['name']!r} already", "revoke it, or choose another name")
            return _key_of(there)

    @patient
    def find(self, secret: str) -> ApiKey | None:
        """The key of a secret; None where there is none, or it was revoked."""
        query = select(api_keys).where(api_keys.c.digest == digest_of(secret), api_keys.c.revoked.is_(None))
        with self.reading() as connection:
            row = connection.execute(query).first()
            return None if row is None else _key_of(row)

    @patient
    def by_digest(self) -> dict[str, ApiKey]:
        """Every key there is or was, by the digest of its secret: for who looks keys up more often than here."""
        with self.reading() as connection:
            return {NAME.stored("digest", row.digest): _key_of(row) for row in connection.execute(select(api_keys))}

    @patient
    def used(self, key: str, at: int) -> None:
        """Note that a key was used, to the minute."""
        stale = or_(api_keys.c.last_used.is_(None), api_keys.c.last_used < WHOLE.given("at", at) - _NOTED_EVERY)
        with self.writing() as connection:
            connection.execute(
                api_keys.update().where(api_keys.c.key == NAME.given("key", key), stale).values(last_used=at)
            )

    @patient
    def revoke(self, key: str, at: int) -> ApiKey:
        """End a key for good, and every login with it. Revoked twice it stays revoked since the first time."""
        this = api_keys.c.key == NAME.given("key", key)
        with self.writing() as connection:
            values = {"revoked": func.coalesce(api_keys.c.revoked, WHOLE.given("at", at))}
            connection.execute(api_keys.update().where(this).values(values))
            row = connection.execute(select(api_keys).where(this)).first()
            if row is None:
                raise StoreError(f"there is no key with the id {key!r:.80}")
            return _key_of(row)

    @patient
    def all(self) -> list[ApiKey]:
        """Every key there is or was, the oldest first."""
        query = select(api_keys).order_by(api_keys.c.created, api_keys.c.key)
        with self.reading() as connection:
            return [_key_of(row) for row in connection.execute(query)]


def _key_of(row: object) -> ApiKey:
    key = record_of(ApiKey, row, _KINDS)
    if not set(key.roles) <= set(ROLES):
        raise TypeError(f"the roles of a key are {key.roles!r:.80}")
    if not all(WHOLE.fits(value) for value in key.limits.values()):
        raise TypeError(f"the limits of a key are {key.limits!r:.80}")
    return key


def _check_limits(limits: Mapping[str, int]) -> None:
    for name, value in limits.items():
        WHOLE.given(f"the limit {name}", value)
