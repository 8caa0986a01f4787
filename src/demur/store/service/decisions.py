"""The log of decisions: what was asked, what was decided, and the paths it was decided on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Select, func, select, tuple_

from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import audits, decision_paths, decisions, reviews
from demur.store.service.family import TableFamily
from demur.store.service.review_queue import NewReview, review_row
from demur.store.service.values import (
    COUNT,
    FLAG,
    KEY,
    NAME,
    NUMBER,
    OBJECT,
    PACKED,
    TEXT,
    WHOLE,
    Kinds,
    known_names,
    one_of,
    optional,
    record_of,
    row_of,
)

_KINDS: Kinds = {
    "request": NAME,
    "at": WHOLE,
    "policy": COUNT,
    "model": TEXT,
    "alpha": optional(TEXT),
    "guarantee": optional(TEXT),
    "caller": optional(NAME),
    "question_digest": NAME,
    "question": optional(TEXT),
    "asked": optional(OBJECT),
    "outcome": one_of("answered", "abstained", "failed"),
    "cause": optional(TEXT),
    "answer": optional(TEXT),
    "winner": optional(TEXT),
    "confidence": optional(NUMBER),
    "vote_key": optional(KEY),
    "drawn": COUNT,
    "n_paths": COUNT,
    "tokens_in": WHOLE,
    "tokens_out": WHOLE,
    "audit": FLAG,
    "reported_model": optional(TEXT),
    "system_fingerprint": optional(TEXT),
    "document": OBJECT,
    "idempotency": optional(NAME),
    "milliseconds": WHOLE,
}
_PATH_KINDS: Kinds = {
    "path": COUNT,
    "answer": optional(TEXT),
    "text": optional(PACKED),
    "scores": OBJECT,
    "n_tokens": optional(COUNT),
}
_AT_ONCE = 500
"""Requests named in one query."""


@dataclass(frozen=True, slots=True)
class DecisionPath:
    """One path that a decision rests on."""

    path: int
    answer: str | None
    text: str | None = None
    scores: Mapping[str, Any] = field(default_factory=dict)
    n_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One request and what became of it."""

    request: str
    at: int
    policy: int
    model: str
    """As it was asked for."""
    question_digest: str
    outcome: str
    """answered, abstained or failed."""
    drawn: int
    n_paths: int
    """How many a whole pool has."""
    milliseconds: int
    alpha: str | None = None
    guarantee: str | None = None
    caller: str | None = None
    """The id of the API key."""
    question: str | None = None
    asked: Mapping[str, Any] | None = None
    """What else of the request reached the model: options, passages, messages, groups."""
    cause: str | None = None
    answer: str | None = None
    """What was answered; None where nothing was."""
    winner: str | None = None
    """What won the vote, answered or not."""
    confidence: float | None = None
    vote_key: tuple[float, ...] | None = None
    """The calibrated statistic; None where sampling stopped early, and it is not known."""
    tokens_in: int = 0
    tokens_out: int = 0
    audit: bool = False
    reported_model: str | None = None
    system_fingerprint: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    """What the caller was told beside the answer."""
    idempotency: str | None = None
    paths: tuple[DecisionPath, ...] = ()
    """Comes back only where it is asked for."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of requests, counted."""

    answered: int
    abstained: int
    failed: int
    drawn: int
    """Paths that were sampled."""
    n_paths: int
    """Paths that whole pools would have had."""
    tokens_in: int
    tokens_out: int


