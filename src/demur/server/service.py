"""From a question to a decision that is kept, as long as the process lives; nothing of HTTP.

One pool is drawn for identical requests under way; what models fail at is an abstention with its cause, never a vote on
fewer paths than were calibrated; and a decision is in the log before anybody is told of it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from demur import event_loop
from demur.backends.protocol import Completion
from demur.errors import BackendError, DemurError, LogprobsMissing, ScoringError
from demur.pipeline.answerer import Asked, Spent
from demur.pipeline.shadow_comparison import IN_DOUBT, RAISED
from demur.records import Pool
from demur.server.api.asking import Question
from demur.server.api.replies import best_path
from demur.server.errors import ApiError
from demur.server.fan_out import FanOut, late_turn
from demur.server.outcomes import Doubt, Failure, MovedThreshold, Outcome
from demur.server.served import Models, Point
from demur.server.settings import ServiceSettings
from demur.server.sharing import Sharing
from demur.server.versions import shadows

_logger = logging.getLogger("demur.server")
_FULL = 2**64


class Log(Protocol):
    """Where decisions are kept."""

    async def add(self, outcome: Outcome, caller: str | None) -> None:
        """Keep a decision; it is safe when this returns."""
        ...

    async def check(self) -> None:
        """Raise StoreError where a decision could not be kept now."""
        ...


class Observer(Protocol):
    """What looks at decisions once they are made: monitors, shadows, metrics."""

    def saw(self, outcome: Outcome) -> None: ...


@dataclass(frozen=True)
class _Drawn:
    """What a pool came to: a decision, or why there is none; and how long models were waited for."""

    asked: Asked | None
    failure: Failure | None
    waited: float
    paths: int | None = None
    """How many came; None where it is not known how many the model drew, because it failed or was not waited for."""
    tokens: int = 0


class Service:
    """Answers or abstains, request after request."""

    def __init__(
        self,
        models: Models,
        settings: ServiceSettings,
        *,
        log: Log | None = None,
        observers: Sequence[Observer] = (),
        audit_secret: bytes = b"",
    ) -> None:
        self.models, self.settings, self.log, self.observers = models, settings, log, tuple(observers)
        self.fan_out = FanOut(settings.fan_out, settings.waiting)
        self.doubts: dict[str, Doubt] = {}
        """By the full name of a policy: that its promise is in doubt."""
        self.thresholds: dict[Point, MovedThreshold] = {}
        """The thresholds that audits move, where they do."""
        self.closing = False
        self._audit_secret = audit_secret
        self._pools: Sharing[_Drawn] = Sharing()
        self._drawing: set[asyncio.Task[Any]] = set()

    @property
    def underway(self) -> int:
        """Pools that are being drawn."""
        return len(self._pools)

    def is_audited(self, request_id: str) -> bool:
        """Whether a request is marked for audit: by a keyed hash of its id, so by nothing that it says."""
        if self.log is None:
            return False
        digest = hmac.digest(self._audit_secret, request_id.encode(), "sha256")
        return int.from_bytes(digest[:8], "big") < self.settings.audit_share * _FULL

    async def answer(
        self,
        question: Question,
        request_id: str,
        caller: str | None = None,
        idempotency: str | None = None,
        *,
        started: float | None = None,
        drew: Callable[[int | None, int], None] = lambda paths, tokens: None,
    ) -> Outcome:
        """Decide one request, and keep the decision; `started` is when its admission began, on the monotonic clock.

        `drew` is called with the paths and tokens that were drawn for this request, before anything is made of them;
        paths are None where the model failed on the way.
        """
        at = time.time_ns() // 1_000_000
        started = time.monotonic() if started is None else started
        self._refuse_when_closing()
        audited, question = self.is_audited(request_id), self._in_force(question)
        problem, point = question.problem, question.served.point(question.rule)
        moved = self.thresholds.get(point)
        # A pool that stopped early says how it compares with the calibrated threshold, and with no other.
        in_waves, raised = self.settings.waves is not None, moved is not None and moved.raised_key is not None
        whole = in_waves and (audited or raised)  # without waves all are
        same = (*point, problem.question, problem.digest, problem.groups, whole)
        drawn, mine, first = await self._pools.get(same, lambda: self._draw(question, whole=whole))
        drew(*((drawn.paths, drawn.tokens) if mine else (0, 0)))
        audited = audited and first  # a pool is audited once, and not only if its owner waits
        return await self._settled(
            question, request_id, caller, at, started, drawn, idempotency, audited=audited, mine=mine, moved=moved
        )

    async def decide(self, question: Question, pool: Pool, request_id: str, caller: str | None = None) -> Outcome:
        """Decide a pool that was drawn elsewhere, and keep the decision; raises where it is not as calibrated.

        It is never an audit: nobody here knows how it was drawn, so it says nothing of the policy's own pools.
        """
        started, at = time.monotonic(), time.time_ns() // 1_000_000
        self._refuse_when_closing()
        question = self._in_force(question)
        asked = await question.served.answerer.decide_async(pool, alpha=question.alpha, guarantee=question.guarantee)
        drawn = _Drawn(asked, None, 0.0)
        moved = self.thresholds.get(question.served.point(question.rule))
        return await self._settled(
            question, request_id, caller, at, started, drawn, audited=False, mine=True, moved=moved
        )

    def _in_force(self, question: Question) -> Question:
        """At the strictest alpha of its guarantee while the promise is in doubt, where an alarm has that effect."""
        if self.settings.on_alarm != "strictest" or question.served.full_name not in self.doubts:
            return question
        strictest = question.served.policy.point(None, question.guarantee)
        return question if strictest is question.rule else replace(question, rule=strictest, instead_of=question.rule)

    async def let_in(self) -> None:
        """Raise where a decision could not be made and kept now, before paths are paid for."""
        self._refuse_when_closing()
        if self.log is not None:
            await self.log.check()

    def _refuse_when_closing(self) -> None:
        if self.closing:
            raise ApiError(503, "the service is shutting down", code="shutting_down", headers={"Retry-After": "5"})

    async def _settled(
        self,
        question: Question,
        request_id: str,
        caller: str | None,
        at: int,
        started: float,
        drawn: _Drawn,
        idempotency: str | None = None,
        *,
        audited: bool,
        mine: bool,
        moved: MovedThreshold | None,
    ) -> Outcome:
        """The outcome of a request, kept and seen by all who look at it."""
        shadow, asked = None, drawn.asked
        if self.log is not None and asked is not None:
            deciding = partial(shadows.beside, self.models, question, asked)
            shadow = await event_loop.read_aside(asked.pool.length_of_answers, deciding)
        doubt = self.doubts.get(question.served.full_name)
        closed = doubt is not None and self.settings.on_alarm == "abstain"
        outcome = Outcome(
            request_id,
            question,
            at,
            drawn.asked,
            drawn.failure,
            audited=audited,
            shared=not mine,
            seconds=time.monotonic() - started,
            waited=drawn.waited,
            doubt=doubt,
            closed=closed,
            moved=moved,
            overruled=_overruling(drawn, moved, closed=closed),
            shadow=shadow,
            caller=caller,
            idempotency=idempotency,
        )
        if self.settings.show == "path":
            outcome = replace(outcome, shown=best_path(outcome))
        if self.log is not None:
            await self.log.add(outcome, caller)
            outcome = replace(outcome, seconds=time.monotonic() - started)  # the commit is waited for too
        for observer in self.observers:
            observer.saw(outcome)
        return outcome

    async def drain(self, seconds: float) -> None:
        """Take no more requests; those under way have so many seconds to finish, and then abstain."""
        self.closing = True
        until = time.monotonic() + seconds
        while self._drawing and time.monotonic() < until:
            await asyncio.sleep(0.05)
        for task in self._drawing:
            task.cancel()

    async def _draw(self, question: Question, *, whole: bool) -> _Drawn:
        """A pool's decision; what fails on the way is why there is none."""
        task = asyncio.current_task()
        assert task is not None
        self._drawing.add(task)
        try:
            return await self._drawn(question, whole=whole)
        except asyncio.CancelledError:
            if not self.closing:
                raise
            task.uncancel()
            return _Drawn(None, Failure("shutting_down", "the service was told to end", "CancelledError"), 0.0)
        finally:
            self._drawing.discard(task)

    async def _drawn(self, question: Question, *, whole: bool) -> _Drawn:
        served, settings = question.served, self.settings
        started, asked, failure, came = None, None, None, dict[int, Completion]()
        try:
            async with asyncio.timeout(settings.seconds), self.fan_out.paths(served.policy.n_paths, settings.seconds):
                started = time.monotonic()
                asked = await served.answerer.ask_async(
                    question.problem,
                    alpha=question.alpha,
                    guarantee=question.guarantee,
                    waves=settings.waves,
                    whole=whole,
                    came=came,
                )
        except TimeoutError:
            if started is None:  # no path was asked for
                raise late_turn(1.0) from None
            failure = Failure("too_slow", f"no decision within {settings.seconds:g} s", "TimeoutError")
        except BackendError as error:
            failure = Failure("upstream_failed", str(error), type(error).__name__)
        except (ScoringError, LogprobsMissing) as error:
            failure = Failure("scoring_failed", str(error), type(error).__name__)
        except DemurError as error:
            failure = Failure("not_decidable", str(error), type(error).__name__)
        except ApiError:
            raise
        except Exception as error:  # whatever a scorer or an extractor fails with, there is no vote
            _logger.error("a pool failed: %s", type(error).__name__, exc_info=error)
            name = type(error).__name__
            failure = Failure("not_decidable", f"{name}: {error}", name)
        assert started is not None
        waited = time.monotonic() - started if asked is None else asked.spent.seconds
        spent = Spent.on(came.values())
        known = failure is None or failure.kind not in ("upstream_failed", "too_slow")
        return _Drawn(
            asked, failure, waited, len(came) if known else None, spent.prompt_tokens + spent.completion_tokens
        )


def _overruling(drawn: _Drawn, moved: MovedThreshold | None, *, closed: bool) -> str | None:
    """What forbids an answer that the policy would give: a raised threshold, or an alarm; None where nothing does."""
    asked = drawn.asked
    if asked is None or asked.decision.abstained:
        return None
    raised = None if moved is None else moved.raised_key
    if raised is not None and not (asked.whole and asked.decision.key > raised):
        return RAISED
    return IN_DOUBT if closed else None
