"""The alarms of a service: looked for every few seconds in every process, by a state that all of them share.

Each process does the same: it gives turns to audits, has monitors take them, reads the alarms that are on, and has the
service say so. It does not matter which of them does the work, or whether two do at once: a monitor's state is put back
only in place of the one that was read (`watches`), so that each audit counts once, and a process that ends takes
nothing with it. What is in doubt is known before the first request is answered.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Mapping

from demur.errors import DemurError
from demur.server.alarms.canary_questions import CanaryQuestions
from demur.server.alarms.canary_rounds import CanaryRounds
from demur.server.alarms.online import OnlineWatching
from demur.server.alarms.pool_sizes import PoolSizes
from demur.server.alarms.reported import ReportedNames
from demur.server.alarms.watched import KINDS, Alarm, WatchedPolicy, doubt_of
from demur.server.api.metrics import Metrics
from demur.server.outcomes import Doubt, MovedThreshold
from demur.server.served import Point, Served
from demur.server.service import Service
from demur.store.service import ServiceStore

ALARM, CLEARED = "alarm", "cleared"
_CHANCE = random.Random()
"""Of its own: a program's seeded `random` is not drawn from behind its back."""
_logger = logging.getLogger("demur.server")


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


class Alarms:
    """Watches every policy that a service serves."""

    def __init__(
        self,
        service: Service,
        store: ServiceStore,
        metrics: Metrics,
        canaries: Mapping[str, CanaryQuestions] | None = None,
    ) -> None:
        self.service, self.store, self.metrics = service, store, metrics
        self.reported, self.sizes = ReportedNames(), PoolSizes()
        self.canaries = CanaryRounds(service, store, metrics, canaries or {}, self.reported)
        self._watched: dict[int, WatchedPolicy] = {}
        self._told: set[tuple[str, str, int]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._looking = threading.RLock()

    def watched(self, served: Served) -> WatchedPolicy:
        """The monitors of a policy version; what cannot be watched is said once."""
        assert served.number is not None
        if served.number not in self._watched:
            self._watched[served.number] = made = WatchedPolicy(self.store, served, self.service.settings.online_step)
            for note in (*made.notes, *made.other_steps()):
                _logger.warning("%s: %s", served.full_name, note)
        return self._watched[served.number]

    def kept(self) -> list[Served]:
        """What is served and has its decisions in the store."""
        return [served for served in self.service.models.all if served.number is not None]

    def look(self, now: int | None = None) -> None:
        """Take what is new, and say what is in doubt; may be called from any thread."""
        with self._looking:
            self._look(now)

    def _look(self, now: int | None) -> None:
        now, settings = milliseconds() if now is None else now, self.service.settings
        doubts: dict[str, Doubt] = {}
        thresholds: dict[Point, MovedThreshold] = {}
        for served in self.kept():
            watched = self.watched(served)
            watched.look(now, settings.seconds + settings.late_seconds, settings.label_days)
            alarms = watched.alarms()
            doubt = doubt_of(watched.diagnosis(alarms))
            if doubt is not None:
                doubts[served.full_name] = doubt
            self._tell(served, alarms)
            for watching in watched.online:
                thresholds[served.point(watching.rule)] = self._moved(served, watching)
            self.reported.note(self.store, served, now)
            self.sizes.note(self.store, served, now)
        self.service.doubts, self.service.thresholds = doubts, thresholds

    def clear(self, served: Served, who: str, note: str | None = None, now: int | None = None) -> None:
        """Have the promise of a policy no longer be in doubt: its monitors begin anew. Who says so is an event."""
        with self._looking:
            self._clear(served, who, note, now)

    def _clear(self, served: Served, who: str, note: str | None, now: int | None) -> None:
        now, watched = milliseconds() if now is None else now, self.watched(served)
        alarms = watched.alarms()
        watched.clear(now)
        words = f"{who} cleared the doubts about {served.full_name}."
        facts = {"who": who, "note": self.service.settings.kept(note), "alarms": [alarm.words for alarm in alarms]}
        self.store.events.note(now, CLEARED, words, policy=watched.policy, facts=facts)
        self.look(now)

    def _tell(self, served: Served, alarms: list[Alarm]) -> None:
        on = {alarm.kind for alarm in alarms}
        for kind in KINDS:
            self.metrics.alarms.labels(served.full_name, kind).set(kind in on)
        for alarm in alarms:
            known = (served.full_name, alarm.monitor, alarm.began)
            if known in self._told:
                continue
            self.store.events.note(
                alarm.since, ALARM, alarm.words, policy=served.number, facts={"monitor": alarm.monitor},
                once=f"{alarm.monitor}:{alarm.began}",
            )  # fmt: skip
            self._told.add(known)
            _logger.warning("alarm: %s: %s", served.full_name, alarm.words)

    def _moved(self, served: Served, watching: OnlineWatching) -> MovedThreshold:
        state, rule = watching.state(), watching.rule
        labels = (served.full_name, f"{rule.alpha:g} {rule.guarantee.name}")
        self.metrics.thresholds.labels(*labels).set(state.threshold_key[0])
        self.metrics.most_errors.labels(*labels).set(state.bound())
        self.metrics.awaited.labels(*labels).set(len(state.awaited))
        return MovedThreshold(state.raised_key, state.known_errors)

    async def start(self) -> None:
        """Read what is in doubt, and go on looking until `stop`."""
        await asyncio.to_thread(self.look)
        self._tasks = [asyncio.create_task(self._keep_looking()), asyncio.create_task(self.canaries.keep_asking())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self.service.settings.watch_seconds * _CHANCE.uniform(0.8, 1.2))
            try:
                await asyncio.to_thread(self.look)
            except DemurError as error:  # the store is away, say: what was in doubt stays so
                _logger.error("alarms could not be looked for: %s", error)
            except Exception as error:  # whatever it is, this goes on looking
                _logger.error("alarms could not be looked for: %s", type(error).__name__, exc_info=error)
