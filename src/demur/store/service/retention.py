"""Forgetting: texts, or whole decisions, that are older than they may become."""

from __future__ import annotations

from sqlalchemy import Connection, select

from demur.store.patience import patient
from demur.store.service._tables import decision_paths, decisions, feedback, reviews
from demur.store.service.family import TableFamily
from demur.store.service.values import WHOLE

_AT_ONCE = 500
"""Decisions forgotten in one transaction, so that nobody who writes waits long."""


class Retention(TableFamily):
    """Drops what is old, some at a time."""

    def forget_texts(self, before: int) -> int:
        """Drop questions, what else was asked, texts of paths, notes, and what failures quote, of decisions made before
        a time; of how many.

        What was decided stays, with its answers. Reviews that were still open go: nobody can judge them any more.
        """
        WHOLE.given("before", before)
        return self._all(before, texts_only=True)

    def forget(self, before: int) -> int:
        """Drop decisions made before a time, with their paths, reviews and feedback; how many.

        Their verdicts then count in no audit and no recalibration.
        """
        WHOLE.given("before", before)
        return self._all(before, texts_only=False)

    def _all(self, before: int, *, texts_only: bool) -> int:
        dropped = 0
        while some := self._some(before, texts_only):
            dropped += some
        return dropped

    @patient
    def _some(self, before: int, texts_only: bool) -> int:
        old = select(decisions.c.request).where(decisions.c.at < before).order_by(decisions.c.at, decisions.c.request)
        if texts_only:
            old = old.where(decisions.c.texts == 1)
        with self.writing() as connection:
            requests = list(connection.execute(old.limit(_AT_ONCE).with_for_update()).scalars())
            if requests:
                (_drop_texts if texts_only else _drop)(connection, requests)
        return len(requests)


def _drop_texts(connection: Connection, requests: list[str]) -> None:
    of_decisions = decisions.c.request.in_(requests)
    connection.execute(decisions.update().where(of_decisions).values(question=None, asked=None, texts=0))
    failed = select(decisions.c.request, decisions.c.cause).where(of_decisions, decisions.c.cause.is_not(None))
    for row in connection.execute(failed).all():  # the kind stays; what follows may quote what was asked
        kind = row.cause.partition(":")[0]
        connection.execute(decisions.update().where(decisions.c.request == row.request).values(cause=kind))
    connection.execute(feedback.update().where(feedback.c.request.in_(requests)).values(note=None))
    connection.execute(decision_paths.update().where(decision_paths.c.request.in_(requests)).values(text=None))
    connection.execute(reviews.delete().where(reviews.c.request.in_(requests), reviews.c.state == "open"))


def _drop(connection: Connection, requests: list[str]) -> None:
    for table in (reviews, feedback, decision_paths, decisions):
        connection.execute(table.delete().where(table.c.request.in_(requests)))
