"""Are there more errors than the calibration allows? An e-process on audited questions.

    c       the calibrated level: the rate that this policy's true rate exceeds with probability at most δ/2
    L       1 where an audited question was answered and is wrong, else 0: abstentions are no errors
    e       Π (L·q/c + (1 − L)·(1 − q)/(1 − c)), mixed over rates q > c and over when the change began

**Against c, not against alpha.** A threshold at the k-th largest wrong key of n has a true rate that is random, with
the law Beta(k, n + 1 − k) (or smaller: ties, scarce errors). It exceeds alpha after almost half of all marginal
calibrations, by design, for the promise is about the average. A test of alpha would sooner or later sound an alarm for
each of those, though nothing changed. c is the upper δ/2 point of that law; while the true rate is at most c, each
factor has mean at most 1, so that P(any alarm, ever) ≤ δ/2 + δ/2 without drift. For `HighProbability` the same formula
gives a c near its alpha.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from demur.calibration import Level, Rule, Shifted
from demur.calibration.guarantee import RankGuarantee
from demur.errors import InvalidValue
from demur.evidence.laws import ErrorLaw
from demur.monitoring.betting import LARGEST_LOG_FACTOR, Stakes, as_count
from demur.monitoring.monitor import BettingMonitor, as_level, refuse_groups, take, what_counts
from demur.policy.policy import Policy

_ODDS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""The rates bet on: their odds, as multiples of the level's odds."""


class ErrorMonitor(BettingMonitor):
    """Raises an alarm when more audited questions are answered wrongly than the calibration allows.

    If questions are exchangeable with the calibration ones, the probability of any alarm, ever, is at most `delta`,
    over calibration sets and audits together. The audited questions must be a random part of all traffic, chosen before
    anybody knows how they were answered; those that were not answered count, and need no label. Where calibration
    counted clusters, take one question of each. An alarm says that the error rate is or was above `level`, which is
    itself above alpha.
    """

    kind = "audited errors"

    def __init__(
        self, policy: Policy, *, alpha: Level | None = None, guarantee: str | None = None, delta: float = 0.05
    ) -> None:
        self.policy, self.delta = policy, as_level(delta)
        self.rule = policy.point(alpha, guarantee)
        self.level = calibrated_level(policy, self.rule, self.delta / 2)
        self.errors = 0
        """Audited questions that were answered wrongly."""
        self.stakes = Stakes(len(_ODDS), 2 / self.delta)
        rates = [odds * self.level / (1 - self.level + odds * self.level) for odds in _ODDS]
        self._if_wrong = tuple(rate / self.level for rate in rates)
        self._if_not = tuple((1 - rate) / (1 - self.level) for rate in rates)

    @property
    def sentence(self) -> str:
        """What it has found, and what that means."""
        told = f"{self.errors} wrong answers in {self.n} audited questions"
        level = f"{self.level:.3g}, the most that calibration allows at alpha = {self.rule.alpha:g}"
        if not self.alarm:
            return f"{told}: no sign of a rate above {level} (p = {self.p_value:.3g}).{what_counts(self.policy)}"
        return (
            f"{told}: the rate is or was above {level} (alarm at question {self.alarm_at}, p = {self.p_value:.3g}). "
            f"The promise no longer holds; calibrate again on questions like these.{what_counts(self.policy)}"
        )

    def update(self, wrong: bool | ArrayLike) -> Self:
        """Take one audited question, or many in the order they came: was it answered, and wrongly?"""
        events = np.asarray(wrong)
        if not events.size:  # nothing was audited
            return self
        if events.dtype != np.bool_ or events.ndim > 1:
            raise InvalidValue(
                f"audited questions must be booleans, True where answered wrongly, got {wrong!r:.60}",
                "give `answered & ~correct`, or counts with `update_counts`",
            )
        for event in np.atleast_1d(events).tolist():
            self.errors += event
            self.stakes.bet(self._if_wrong if event else self._if_not)
        return self

    def update_counts(self, errors: int, audited: int) -> Self:
        """Take a tally of audited questions, whose order is not known: an alarm can only come at its end."""
        errors, audited = as_count(errors, "errors"), as_count(audited, "audited")
        if errors > audited:
            raise InvalidValue(f"errors must be among the audited questions, got {errors} of {audited}")
        if audited:
            logs = (
                errors * math.log(wrong) + (audited - errors) * math.log(right)
                for wrong, right in zip(self._if_wrong, self._if_not, strict=True)
            )
            self.errors += errors
            self.stakes.bet([math.exp(min(log, LARGEST_LOG_FACTOR)) for log in logs], audited)
        return self

    def state(self) -> dict[str, Any]:
        known = {"delta": self.delta, "alpha": self.rule.alpha, "guarantee": self.rule.guarantee.name}
        return {**known, "errors": self.errors, "stakes": self.stakes.document()}

    @classmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        delta, alpha, guarantee, errors, stakes = take(state, "delta", "alpha", "guarantee", "errors", "stakes")
        monitor = cls(policy, alpha=alpha, guarantee=guarantee, delta=delta)
        if not isinstance(stakes, dict):
            raise InvalidValue(f"its stakes must be an object, got {stakes!r:.60}")
        monitor.stakes.restore(stakes)
        monitor.errors = as_count(errors, "errors")
        if monitor.errors > monitor.n:
            raise InvalidValue(f"errors must be among the audited questions, got {monitor.errors} of {monitor.n}")
        return monitor


def calibrated_level(policy: Policy, rule: Rule, delta: float) -> float:
    """The rate that the true rate of a rule exceeds with probability at most delta, over calibration sets.

    Where sizes are kept apart, they may occur in use as they like: then it is the largest of their levels, δ shared.
    """
    if not rule.feasible:
        raise InvalidValue(f"this policy never answers, so that there is no error to audit: {rule.too_few}")
    if isinstance(rule.guarantee, Shifted):
        raise InvalidValue(
            "no exact law of errors is known for a promise by the weights of questions, and a monitor needs one",
            "audit instead, or name another as {guarantee}",
        )
    refuse_groups(rule)
    if not isinstance(rule.law, ErrorLaw) or not isinstance(rule.guarantee, RankGuarantee):
        raise InvalidValue(
            f"the guarantee {rule.guarantee.name} is about the answers given, and this monitors errors among all "
            "questions"
            if rule.among_answers
            else f"the guarantee {rule.guarantee.name} has no exact law of errors that they could be judged by",
            "name another as {guarantee}",
        )
    if policy.strata.by_chance or len(policy.sizes) == 1:
        level = _upper_point(rule.law, delta)
    else:
        taken = [votes for size, votes in policy.sizes.items() if rule.takes(size)]
        level = max(_upper_point(rule.guarantee.law(votes), delta / len(taken)) for votes in taken)
    if not level < 1:
        raise InvalidValue(
            f"alpha = {rule.alpha:g} with {rule.n} calibration {rule.unit}s bounds no error rate", "calibrate on more"
        )
    return level


def _upper_point(law: ErrorLaw, delta: float) -> float:
    """Of Beta(k, n + 1 − k), or of the largest of as many as were chosen from; 1 where the rank bounds nothing."""
    return float(1 - betaincinv(law.n + 1 - law.k, law.k, delta / law.choices)) if law.k <= law.n else 1.0
