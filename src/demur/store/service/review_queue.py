"""The queue of what people are to look at: abstentions and audits, each request once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select, tuple_

from demur.errors import InvalidValue
from demur.store.patience import patient
from demur.store.service._tables import AUDITED, reviews
from demur.store.service.family import TableFamily
from demur.store.service.values import (
    COUNT,
    FLAG,
    NAME,
    NUMBER,
    WHOLE,
    Kinds,
    known_names,
    one_of,
    optional,
    record_of,
    row_of,
)

REASONS = ("abstained", "audit", "both")
ORDERS = ("oldest", "contested")
_NEW: Kinds = {
    "request": NAME,
    "reason": one_of(*REASONS),
    "at": WHOLE,
    "contested": NUMBER,
    "policy": COUNT,
    "second": FLAG,
}
_KINDS: Kinds = {
    **_NEW,
    "state": one_of("open", "done"),
    "first_by": optional(NAME),
    "second_by": optional(NAME),
    "agree": optional(FLAG),
    "lease_by": optional(NAME),
    "lease_until": optional(WHOLE),
    "lease_token": optional(NAME),
    "settled": optional(NAME),
}


@dataclass(frozen=True, slots=True)
class NewReview:
    """A request that people are to look at."""

    request: str
    reason: str
    """abstained, audit or both."""
    at: int
    contested: float
    """How close the vote was; larger comes first where the most contested do."""
    policy: int
    second: bool = False
    """Whether two people are to look at it, each without the other."""


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A request in the queue, or that went through it."""

    request: str
    reason: str
    at: int
    contested: float
    policy: int
    second: bool
    state: str
    """open or done."""
    first_by: str | None
    second_by: str | None
    agree: bool | None
    """Whether two people said the same; None where fewer than two spoke."""
    lease_by: str | None
    lease_until: int | None
    lease_token: str | None
    """Who knows it may judge the item: show it to nobody but the one who holds the lease."""
    settled: str | None
    """The lease under which it was judged last."""


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Which items are meant; None is any."""

    state: str | None = "open"
    reason: str | None = None
    """abstained, audit or both, as it stands in the item."""
    audited: bool | None = None
    """Whether it was marked for audit on arrival, whatever became of it."""
    policy: int | None = None
    since: int | None = None
    until: int | None = None
    second: bool | None = None


@dataclass(frozen=True, slots=True)
class ReviewCounts:
    """How many items wait, by reason, counted no further than `most`."""

    abstained: int
    audit: int
    both: int
    most: int

    @property
    def open(self) -> int:
        return self.abstained + self.audit + self.both


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of the items that two people judged: on how many they said the same."""

    judged_twice: int
    agreed: int


EVERYTHING_OPEN = ReviewFilter()


def review_row(item: NewReview) -> dict[str, Any]:
    return {**row_of(item, _NEW), "state": "open"}


def item_of(row: Any) -> ReviewItem:
    return record_of(ReviewItem, row, _KINDS)


def ordered(query: Select[Any], order: str) -> Select[Any]:
    if order not in ORDERS:
        raise InvalidValue(f"the queue has the orders {' and '.join(ORDERS)}, not {order!r}")
    if order == "oldest":
        return query.order_by(reviews.c.at, reviews.c.request)
    return query.order_by(reviews.c.contested.desc(), reviews.c.request.desc())


def those(query: Select[Any], wanted: ReviewFilter) -> Select[Any]:
    """Only the items that a filter means."""
    for name in ("state", "reason", "policy", "second"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(reviews.c[name] == _KINDS[name].given(name, value))
    if wanted.audited is not None:
        query = query.where(AUDITED if wanted.audited else reviews.c.reason == "abstained")
    if wanted.since is not None:
        query = query.where(reviews.c.at >= WHOLE.given("since", wanted.since))
    return query if wanted.until is None else query.where(reviews.c.at < WHOLE.given("until", wanted.until))


class ReviewQueue(TableFamily):
    """Reads the queue; a page and the counts take as long whether a hundred wait or a hundred thousand."""

    @patient
    def queue(
        self,
        wanted: ReviewFilter = EVERYTHING_OPEN,
        *,
        order: str = "oldest",
        after: ReviewItem | None = None,
        limit: int = 50,
    ) -> list[ReviewItem]:
        """A page of items, the oldest or the most contested first, from the one `after` another on."""
        query = ordered(those(select(reviews), wanted), order).limit(limit)
        if after is not None:
            query = query.where(_beyond(after, order))
        with self.reading() as connection:
            return [item_of(row) for row in connection.execute(query)]

    @patient
    def get(self, request: str) -> ReviewItem | None:
        with self.reading() as connection:
            row = connection.execute(select(reviews).where(reviews.c.request.in_(known_names([request])))).first()
            return None if row is None else item_of(row)

    @patient
    def counts(self, wanted: ReviewFilter = EVERYTHING_OPEN, *, most: int = 1000) -> ReviewCounts:
        """How many items of each reason there are; `most` stands for that many and more."""
        parts = []
        for reason in REASONS:
            some = those(select(reviews.c.request), wanted).where(reviews.c.reason == reason).limit(most)
            parts.append(select(func.count()).select_from(some.subquery()).scalar_subquery())
        with self.reading() as connection:
            abstained, audit, both = connection.execute(select(*parts)).one()
        return ReviewCounts(abstained, audit, both, most)

    @patient
    def agreement(self) -> Agreement:
        """How often two people who judged the same item said the same."""
        counted = select(reviews.c.agree, func.count()).where(reviews.c.agree.is_not(None)).group_by(reviews.c.agree)
        with self.reading() as connection:
            number = {FLAG.stored("agree", agree): count for agree, count in connection.execute(counted)}
        return Agreement(sum(number.values()), number.get(True, 0))


def _beyond(after: ReviewItem, order: str) -> Any:
    """The items behind another, as one comparison: an index is entered at that place."""
    if order == "oldest":
        return tuple_(reviews.c.at, reviews.c.request) > tuple_(after.at, after.request)
    return tuple_(reviews.c.contested, reviews.c.request) < tuple_(after.contested, after.request)
