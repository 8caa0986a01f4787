"""Asking canaries: one after the other, at a rate that all replicas share, each question once per policy version.

Who may ask next is settled in the store: the pace is a state that is replaced, and one replica alone replaces it. A
question is claimed before it is asked, and its result counts once, by its name in the monitor, before it is settled. A
replica that ends in between leaves a claim that runs out: the question is asked again, and counts once all the same.

A question that failed has no result, and is asked again when all others were. Both of its pools are then what such a
question comes to where it does not fail, so that exchanging the two still changes no probability.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demur import event_loop
from demur.errors import DemurError
from demur.pools.fields import FieldChoice, read_table
from demur.server.alarms.canary_questions import CanaryQuestions
from demur.server.alarms.reported import ReportedNames
from demur.server.alarms.watches import CanaryWatching
from demur.server.api.metrics import Metrics
from demur.server.errors import ApiError
from demur.server.served import Served
from demur.server.service import Service
from demur.store.service import Canary, ServiceStore

PACE = "canary pace"
_DAY = 24 * 3_600_000
_logger = logging.getLogger("demur.server")


@dataclass(frozen=True)
class Left:
    """How many of a policy's canaries were asked, and how many are left."""

    asked: int
    left: int


class CanaryRounds:
    """The canaries of every policy version that has some, by its full name."""

    def __init__(
        self,
        service: Service,
        store: ServiceStore,
        metrics: Metrics,
        questions: Mapping[str, CanaryQuestions],
        reported: ReportedNames,
    ) -> None:
        self.service, self.store, self.metrics, self.questions = service, store, metrics, dict(questions)
        self.reported = reported

    def left(self, served: Served) -> Left | None:
        """None where a policy has no canaries."""
        questions = self._of(served)
        if questions is None or served.number is None:
            return None
        answered = {one.problem for one in self.store.canaries.all(served.number) if one.state == "answered"}
        return Left(len(answered), len(questions.pools.keys() - answered))

    async def keep_asking(self) -> None:
        """Ask whenever it is time, until this is cancelled."""
        while self.questions:
            await asyncio.sleep(self.service.settings.watch_seconds)
            for served in list(self.service.models.active.values()):
                try:
                    await self.ask_next(served, time.time_ns() // 1_000_000)
                except (DemurError, ApiError, TimeoutError) as error:
                    _logger.warning("a canary of %s failed: %s", served.full_name, error)
                except Exception as error:  # whatever it is, the next one is asked
                    _logger.error("canaries: %s", type(error).__name__, exc_info=error)

    async def ask_next(self, served: Served, now: int) -> bool:
        """Ask the next canary of a policy, if it is time for one; whether one was asked and compared."""
        questions = self._of(served)
        if questions is None or self.service.closing:
            return False
        claimed = await asyncio.to_thread(self._claimed, served, questions, now)
        if claimed is None:
            return False
        try:
            await self._compare(served, questions, claimed)
        except BaseException:
            self.metrics.canaries.labels(served.full_name, "failed").inc()
            raise
        self.metrics.canaries.labels(served.full_name, "compared").inc()
        return True

    def _of(self, served: Served) -> CanaryQuestions | None:
        """Those of the version that answers: a run shows the model as it was when that version was calibrated."""
        active = self.service.models.active.get(served.name) is served
        return self.questions.get(served.full_name) if active else None

    def _claimed(self, served: Served, questions: CanaryQuestions, now: int) -> Canary | None:
        """The canary that this process is to ask; None where it is not time, another was quicker, or none is left."""
        assert served.number is not None
        between = round(_DAY / self.service.settings.canaries_per_day)
        state = self.store.monitors.read(served.number, PACE)
        due = 0 if state is None else state.document.get("next", 0)
        if now < due <= now + between:  # later than that it was set before the clock was set back
            return None
        known = {one.problem for one in self.store.canaries.all(served.number)}
        order = sorted(questions.order, key=lambda name: name in known)  # what failed comes last
        if not self.store.monitors.replace(
            served.number, PACE, {"next": now + between}, 0 if state is None else state.version
        ):
            return None
        seconds = self.service.settings.seconds + self.service.settings.late_seconds
        return self.store.canaries.claim_next(served.number, order, now, min(seconds, 86_000))

    async def _compare(self, served: Served, questions: CanaryQuestions, claimed: Canary) -> None:
        old, settings = questions.pools[claimed.problem], self.service.settings
        async with asyncio.timeout(settings.seconds), self.service.fan_out.paths(served.policy.n_paths):
            asked = await served.answerer.ask_async(old.problem)
        self.reported.heard(served, asked)
        fields = FieldChoice.of(served.policy.description)
        table = await event_loop.read_aside(asked.pool.length_of_answers, read_table, [asked.pool], fields)
        answers = old.beside(table.answers[0])
        await asyncio.to_thread(self._count, served, claimed, (old.key, asked.decision.key), answers)

    def _count(self, served: Served, claimed: Canary, keys: Any, answers: Any) -> None:
        assert served.number is not None
        assert claimed.lease_token is not None
        watching = CanaryWatching(self.store, served)
        watching.compare(claimed.problem, keys, answers, time.time_ns() // 1_000_000)
        self.store.canaries.settle(served.number, claimed.problem, claimed.lease_token, answered=True)
