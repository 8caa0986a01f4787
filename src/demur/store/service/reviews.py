"""Claims and verdicts: who looks at an item holds a lease on it, and nobody else gets it while the lease runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, or_, select

from demur.errors import StoreError
from demur.store.patience import patient
from demur.store.service._tables import feedback, reviews
from demur.store.service.family import checked_lease, fresh_token, is_free, lease_clock, lease_end
from demur.store.service.feedback import Feedback, check_says_something, last_words, say, take_turns
from demur.store.service.review_queue import (
    EVERYTHING_OPEN,
    ReviewFilter,
    ReviewItem,
    ReviewQueue,
    item_of,
    ordered,
    those,
)
from demur.store.service.values import NAME, known_names

_FREE = {"lease_by": None, "lease_until": None, "lease_token": None}


class Reviews(ReviewQueue):
    """The queue, and the work on it."""

    def claim(
        self,
        who: str,
        wanted: ReviewFilter = EVERYTHING_OPEN,
        *,
        order: str = "oldest",
        seconds: float = 600,
        request: str | None = None,
        skipping: Iterable[str] = (),
    ) -> ReviewItem | None:
        """The first item that nobody holds, held by `who` from now on; None where there is none.

        `request` claims that item and no other, `skipping` leaves some out. Nobody gets an item for a second opinion
        on their own first.
        """
        NAME.given("who", who)
        checked_lease(seconds)
        only = [] if request is None else [reviews.c.request.in_(known_names([request]))]
        if left_out := known_names(skipping):
            only.append(reviews.c.request.not_in(left_out))
        return self._claim(who, replace(wanted, state="open"), order, seconds, only, fresh_token())

    @patient
    def _claim(
        self, who: str, wanted: ReviewFilter, order: str, seconds: float, only: list[Any], token: str
    ) -> ReviewItem | None:
        with self.writing() as connection:
            mine = select(reviews).where(reviews.c.lease_by == who, reviews.c.lease_token == token)
            if (claimed := connection.execute(mine).first()) is not None:
                return item_of(claimed)  # done before, without our learning of it
            now = lease_clock(connection)
            candidates = ordered(those(select(reviews.c.request), wanted), order)
            candidates = candidates.where(is_free(reviews.c.lease_until, now))
            candidates = candidates.where(or_(reviews.c.first_by.is_(None), reviews.c.first_by != who))
            first = connection.execute(candidates.where(*only).limit(1).with_for_update(skip_locked=True)).scalar()
            if first is None:
                return None
            lease = {"lease_by": who, "lease_until": lease_end(now, seconds), "lease_token": token}
            connection.execute(reviews.update().where(reviews.c.request == first).values(lease))
            return item_of(connection.execute(mine).one())

    @patient
    def held(self, who: str) -> list[ReviewItem]:
        """The items that a person holds now, with their leases."""
        with self.reading() as connection:
            now = lease_clock(connection)
            query = select(reviews).where(
                reviews.c.lease_by.in_(known_names([who])), ~is_free(reviews.c.lease_until, now)
            )
            return [item_of(row) for row in connection.execute(ordered(query, "oldest"))]

    @patient
    def renew(self, request: str, token: str, seconds: float = 600) -> bool:
        """Hold an item for longer, counted from now; False where it is somebody else's by now, or judged."""
        checked_lease(seconds)
        with self.writing() as connection:
            until = lease_end(lease_clock(connection), seconds)
            renewed = reviews.update().where(*_under(request, token)).values(lease_until=until)
            return bool(connection.execute(renewed).rowcount)

    @patient
    def release(self, request: str, token: str) -> None:
        """Give an item back unjudged."""
        with self.writing() as connection:
            connection.execute(reviews.update().where(*_under(request, token)).values(_FREE))

    @patient
    def settle(
        self,
        request: str,
        token: str,
        at: int,
        *,
        verdict: str | None = None,
        answer: str | None = None,
        note: str | None = None,
    ) -> bool:
        """Note the verdict of who holds an item and take it off the queue, or leave it there for the second opinion.

        False, and nothing noted, where the lease ran out and somebody else holds the item.
        """
        check_says_something(verdict, answer)
        with self.writing() as connection:
            item = _held_still(connection, request)
            if token == item.settled:
                return True  # done before, without our learning of it
            if token != item.lease_token or item.lease_by is None:
                return False
            said = say(
                connection, request, item.lease_by, at, verdict=verdict, answer=answer, source="review", note=note
            )
            connection.execute(
                reviews.update()
                .where(reviews.c.request == request)
                .values(_FREE | {"settled": token} | _judged(connection, item, said))
            )
            return True

    @patient
    def undo(self, request: str, who: str, at: int) -> ReviewItem:
        """Take back a person's verdict: the item is open again, for them too. Raises where they gave none."""
        NAME.given("who", who)
        with self.writing() as connection:
            item = _held_still(connection, request)
            spoke = (feedback.c.request == request, feedback.c.who == who, feedback.c.source == "review")
            if connection.execute(select(feedback.c.turn).where(*spoke).limit(1)).first() is None:
                raise StoreError(f"{who!r:.80} gave no verdict on {request!r:.80} that could be taken back")
            say(connection, request, who, at, source="review")
            if who in (item.first_by, item.second_by):
                others = [name for name in (item.first_by, item.second_by) if name not in (None, who)]
                left = {"state": "open", "first_by": others[0] if others else None, "second_by": None, "agree": None}
                connection.execute(reviews.update().where(reviews.c.request == request).values(left))
            return item_of(connection.execute(select(reviews).where(reviews.c.request == request)).one())


def _under(request: str, token: str) -> list[Any]:
    mine = (reviews.c[name].in_(known_names([value])) for name, value in (("request", request), ("lease_token", token)))
    return [*mine, reviews.c.state == "open"]


def _held_still(connection: Connection, request: str) -> ReviewItem:
    """An item that nobody else changes until the transaction ends; the decision comes first, as wherever both do."""
    take_turns(connection, request)
    row = connection.execute(select(reviews).where(reviews.c.request == request).with_for_update()).first()
    if row is None:
        raise StoreError(f"there is no review of a request {request!r:.80}")
    return item_of(row)


def _judged(connection: Connection, item: ReviewItem, said: Feedback) -> dict[str, Any]:
    """What a verdict changes of an item."""
    if item.first_by is None:
        return {"first_by": said.who, "state": "open" if item.second else "done"}
    first = last_words(connection, [item.request]).get(item.request, {}).get((item.first_by, "review"))
    agree = None if first is None else int(_same(first, said))
    return {"second_by": said.who, "state": "done", "agree": agree}


def _same(one: Feedback, other: Feedback) -> bool:
    """Whether two people said the same: by their verdicts, or by the answers where neither gave a verdict."""
    if one.verdict is None and other.verdict is None:
        return one.answer == other.answer
    return one.verdict == other.verdict
