"""Canaries: questions of a run that are asked again, each at most once per policy version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import canaries
from demur.store.service.family import TableFamily, checked_lease, fresh_token, lease_clock, lease_end, runs
from demur.store.service.values import COUNT, NAME, WHOLE, Kinds, one_of, optional, record_of

_KINDS: Kinds = {
    "problem": NAME,
    "state": one_of("asked", "answered", "failed"),
    "at": WHOLE,
    "lease_until": optional(WHOLE),
    "lease_token": optional(NAME),
}


@dataclass(frozen=True, slots=True)
class Canary:
    """A question that is being asked again, or was."""

    problem: str
    state: str
    """asked, answered or failed."""
    at: int
    lease_until: int | None
    lease_token: str | None
    """Who knows it may say what became of the question."""


class Canaries(TableFamily):
    """The canaries of each policy."""

    def claim_next(self, policy: int, problems: Sequence[str], at: int, seconds: float = 600) -> Canary | None:
        """The first of these problems that was not asked yet, for the caller to ask; None where all were.

        One that was claimed and never settled brought no result, and is given again when its lease is over.
        """
        COUNT.given("policy", policy)
        WHOLE.given("at", at)
        checked_lease(seconds)
        return self._claim(policy, [NAME.given("problem", name) for name in problems], at, seconds, fresh_token())

    @patient
    def _claim(self, policy: int, problems: list[str], at: int, seconds: float, token: str) -> Canary | None:
        with self.writing(alone=True) as connection:
            known = {canary.problem: canary for canary in _all(connection, policy)}
            for canary in known.values():
                if canary.lease_token == token:
                    return canary  # done before, without our learning of it
            now = lease_clock(connection)

            def is_to_ask(name: str) -> bool:
                there = known.get(name)
                return there is None or (there.state == "asked" and not runs(there.lease_until, now))

            name = next(filter(is_to_ask, problems), None)
            if name is None:
                return None
            lease = {"state": "asked", "at": at, "lease_until": lease_end(now, seconds), "lease_token": token}
            insert_new(connection, canaries, [{"policy": policy, "problem": name, **lease}])
            connection.execute(canaries.update().where(*_this(policy, name)).values(lease))
            return Canary(name, "asked", at, lease_end(now, seconds), token)

    @patient
    def settle(self, policy: int, problem: str, token: str, *, answered: bool) -> bool:
        """Say what became of a question; False where it is another's by now, and the result must not count."""
        state = "answered" if answered else "failed"
        mine = (canaries.c.lease_token == token, canaries.c.state.in_(["asked", state]))
        with self.writing() as connection:
            settled = canaries.update().where(*_this(policy, problem), *mine).values(state=state, lease_until=None)
            return bool(connection.execute(settled).rowcount)

    @patient
    def all(self, policy: int) -> list[Canary]:
        """The canaries of a policy that were ever claimed, in the order of time."""
        with self.reading() as connection:
            return _all(connection, policy)


def _this(policy: int, problem: str) -> list[Any]:
    return [canaries.c.policy == policy, canaries.c.problem == NAME.given("problem", problem)]


def _all(connection: Connection, policy: int) -> list[Canary]:
    query = select(canaries).where(canaries.c.policy == policy).order_by(canaries.c.at, canaries.c.problem)
    return [record_of(Canary, row, _KINDS) for row in connection.execute(query)]
