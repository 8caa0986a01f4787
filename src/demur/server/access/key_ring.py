"""The API keys of a service, in memory: read from its store again every few seconds, so on every replica alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from demur.server.errors import ApiError
from demur.store.service import ApiKey, ServiceStore
from demur.store.service.keys import digest_of

FRESH = 2.0
"""Seconds after which keys are read again: a key that was revoked opens nothing for longer."""
_LONGEST_READ = 5.0
_NOTED_EVERY = 60.0


@dataclass(frozen=True)
class Keys:
    """All keys at one moment."""

    by_digest: Mapping[str, ApiKey] = field(default_factory=dict)
    required: bool = False

    @property
    def asked_for(self) -> bool:
        """Whether a key is needed: from the first one on, and still when all of them are revoked."""
        return self.required or bool(self.by_digest)

    @cached_property
    def _by_id(self) -> dict[str, ApiKey]:
        return {key.key: key for key in self.by_digest.values()}

    def of_secret(self, secret: str) -> ApiKey | None:
        """The key of a secret; None where there is none, or it was revoked.

        It is found by its digest: how long that takes may tell of digests, which nobody can choose, never of secrets.
        """
        key = self.by_digest.get(digest_of(secret))
        return key if key is not None and key.revoked is None else None

    def of_id(self, key_id: str) -> ApiKey | None:
        """The key of an id; None where there is none, or it was revoked."""
        key = self._by_id.get(key_id)
        return key if key is not None and key.revoked is None else None


class KeyRing:
    """The keys as they were at most a few seconds ago."""

    def __init__(self, store: ServiceStore | None, *, required: bool = False, fresh: float = FRESH) -> None:
        self.store, self.required, self.fresh = store, required, fresh
        self._keys = Keys(required=required)
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._noted: dict[str, float] = {}
        self._used: set[str] = set()

    async def read(self) -> Keys:
        """The keys; raises ApiError where the store that has them cannot be read, rather than let anybody in."""
        if self.store is None or time.monotonic() - self._read_at < self.fresh:
            return self._keys
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait_for(asyncio.shield(self._reading), _LONGEST_READ)
        except TimeoutError:
            told, again = "keys cannot be checked now; try again", {"Retry-After": "5"}
            raise ApiError(503, told, code="store_unavailable", headers=again) from None
        return self._keys

    def used(self, key: ApiKey) -> None:
        """Remember that a key was used; the store is told when keys are next read, once a minute."""
        if time.monotonic() - self._noted.get(key.key, float("-inf")) >= _NOTED_EVERY:
            self._noted[key.key] = time.monotonic()
            self._used.add(key.key)

    async def _read(self) -> None:
        assert self.store is not None
        started, used, self._used = time.monotonic(), sorted(self._used), set()
        found = await asyncio.to_thread(_read_and_note, self.store, used)
        self._keys, self._read_at = Keys(found, self.required), started


def _read_and_note(store: ServiceStore, used: list[str]) -> dict[str, ApiKey]:
    now = time.time_ns() // 1_000_000
    for key in used:
        store.keys.used(key, now)
    return store.keys.by_digest()
