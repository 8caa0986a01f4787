"""Requests sent again under one idempotency key: one of them does the work, the others get what it brought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, select

from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import decisions, repeats
from demur.store.service.family import TableFamily, checked_lease, lease_clock, lease_end, runs
from demur.store.service.values import NAME, TEXT, WHOLE, one_of

_STATE = one_of("begun", "done")


@dataclass(frozen=True, slots=True)
class Repeat:
    """Whose a request under an idempotency key is."""

    whose: Literal["mine", "running", "done", "another body"]
    """mine: do the work. running, done: another request does it, or did. another body: the key was used for it."""
    request: str
    """The request that does the work."""


class Repeats(TableFamily):
    """Idempotency keys in use. A caller without an API key is called by an empty text."""

    @patient
    def begin(self, caller: str, digest: str, body: str, request: str, at: int, seconds: float = 600) -> Repeat:
        """Claim a key for a request; work begun and left for longer than its lease lasts goes to the next.

        What was decided is done, even if whoever decided it ended before saying so.
        """
        checked_lease(seconds)
        for name, value in {"digest": digest, "body": body, "request": request}.items():
            NAME.given(name, value)
        with self.writing() as connection:
            now = lease_clock(connection)
            lease = {"request": request, "at": WHOLE.given("at", at), "lease_until": lease_end(now, seconds)}
            new = {"caller": TEXT.given("caller", caller), "digest": digest, "body": body, "state": "begun", **lease}
            insert_new(connection, repeats, [new])
            row = connection.execute(select(repeats).where(*_this(caller, digest)).with_for_update()).one()
            owner, state = NAME.stored("request", row.request), _STATE.stored("state", row.state)
            if row.body != body:
                return Repeat("another body", owner)
            if state == "done" or (owner != request and _is_decided(connection, owner)):
                return Repeat("done", owner)
            if owner != request and runs(WHOLE.stored("lease_until", row.lease_until), now):
                return Repeat("running", owner)
            connection.execute(repeats.update().where(*_this(caller, digest)).values(lease))
            return Repeat("mine", request)

    @patient
    def renew(self, caller: str, digest: str, request: str, seconds: float = 600) -> bool:
        """Keep a key for longer, counted from now; False where another request took over."""
        checked_lease(seconds)
        with self.writing() as connection:
            until = lease_end(lease_clock(connection), seconds)
            mine = repeats.update().where(*_this(caller, digest), repeats.c.request == request)
            return bool(connection.execute(mine.values(lease_until=until)).rowcount)

    @patient
    def finish(self, caller: str, digest: str, request: str) -> bool:
        """Say that the work is done and its decision logged; False where another request took over."""
        with self.writing() as connection:
            mine = repeats.update().where(*_this(caller, digest), repeats.c.request == request)
            return bool(connection.execute(mine.values(state="done")).rowcount)

    @patient
    def drop(self, caller: str, digest: str, request: str) -> None:
        """Give a key back: nothing came of the work, and the next request may do it. What was decided stays done."""
        begun = (repeats.c.request == request, repeats.c.state == "begun")
        with self.writing() as connection:
            if not _is_decided(connection, request):
                connection.execute(repeats.delete().where(*_this(caller, digest), *begun))

    @patient
    def forget(self, before: int) -> None:
        """Drop the keys that were first used before a time."""
        with self.writing() as connection:
            connection.execute(repeats.delete().where(repeats.c.at < WHOLE.given("before", before)))


def _is_decided(connection: Connection, request: str) -> bool:
    return connection.execute(select(decisions.c.request).where(decisions.c.request == request)).first() is not None


def _this(caller: str, digest: str) -> list[Any]:
    return [repeats.c.caller == TEXT.given("caller", caller), repeats.c.digest == NAME.given("digest", digest)]
