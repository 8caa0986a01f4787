"""All monitors of one policy version, and what their alarms together say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from demur.calibration import CLUSTER
from demur.errors import InvalidValue
from demur.monitoring import CanaryMonitor, Diagnosis, DriftMonitor, Moved, diagnose
from demur.server.alarms.online import OnlineWatching
from demur.server.alarms.watches import (
    CANARIES,
    DRIFT,
    ERROR_DELTA,
    ERRORS,
    AuditWatching,
    CanaryWatching,
    DriftWatching,
    ErrorWatching,
    Watch,
    Watching,
    error_monitor,
)
from demur.server.outcomes import Doubt
from demur.server.served import Served
from demur.store.service import ServiceStore

KINDS = (DRIFT, CANARIES, ERRORS)
_FAR = 2**52
_CLUSTERS = (
    "Calibration counted clusters of questions, and requests do not say of which they are: every new question counts "
    "here, so that alarms and limits hold as stated only where each is of a cluster of its own."
)


@dataclass(frozen=True)
class Alarm:
    """One alarm that is on."""

    kind: str
    since: int
    began: int
    """When its monitor was begun: tells it from an earlier alarm that somebody cleared."""
    monitor: str
    words: str


class WatchedPolicy:
    """Watches one policy version, wherever its decisions are made."""

    def __init__(self, store: ServiceStore, served: Served, online_step: float | None = None) -> None:
        assert served.number is not None
        self.store, self.served, self.policy = store, served, served.number
        self.notes: list[str] = []
        """What is not watched, or not as it is promised, and why."""
        if served.policy.unit == CLUSTER:
            self.notes.append(_CLUSTERS)
        self.drift = self._drift()
        self.errors = self._errors()
        self.online = [] if online_step is None else self._online(online_step)
        self.canaries = CanaryWatching(store, served)

    @property
    def all(self) -> list[Watching]:
        return [*self._by_audits, self.canaries]

    @property
    def _by_audits(self) -> list[AuditWatching]:
        return [*([] if self.drift is None else [self.drift]), *self.errors, *self.online]

    def look(self, now: int, waited: float, label_days: float) -> None:
        """Give turns to the audits that arrived so many seconds ago, and have each monitor take what it can."""
        while self.store.audits.give_turns(self.policy, max(0, now - int(waited * 1000))):
            pass
        for watching in self._by_audits:
            while watching.look(now, label_days):
                pass

    def alarms(self) -> list[Alarm]:
        """The alarms that are on, the earliest first."""
        found = []
        for watching in self.all:
            _, watch = watching.read()
            if watch.since is not None and watch.monitor is not None:
                kind = watching.kind.partition(" ")[0]
                found.append(Alarm(kind, watch.since, watch.began, watching.kind, watch.monitor.sentence))
        return sorted(found, key=lambda alarm: alarm.since)

    def diagnosis(self, alarms: list[Alarm]) -> Diagnosis:
        """What the alarms together say."""
        first = {alarm.kind: time_of(alarm.since) for alarm in reversed(alarms)}
        drift = None if self.drift is None else self.watch(self.drift)
        changed = None if drift is None else drift.changed
        if drift is None or changed is None:
            return diagnose(canary_since=first.get(CANARIES), errors_since=first.get(ERRORS))
        assert isinstance(drift.monitor, DriftMonitor)
        return diagnose(
            canary_since=first.get(CANARIES),
            drift_since=first.get(DRIFT),
            errors_since=first.get(ERRORS),
            drift_from=time_of(changed),
            drift_change=drift.monitor.change,
            canaries=self._canaries_after(changed),
        )

    def _canaries_after(self, time: int) -> Moved:
        """What became of the canaries that were asked after a time: those before show the model as it was."""
        asked = self.store.canaries.all(self.policy)
        return self.compared().moved(one.problem for one in asked if one.state == "answered" and one.at > time)

    def compared(self) -> CanaryMonitor:
        """What canaries came to."""
        monitor = self.canaries.read()[1].monitor
        assert isinstance(monitor, CanaryMonitor)
        return monitor

    def watch(self, watching: Watching) -> Watch:
        return watching.read()[1]

    def other_steps(self) -> list[str]:
        """Which thresholds move in other steps than this service was told."""
        return [words for watching in self.online if (words := watching.other_step) is not None]

    def clear(self, now: int) -> None:
        """Begin all monitors anew, behind everything that is in the log."""
        while self.store.audits.give_turns(self.policy, _FAR):
            pass
        turn = self.store.audits.last_turn(self.policy)
        for watching in self.all:
            watching.restart(turn, now)

    def _drift(self) -> DriftWatching | None:
        try:
            return DriftWatching(self.store, self.served)
        except InvalidValue as error:
            self.notes.append(f"Drift is not watched: {error}")
            return None

    def _online(self, step: float) -> list[OnlineWatching]:
        """One per operating point whose threshold audits can move."""
        movable = []
        for rule in self.served.policy.points:
            try:
                movable.append(OnlineWatching(self.store, self.served, rule, step))
            except InvalidValue as error:
                self.notes.append(
                    f"The threshold at alpha {rule.alpha:g} ({rule.guarantee.name}) is not moved by audits: {error}"
                )
        return movable

    def _errors(self) -> list[ErrorWatching]:
        """One per operating point; those that can be watched share the probability of a false alarm."""
        refused: dict[int, str] = {}
        points = self.served.policy.points
        for place, rule in enumerate(points):
            try:
                error_monitor(self.served, rule, ERROR_DELTA)
            except InvalidValue as error:
                refused[place] = str(error)
                self.notes.append(
                    f"Errors at alpha {rule.alpha:g} ({rule.guarantee.name}) are counted, no more: {error}"
                )
        share = ERROR_DELTA / max(1, len(points) - len(refused))
        return [
            ErrorWatching(self.store, self.served, rule, None if place in refused else share)
            for place, rule in enumerate(points)
        ]


def doubt_of(diagnosis: Diagnosis) -> Doubt | None:
    """What responses say; None where nothing is in doubt."""
    if diagnosis.since is None:
        return None
    return Doubt(diagnosis.since.isoformat(timespec="seconds"), diagnosis.sentence)


def time_of(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
