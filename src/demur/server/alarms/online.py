"""Thresholds that audits move, by option: one per operating point of a policy version, shared by all processes.

A process decides by the threshold that it last read, and keeps with each decision how many errors that rested on
(`replies.KNOWN_ERRORS`); so the bound of `AuditedThreshold` holds for all of them together, however far behind. Audits
are entered in their turns. Labels are looked up for those that are awaited, and may come in any order.
"""

from __future__ import annotations

from typing import Any

from demur.calibration import Rule, exact_alpha
from demur.errors import InvalidValue, StoreError
from demur.monitoring import AuditedThreshold
from demur.server.alarms.audit_labels import audited_question, is_at, is_too_late
from demur.server.alarms.watches import AuditWatching, Spoken, Watch
from demur.server.api.replies import KNOWN_ERRORS
from demur.server.served import Models, Served
from demur.store.service import Decision, ServiceStore

ONLINE = "online"
MOST_AWAITED = 2_000
"""So many labels are awaited at once; later audits wait for their turn. It keeps the state small."""


class OnlineWatching(AuditWatching):
    """The threshold of one operating point."""

    def __init__(self, store: ServiceStore, served: Served, rule: Rule, step: float) -> None:
        self.rule, self.step = rule, step
        super().__init__(store, served, f"{ONLINE} {rule.alpha:g} {rule.guarantee.name}", AuditedThreshold)
        self.fresh()

    def fresh(self) -> AuditedThreshold:
        return audited_threshold(self.served, self.rule, self.step)

    def anew(self, watch: Watch) -> AuditedThreshold:
        """From the calibrated threshold; answers that were decided before are known by the errors known before."""
        return audited_threshold(self.served, self.rule, self.step, _moved(watch).known_errors)

    def look(self, now: int, label_days: float) -> bool:
        if self.store.monitors.read(self.policy, self.kind) is None:
            self._begin(now)
        return super().look(now, label_days)

    def _begin(self, now: int) -> None:
        """Begin behind the audits that were there before; whoever does so first is who did."""
        watch = Watch(self.fresh(), turn=self.store.audits.last_turn(self.policy), began=now)
        self.store.monitors.replace(self.policy, self.kind, watch.document(), 0)

    def state(self) -> AuditedThreshold:
        """As it is stored now, an object of its own: other threads may be changing what they read."""
        stored = self.store.monitors.read(self.policy, self.kind)
        return self.fresh() if stored is None else _moved(self._of(stored.document))

    @property
    def other_step(self) -> str | None:
        """That it moves in other steps than this service was told, in words; None where it does not."""
        step = self.state().step
        if step == exact_alpha(self.step):
            return None
        return (
            f"The threshold at alpha {self.rule.alpha:g} ({self.rule.guarantee.name}) moves in steps of "
            f"{float(step):g}, as it began, and not of {self.step:g}, until somebody clears it."
        )

    def room(self, watch: Watch) -> int:
        return max(0, min(super().room(watch), MOST_AWAITED - len(_moved(watch).awaited)))

    def take(self, watch: Watch, decision: Decision | None, spoken: Spoken) -> bool:
        if decision is None or not is_at(self.rule, decision):
            return True  # forgotten, or asked at another point
        moved = _moved(watch)
        answered, known = decision.outcome == "answered", _known_errors(decision)
        known = known if known <= moved.known_errors else 0  # no state of this store: as if of the first
        moved.enter(decision.request, answered=answered, known_errors=known, at=decision.at)
        return True

    def hear(self, watch: Watch, now: int, label_days: float) -> bool:
        moved = _moved(watch)
        words = self.store.feedback.latest(moved.awaited)
        decisions = self.store.decisions.several(words)
        before = len(moved.awaited)
        for name, label in list(moved.awaited.items()):
            wrong = None
            if name in decisions:
                wrong = audited_question(self.served, decisions[name], words[name], now, label_days).wrong
            if wrong is not None:
                moved.update(name, wrong)
            elif is_too_late(label.at, now, label_days):
                moved.give_up(name)
        return len(moved.awaited) != before

    def _of(self, document: dict[str, Any]) -> Watch:
        watch = super()._of(document)
        if watch.monitor is None:
            raise StoreError(
                f"the monitor {self.kind} of {self.served.full_name} in the store cannot be read: it is gone"
            )
        return watch


def audited_threshold(served: Served, rule: Rule, step: float, earlier_errors: int = 0) -> AuditedThreshold:
    """At the calibrated threshold of an operating point; raises where audits cannot move it."""
    alpha, guarantee = rule.guarantee.alpha, rule.guarantee.name
    return AuditedThreshold(served.policy, alpha=alpha, guarantee=guarantee, step=step, earlier_errors=earlier_errors)


def refuse_nothing_to_move(models: Models, step: float | None, *, logged: bool) -> None:
    """Raise where thresholds are to follow audits, and none can."""
    if step is None:
        return
    if not logged:
        raise InvalidValue("a threshold that follows audits needs the log that they are in", "leave {no_log} out")
    reasons = []
    for served in models.all:
        for rule in served.policy.points:
            try:
                audited_threshold(served, rule, step)
            except InvalidValue as error:
                reasons.append(f"{served.full_name} at alpha {rule.alpha:g}: {error.message}")
            else:
                return
    raise InvalidValue(f"no threshold here can follow audits ({'; '.join(reasons)[:600]})", "leave {online_step} out")


def _moved(watch: Watch) -> AuditedThreshold:
    assert isinstance(watch.monitor, AuditedThreshold)
    return watch.monitor


def _known_errors(decision: Decision) -> int:
    """The errors that its threshold rested on; none where it was decided by a process that knew of no such thing."""
    known = decision.document.get(KNOWN_ERRORS, 0)
    return known if type(known) is int and known >= 0 else 0
