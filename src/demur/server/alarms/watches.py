"""What one monitor watches, on its way from the store and back: replicas share its state, and none counts twice.

A state holds the monitor, how far it has come (`turn`, in the order of `store.audits`), when its alarm was raised, and
when it was begun. It is put back only in place of the state that it was read as; a replica that comes second takes
nothing, for what it would add is in the state already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from demur.calibration import Rule
from demur.errors import MonitorFileError, StoreError
from demur.monitoring import AuditedQuestion, CanaryMonitor, DriftMonitor, ErrorMonitor
from demur.monitoring.monitor import BettingMonitor, Monitor
from demur.server.alarms.audit_labels import audited_question, is_at
from demur.server.api.replies import CLOSED
from demur.server.served import Served
from demur.store.service import Decision, Feedback, ServiceStore

DRIFT, CANARIES, ERRORS = "drift", "canaries", "errors"
DRIFT_DELTA, CANARY_DELTA, ERROR_DELTA = 0.01, 0.01, 0.03
"""Without any change, the probability that a policy version's monitor of a kind ever raises an alarm."""
_AT_ONCE = 1000
_COUNTED = ("abstained", "right", "wrong", "given_up")


@dataclass
class Watch:
    """The state of one monitor."""

    monitor: Monitor | None
    """None where the policy has no law that it could be judged by; audits are counted all the same."""
    turn: int = 0
    """Of the last audit that was taken."""
    since: int | None = None
    """When its alarm was raised."""
    began: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    """Audits by what became of them, where labels are watched."""
    asked: dict[int, int] = field(default_factory=dict)
    """Where drift is watched: when the keys were asked for with which a change may have begun."""

    @property
    def changed(self) -> int | None:
        """When the change that an alarm found probably began: at the alarm, where that is not known."""
        if self.since is None or not isinstance(self.monitor, DriftMonitor):
            return None
        return min(self.since, self.asked.get(self.monitor.change_from or 0, self.since))

    def note_asked(self, at: int) -> None:
        """Note when the last key of a drift monitor was asked for, and forget those that do not matter any more."""
        assert isinstance(self.monitor, DriftMonitor)
        starts = self.monitor.starts.values()
        known = self.asked | {self.monitor.n: at}
        self.asked = {number: asked for number, asked in known.items() if number in starts}

    def note_alarm(self, now: int) -> None:
        if self.since is None and isinstance(self.monitor, BettingMonitor) and self.monitor.alarm:
            self.since = now

    def document(self) -> dict[str, Any]:
        known: dict[str, Any] = {"turn": self.turn, "since": self.since, "began": self.began, "counts": self.counts}
        known |= {"asked": sorted(self.asked.items())} if self.asked else {}
        return {**known, "monitor": None if self.monitor is None else self.monitor.document()}


class Watching(ABC):
    """One monitor of one policy, kept in the store under its kind."""

    def __init__(self, store: ServiceStore, served: Served, kind: str, made: type[Monitor] | None) -> None:
        assert served.number is not None
        self.store, self.served, self.policy, self.kind, self._made = store, served, served.number, kind, made
        self._known: tuple[int, Watch] | None = None

    @abstractmethod
    def fresh(self) -> Monitor | None:
        """A monitor that has seen nothing."""

    def anew(self, watch: Watch) -> Monitor | None:
        """What takes the place of a monitor that is to begin anew."""
        return self.fresh()

    def read(self) -> tuple[int, Watch]:
        """The state as it is stored, and its version; one that is not there yet begins with what comes."""
        stored = self.store.monitors.read(self.policy, self.kind)
        version = 0 if stored is None else stored.version
        if self._known is None or self._known[0] != version:
            self._known = version, Watch(self.fresh()) if stored is None else self._of(stored.document)
        return self._known

    def change(self, changed: Callable[[Watch], bool]) -> bool:
        """Change the state and put it back, unless nothing changed; False where another replica was quicker."""
        version, watch = self.read()
        self._known = None  # whatever happens, this object is not the stored one until it is stored
        if not changed(watch):
            self._known = version, watch
            return True
        if not self.store.monitors.replace(self.policy, self.kind, watch.document(), version):
            return False
        self._known = version + 1, watch
        return True

    def restart(self, turn: int, now: int) -> None:
        """Begin anew behind a turn."""
        while True:
            version, watch = self.read()
            anew = Watch(self.anew(watch), turn=turn, began=now)
            if self.store.monitors.replace(self.policy, self.kind, anew.document(), version):
                return

    def _of(self, document: dict[str, Any]) -> Watch:
        where = f"the monitor {self.kind} of {self.served.full_name} in the store"
        kept = document.get("monitor")
        monitor = None
        if self._made is not None and kept is not None:
            if not isinstance(kept, dict):
                raise StoreError(f"{where} cannot be read: its monitor is {kept!r:.80}")
            try:
                monitor = self._made.of_document(kept, self.served.policy, where)
            except MonitorFileError as error:
                raise StoreError(error.message, error.remedy) from None
        turn, since, began, counts = (document.get(name) for name in ("turn", "since", "began", "counts"))
        numbers = [turn, began, *([] if since is None else [since])]
        if not (isinstance(counts, dict) and sorted(counts) == sorted(_COUNTED)):
            raise StoreError(f"{where} cannot be read: its counts are {counts!r:.80}")
        if not all(type(number) is int and number >= 0 for number in (*numbers, *counts.values())):
            raise StoreError(f"{where} cannot be read: it holds {document!r:.80}")
        return Watch(monitor, int(turn or 0), since, int(began or 0), counts, _asked(document.get("asked", []), where))


