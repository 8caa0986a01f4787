"""Audits in the order in which monitors take them: each gets a turn, once, and keeps it.

A decision is committed after its request arrived, sometimes long after, and by any of several processes: what is there
now is not all that arrived until now. So every audit waits here, from the transaction of its decision on, until it has
a turn. None can be overtaken for good, whatever clocks say: what waits is found by its waiting, not by its time.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from demur.store.patience import patient
from demur.store.service._tables import audits
from demur.store.service.family import TableFamily
from demur.store.service.values import COUNT, WHOLE

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Audit:
    """One audited request, in its turn."""

    turn: int
    request: str
    at: int


class Audits(TableFamily):
    """The audits of each policy."""

    @patient
    def give_turns(self, policy: int, before: int) -> int:
        """Give turns to audits that wait and arrived before a time, the earliest first; how many were looked at.

        A question that was audited before under this policy gets none: monitors are about new questions.
        """
        waiting = (
            select(audits.c.request, audits.c.question_digest)
            .where(audits.c.policy == COUNT.given("policy", policy), audits.c.again == 0, audits.c.turn.is_(None))
            .where(audits.c.at < WHOLE.given("before", before))
            .order_by(audits.c.at, audits.c.request)
            .limit(_AT_ONCE)
        )
        with self.reading() as connection:
            if connection.execute(waiting.limit(1)).first() is None:
                return 0
        with self.writing(alone=True) as connection:
            rows = connection.execute(waiting).all()
            digests = {row.question_digest for row in rows}
            mine = (audits.c.policy == policy, audits.c.turn.is_not(None))
            placed = select(audits.c.question_digest).where(*mine, audits.c.question_digest.in_(digests))
            known = set(connection.execute(placed).scalars())
            turn = connection.execute(select(func.max(audits.c.turn)).where(audits.c.policy == policy)).scalar() or 0
            for row in rows:
                this = audits.update().where(audits.c.request == row.request)
                if row.question_digest in known:
                    connection.execute(this.values(again=1))
                    continue
                known.add(row.question_digest)
                turn += 1
                connection.execute(this.values(turn=turn))
            return len(rows)

    @patient
    def after(self, policy: int, turn: int, limit: int = 1000) -> list[Audit]:
        """The audits whose turn comes after one, in their order."""
        columns = (audits.c.turn, audits.c.request, audits.c.at)
        mine = (audits.c.policy == COUNT.given("policy", policy), audits.c.turn > COUNT.given("turn", turn))
        with self.reading() as connection:
            rows = connection.execute(select(*columns).where(*mine).order_by(audits.c.turn).limit(limit))
            return [Audit(COUNT.stored("turn", row.turn), row.request, row.at) for row in rows]

    @patient
    def last_turn(self, policy: int) -> int:
        """The last turn that was given; 0 where none was."""
        query = select(func.max(audits.c.turn)).where(audits.c.policy == COUNT.given("policy", policy))
        with self.reading() as connection:
            return connection.execute(query).scalar() or 0

    @patient
    def without_turn(self, policy: int) -> tuple[int, int]:
        """How many audits wait for a turn, and how many get none because their question was audited before."""
        query = select(audits.c.again, func.count()).where(audits.c.policy == COUNT.given("policy", policy))
        with self.reading() as connection:
            rows = connection.execute(query.where(audits.c.turn.is_(None)).group_by(audits.c.again))
            counted: dict[int, int] = {row[0]: row[1] for row in rows}
        return counted.get(0, 0), counted.get(1, 0)
