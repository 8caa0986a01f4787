"""The log: every decision is committed before its caller hears of it, those of one moment together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from demur.errors import InvalidValue, StoreError
from demur.server.api import replies
from demur.server.outcomes import Outcome
from demur.store.service import Decision, DecisionPath, NewReview, ServiceStore

_AT_ONCE = 500
_KNOWN_SECONDS = 1.0
"""For so long a commit, or a write that was tried, says how the next one will end."""


@dataclass
class _Entry:
    decision: Decision
    review: NewReview | None
    saved: asyncio.Future[None] = field(repr=False)


class DecisionLog:
    """Decisions on their way into a store: while some are written, others gather, and go together."""

    def __init__(self, store: ServiceStore, *, texts: bool = True, second_share: float = 0.0) -> None:
        self.store, self.texts, self.second_share = store, texts, second_share
        self._waiting: list[_Entry] = []
        self._writer: asyncio.Task[None] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._known_at = float("-inf")
        self._trouble: StoreError | None = None

    async def add(self, outcome: Outcome, caller: str | None) -> None:
        """Keep a decision; it is committed when this returns, and raises StoreError where it cannot be."""
        entry = _Entry(
            decision_of(outcome, caller, texts=self.texts),
            self._review(outcome),
            asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(entry)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await entry.saved

    async def check(self) -> None:
        """Raise StoreError where a decision could not be kept now.

        A commit of the last second is proof that it could; otherwise one write is tried for all who ask.
        """
        if self._trying is None and time.monotonic() - self._known_at >= _KNOWN_SECONDS:
            self._trying = asyncio.create_task(self._try())
        if self._trying is not None:
            await asyncio.shield(self._trying)
        if (trouble := self._trouble) is not None:
            raise type(trouble)(trouble.message, trouble.remedy)

    async def _try(self) -> None:
        try:
            await asyncio.to_thread(self.store.check_writing)
            self._trouble = None
        except StoreError as error:
            self._trouble = error
        finally:
            self._known_at, self._trying = time.monotonic(), None

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            try:
                await self._commit(batch)
            except StoreError as error:
                self._known_at = float("-inf")  # to be found out by whoever comes next
                _tell(batch, error)
            except Exception:  # one of them cannot be kept: the others can
                for entry in batch:
                    await self._write_alone(entry)
            else:
                self._known_at, self._trouble = time.monotonic(), None
                _tell(batch, None)

    async def _write_alone(self, entry: _Entry) -> None:
        try:
            await self._commit([entry])
        except InvalidValue as error:  # the service made it, not its caller; what it quotes may be their words
            _tell([entry], StoreError(f"a decision cannot be kept: {error.message.partition(', got ')[0]}"))
        except Exception as error:  # whatever it is, who waits for it hears of it
            _tell([entry], error)
        else:
            _tell([entry], None)

    async def _commit(self, batch: list[_Entry]) -> None:
        reviews = [entry.review for entry in batch if entry.review is not None]
        await asyncio.to_thread(self.store.decisions.add, [entry.decision for entry in batch], reviews)

    def _review(self, outcome: Outcome) -> NewReview | None:
        """What people are to look at: abstentions and audits; without texts there is nothing to be seen."""
        abstained = outcome.decision == "abstained"
        number = outcome.question.served.number
        if not self.texts or number is None or not (abstained or outcome.audited):
            return None
        reason = "both" if abstained and outcome.audited else "abstained" if abstained else "audit"
        second = int(outcome.request_id[-8:], 16) < self.second_share * 2**32
        return NewReview(outcome.request_id, reason, outcome.at, contested(outcome), number, second)


def _tell(batch: list[_Entry], error: Exception | None) -> None:
    """Tell who waits that it is kept, or why it is not; some may have gone."""
    for entry in batch:
        if entry.saved.done():
            continue
        if error is None:
            entry.saved.set_result(None)
        else:
            entry.saved.set_exception(error)


def contested(outcome: Outcome) -> float:
    """How close the vote was: 1 where two answers have the same share, 0 where there is one."""
    if outcome.asked is None:
        return 1.0
    first, second, *_ = [*sorted(outcome.asked.decision.shares.values(), reverse=True), 0.0, 0.0]
    return 1.0 - (first - second)


def decision_of(outcome: Outcome, caller: str | None, *, texts: bool) -> Decision:
    """An outcome as the store has it; without texts, nothing that anybody wrote."""
    question, asked = outcome.question, outcome.asked
    problem, made = question.problem, None if asked is None else asked.decision
    winner = next(iter(made.support), None) if made is not None else None
    failed = outcome.failure is not None
    spent = None if asked is None else asked.spent
    return Decision(
        request=outcome.request_id,
        at=outcome.at,
        policy=question.served.number or 0,
        model=question.model if texts else f"{question.served.name}@{question.rule.alpha:g}",
        question_digest=problem.digest or "none",
        outcome="failed" if failed else outcome.decision,
        drawn=0 if asked is None else asked.n_drawn,
        n_paths=outcome.n_paths,
        milliseconds=round(outcome.seconds * 1000),
        alpha=f"{question.rule.alpha:g}",
        guarantee=question.guarantee,
        caller=caller,
        question=problem.question if texts else None,
        asked=_asked(outcome) if texts else None,
        cause=_cause(outcome, texts=texts),
        answer=str(made.answer) if texts and made is not None and outcome.decision == "answered" else None,
        winner=str(winner) if texts and winner is not None else None,
        confidence=None if made is None else made.confidence,
        vote_key=None if asked is None or not asked.whole or made is None else made.key,
        tokens_in=0 if spent is None else spent.prompt_tokens,
        tokens_out=0 if spent is None else spent.completion_tokens,
        audit=outcome.audited,
        reported_model=spent.models[0] if spent is not None and spent.models else None,
        system_fingerprint=spent.system_fingerprints[0] if spent is not None and spent.system_fingerprints else None,
        document=_document(outcome, texts=texts),
        idempotency=outcome.idempotency,
        paths=_paths(outcome) if texts else (),
    )


def _cause(outcome: Outcome, *, texts: bool) -> str | None:
    failure = outcome.failure
    return None if failure is None else f"{failure.kind}: {failure.logged(1000, texts=texts)}"


def _document(outcome: Outcome, *, texts: bool) -> dict[str, Any]:
    """What the caller is told, what a shadow would have done, and how old the threshold was."""
    told = _told(outcome) if texts else _without_texts(replies.extension(outcome))
    told |= {} if outcome.shadow is None else {replies.SHADOW: outcome.shadow}
    return told | ({} if outcome.moved is None else {replies.KNOWN_ERRORS: outcome.moved.known_errors})


def _asked(outcome: Outcome) -> dict[str, Any]:
    """What else of the request reached the model."""
    problem = outcome.question.problem
    known = {name: value for name, value in problem.extra.items() if name != "task"}
    return {**known, **({"groups": list(problem.groups)} if problem.groups else {})}


def _told(outcome: Outcome) -> dict[str, Any]:
    """What the caller is told, and what it takes to tell it again."""
    again = outcome.idempotency is not None and outcome.shown is not None
    return {**replies.extension(outcome), **({replies.SHOWN: outcome.shown} if again else {})}


def _paths(outcome: Outcome) -> tuple[DecisionPath, ...]:
    """The paths of what people are to look at, and the one that is to be shown again; others are not kept."""
    if outcome.asked is None:
        return ()
    looked_at = outcome.decision == "abstained" or outcome.audited
    again = outcome.shown if outcome.idempotency is not None else None
    return tuple(
        DecisionPath(
            place,
            None if path.answer is None else str(path.answer),
            path.text,
            dict(path.scores),
            path.extra.get("n_tokens"),
        )
        for place, path in enumerate(outcome.asked.pool.paths)
        if looked_at or place == again
    )


_WRITTEN_BY_NOBODY = (
    "request_id", "decision", "policy", "alpha", "guarantee", "promise", "confidence", "threshold",
    "calibrated_threshold", "p_value", "without_answer", "paths", "certain_early", "cause", "or_other", "in_doubt",
)  # fmt: skip
"""What a caller is told in which no text of a person or a model can stand; explanations name groups, as asked for."""


def _without_texts(told: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: told[name] for name in _WRITTEN_BY_NOBODY if name in told}
    return {**kept, "votes": [{"paths": vote["paths"], "share": vote["share"]} for vote in told["votes"]]}