class Decisions(TableFamily):
    """Every decision, committed before anybody hears of it."""

    @patient
    def add(self, made: Sequence[Decision], to_review: Sequence[NewReview] = ()) -> None:
        """Save decisions, their paths and the reviews they open, in one transaction; those there stay as they are."""
        in_order = sorted(made, key=lambda decision: decision.request)  # so that no two writers get entangled
        rows = [{**row_of(decision, _KINDS), "texts": int(_has_texts(decision))} for decision in in_order]
        path_rows = [
            {"request": decision.request, **row_of(path, _PATH_KINDS)}
            for decision in in_order
            for path in sorted(decision.paths, key=lambda path: path.path)
        ]
        audit_rows = [_audit_row(decision) for decision in in_order if decision.audit]
        review_rows = [review_row(item) for item in sorted(to_review, key=lambda item: item.request)]
        with self.writing() as connection:
            insert_new(connection, decisions, rows)
            insert_new(connection, decision_paths, path_rows)
            insert_new(connection, audits, audit_rows)
            insert_new(connection, reviews, review_rows)

    def get(self, request: str) -> Decision | None:
        """A decision with its paths; None where there is none of that name."""
        return self.several([request], with_paths=True).get(request)

    @patient
    def several(self, requests: Iterable[str], *, with_paths: bool = False) -> dict[str, Decision]:
        """The decisions on these requests, by request; those unknown are left out."""
        wanted = known_names(requests)
        with self.reading() as connection:
            parts = (wanted[start : start + _AT_ONCE] for start in range(0, len(wanted), _AT_ONCE))
            queries = (select(decisions).where(decisions.c.request.in_(part)) for part in parts)
            return {made.request: made for query in queries for made in _taken(connection, query, with_paths)}

    @patient
    def search(
        self,
        *,
        policy: int | None = None,
        outcome: str | None = None,
        audit: bool | None = None,
        caller: str | None = None,
        since: int | None = None,
        until: int | None = None,
        after: Decision | None = None,
        limit: int = 100,
        with_paths: bool = False,
    ) -> list[Decision]:
        """A page of decisions made from `since` to before `until`, the newest first, beginning behind `after`."""
        query = _those(select(decisions), policy=policy, outcome=outcome, audit=audit, caller=caller)
        query = _within(query, since, until)
        place = tuple_(decisions.c.at, decisions.c.request)
        if after is not None:
            query = query.where(place < tuple_(after.at, after.request))
        query = query.order_by(decisions.c.at.desc(), decisions.c.request.desc()).limit(limit)
        with self.reading() as connection:
            return _taken(connection, query, with_paths)

    @patient
    def tally(self, *, policy: int | None = None, since: int | None = None, until: int | None = None) -> Tally:
        """How many requests were answered, abstained on or failed, and what they took."""
        sums = [func.sum(decisions.c[name]) for name in ("drawn", "n_paths", "tokens_in", "tokens_out")]
        query = _those(select(decisions.c.outcome, func.count(), *sums), policy=policy)
        query = _within(query, since, until).group_by(decisions.c.outcome)
        with self.reading() as connection:
            counted = {row[0]: [int(value) for value in row[1:]] for row in connection.execute(query)}
        number = {outcome: counted.get(outcome, [0])[0] for outcome in ("answered", "abstained", "failed")}
        totals = [sum(row[place] for row in counted.values()) for place in range(1, 5)]
        return Tally(number["answered"], number["abstained"], number["failed"], *totals)


def _audit_row(decision: Decision) -> dict[str, Any]:
    """That an audit waits for its place in the order of arrival."""
    known = {"request": decision.request, "policy": decision.policy, "at": decision.at}
    return {**known, "question_digest": decision.question_digest, "turn": None, "again": 0}


def _has_texts(decision: Decision) -> bool:
    """Whether there is anything that the retention of texts is to drop."""
    own = decision.question is not None or decision.asked is not None
    return own or any(path.text is not None for path in decision.paths)


def _those(query: Select[Any], **columns: Any) -> Select[Any]:
    """Only rows with these values; None is any."""
    known = {name: value for name, value in columns.items() if value is not None}
    return query.where(*(decisions.c[name] == _KINDS[name].given(name, value) for name, value in known.items()))


def _within(query: Select[Any], since: int | None, until: int | None) -> Select[Any]:
    query = query if since is None else query.where(decisions.c.at >= WHOLE.given("since", since))
    return query if until is None else query.where(decisions.c.at < WHOLE.given("until", until))


def _taken(connection: Connection, query: Select[Any], with_paths: bool) -> list[Decision]:
    made = [record_of(Decision, row, _KINDS) for row in connection.execute(query)]
    if not with_paths:
        return made
    paths: dict[str, list[DecisionPath]] = {decision.request: [] for decision in made}
    names = list(paths)
    for start in range(0, len(names), _AT_ONCE):
        mine = decision_paths.c.request.in_(names[start : start + _AT_ONCE])
        in_order = select(decision_paths).where(mine).order_by(decision_paths.c.request, decision_paths.c.path)
        for row in connection.execute(in_order):
            paths[row.request].append(record_of(DecisionPath, row, _PATH_KINDS))
    return [replace(decision, paths=tuple(paths[decision.request])) for decision in made]