@dataclass(frozen=True)
class Spoken:
    """What people said of decisions until now."""

    words: dict[str, tuple[Feedback, ...]]
    now: int
    label_days: float

    def of(self, served: Served, decision: Decision) -> AuditedQuestion:
        """What is known of one that was audited."""
        return audited_question(served, decision, self.words.get(decision.request, ()), self.now, self.label_days)


class AuditWatching(Watching):
    """A monitor that takes audits in their turns."""

    def look(self, now: int, label_days: float) -> bool:
        """Take the audits whose turn it is; whether there may be more."""
        more = False

        def changed(watch: Watch) -> bool:
            nonlocal more
            room = self.room(watch)
            audits = self.store.audits.after(self.policy, watch.turn, room) if room else []
            requests = [audit.request for audit in audits]
            decisions = self.store.decisions.several(requests)
            spoken = Spoken(self._words(decisions), now, label_days)
            before = watch.turn
            for audit in audits:
                decision = decisions.get(audit.request)
                if (decision is None or self._is_new(decision)) and not self.take(watch, decision, spoken):
                    break
                watch.turn = audit.turn
                watch.note_alarm(now)
            more = bool(audits) and watch.turn == audits[-1].turn
            return self.hear(watch, now, label_days) or watch.turn != before

        return self.change(changed) and more

    def room(self, watch: Watch) -> int:
        """How many audits it can take at once."""
        return _AT_ONCE

    @abstractmethod
    def take(self, watch: Watch, decision: Decision | None, spoken: Spoken) -> bool:
        """Take one audit, None where it was forgotten; False where it must be waited for."""

    def _is_new(self, decision: Decision) -> bool:
        """Whether its question is new to the policy: what calibrated it, or shaped its votes, cannot test it."""
        return decision.question_digest not in self.served.policy.seen.questions

    def hear(self, watch: Watch, now: int, label_days: float) -> bool:
        """Take labels of audits that were taken before; whether there were any."""
        return False

    def _words(self, decisions: dict[str, Decision]) -> dict[str, tuple[Feedback, ...]]:
        return {}


class DriftWatching(AuditWatching):
    """Keys of audits: whole pools, chosen without regard to what they say."""

    def __init__(self, store: ServiceStore, served: Served) -> None:
        super().__init__(store, served, DRIFT, DriftMonitor)
        self.fresh()

    def fresh(self) -> DriftMonitor:
        return DriftMonitor(self.served.policy, delta=DRIFT_DELTA)

    def take(self, watch: Watch, decision: Decision | None, spoken: Spoken) -> bool:
        if decision is not None and decision.vote_key is not None:  # what failed has no key
            assert isinstance(watch.monitor, DriftMonitor)
            watch.monitor.update([list(decision.vote_key)], [decision.drawn])
            watch.note_asked(decision.at)
        return True


class ErrorWatching(AuditWatching):
    """Audits that were asked at one operating point, and their labels."""

    def __init__(self, store: ServiceStore, served: Served, rule: Rule, delta: float | None) -> None:
        self.rule, self.delta = rule, delta
        kind = f"{ERRORS} {rule.alpha:g} {rule.guarantee.name}"
        super().__init__(store, served, kind, None if delta is None else ErrorMonitor)

    def fresh(self) -> ErrorMonitor | None:
        return None if self.delta is None else error_monitor(self.served, self.rule, self.delta)

    def awaited(self, watch: Watch, now: int, label_days: float) -> list[AuditedQuestion]:
        """The audits that have a turn and were not taken yet, the first of them for lack of a label."""
        audits = self.store.audits.after(self.policy, watch.turn, 10_000)
        decisions = self.store.decisions.several([audit.request for audit in audits])
        spoken = Spoken(self._words(decisions), now, label_days)
        made = (decisions[audit.request] for audit in audits if audit.request in decisions)
        return [spoken.of(self.served, one) for one in made if self._is_mine(one) and self._is_new(one)]

    def take(self, watch: Watch, decision: Decision | None, spoken: Spoken) -> bool:
        if decision is None:  # asked at whichever point: its label may have been awaited, and is given up
            if isinstance(watch.monitor, ErrorMonitor):
                watch.monitor.update(False)
            return True
        if not self._is_mine(decision):
            return True
        known = spoken.of(self.served, decision)
        if known.awaited and not known.given_up:
            return False
        wrong = bool(known.answered and known.wrong)
        watch.counts[_counted_as(known)] += 1
        if isinstance(watch.monitor, ErrorMonitor):
            watch.monitor.update(wrong)
        return True

    def _is_mine(self, decision: Decision) -> bool:
        """Whether it is this point's own decision; none is while an alarm forbids answers.

        Abstentions from that time would count without the answers among them, and errors would seem to be fewer. What
        a raised threshold overruled is: left out, it would raise the rate of errors among the rest.
        """
        return is_at(self.rule, decision) and not (decision.document.get("in_doubt") or {}).get(CLOSED)

    def _words(self, decisions: dict[str, Decision]) -> dict[str, tuple[Feedback, ...]]:
        return self.store.feedback.latest(
            [made.request for made in decisions.values() if made.outcome == "answered" and self._is_mine(made)]
        )


class CanaryWatching(Watching):
    """Old questions, asked again."""

    def __init__(self, store: ServiceStore, served: Served) -> None:
        super().__init__(store, served, CANARIES, CanaryMonitor)

    def fresh(self) -> CanaryMonitor:
        return CanaryMonitor(self.served.policy, delta=CANARY_DELTA)

    def compare(
        self,
        problem: str,
        keys: tuple[Sequence[float], Sequence[float]],
        answers: tuple[Sequence[Any], Sequence[Any]] | None,
        now: int,
    ) -> None:
        """Take one question's old and new pool, once: whoever brings it a second time changes nothing."""
        old_answers, new_answers = answers or (None, None)

        def changed(watch: Watch) -> bool:
            monitor = watch.monitor
            assert isinstance(monitor, CanaryMonitor)
            if problem in monitor.asked:
                return False
            monitor.update(*keys, id=problem, old_answers=old_answers, new_answers=new_answers)
            watch.note_alarm(now)
            return True

        while not self.change(changed):
            pass


def _asked(pairs: Any, where: str) -> dict[int, int]:
    """By the number of a key, when it was asked for."""
    try:
        asked = dict(pairs)
    except (TypeError, ValueError):
        asked = None
    if asked is None or not all(type(one) is int and one >= 0 for pair in asked.items() for one in pair):
        raise StoreError(f"{where} cannot be read: the times of its keys are {pairs!r:.80}")
    return asked


def _counted_as(known: AuditedQuestion) -> str:
    if not known.answered:
        return "abstained"
    return "given_up" if known.wrong is None else "wrong" if known.wrong else "right"


def error_monitor(served: Served, rule: Rule, delta: float) -> ErrorMonitor:
    return ErrorMonitor(served.policy, alpha=rule.guarantee.alpha, guarantee=rule.guarantee.name, delta=delta)
