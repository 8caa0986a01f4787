"""What audits say of a policy in use, beside what calibration predicted.

Limits hold at all times at once (`confidence`), for people look every day; and whatever the labels that are awaited
will say: at the lower end of an accuracy all of them count as wrong, at the upper end as right. They are about rates
that stay as they are: after an alarm, they are about a mixture of before and after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from demur.calibration import Level
from demur.monitoring.audits import AuditedQuestion
from demur.monitoring.confidence import Limits, limits_at_all_times
from demur.monitoring.monitor import as_level
from demur.policy.policy import Policy


@dataclass(frozen=True)
class AuditedRates:
    """Rates among audited questions. NaN where there is nothing to take one of."""

    alpha: float
    audited: int
    """Questions that were marked on arrival, answered or not."""
    answered: int
    right: int
    wrong: int
    """Of those that were answered and have a label."""
    level: float
    """The probability with which each pair of limits holds, at all times at once."""
    accuracy_limits: Limits
    """Of the share of answers that are right."""
    confident_error_limits: Limits
    """Of the share of all questions that are answered wrongly. Abstentions are no errors and need no label."""
    predicted_accuracy: float
    """What calibration expects of new questions."""
    predicted_answered: float
    predicted_at_least: bool = False
    """Whether accuracy may be better than predicted: votes without a label count as wrong in calibration."""

    @property
    def awaited(self) -> int:
        """Answers without a label."""
        return self.answered - self.right - self.wrong

    @property
    def accuracy(self) -> float:
        """The share of answers with a label that are right."""
        labelled = self.right + self.wrong
        return self.right / labelled if labelled else math.nan

    @property
    def answered_share(self) -> float:
        """The share of audited questions that were answered."""
        return self.answered / self.audited if self.audited else math.nan

    @property
    def confident_error(self) -> float:
        """The share of audited questions that were answered wrongly, answers without a label being like the others."""
        if not self.answered:
            return 0.0 if self.audited else math.nan
        return (1 - self.accuracy) * self.answered_share

    @property
    def sentences(self) -> tuple[str, ...]:
        """For people: accuracy, and the promise."""
        if not self.audited:
            return ("Nothing was audited yet.",)
        waiting = f" {self.awaited} of the answers have no label yet: limits allow for either." if self.awaited else ""
        level = f"{self.level:.0%} limits, at all times at once"
        labelled = self.right + self.wrong
        accuracy = (
            f"{self.right} of {labelled} audited answers with a label are right ({self.accuracy:.1%}; "
            f"{_told(self.accuracy_limits)}, {level}); calibration predicted "
            f"{'at least ' * self.predicted_at_least}{_percent(self.predicted_accuracy)}."
            if labelled
            else f"None of {self.answered} audited answers has a label yet."
            if self.answered
            else "No audited question was answered."
        )
        errors = (
            f"{self.wrong} of {self.audited} audited questions were answered wrongly "
            f"({_told(self.confident_error_limits)}); the promise is about an alpha of {self.alpha:g}.{waiting}"
        )
        return accuracy, errors


def audited_rates(
    audits: Iterable[AuditedQuestion],
    policy: Policy,
    *,
    alpha: Level | None = None,
    guarantee: str | None = None,
    delta: float = 0.05,
) -> AuditedRates:
    """Rates among all audits so far, in any order; those of an operating point are predicted beside them.

    They must be a random part of all traffic, and all of it: with the ones that somebody complained about added, or
    the ones without a label left out, they are about something else.
    """
    every, expected = list(audits), policy.forecast(alpha, guarantee)
    answers = [audit for audit in every if audit.answered]
    right, wrong = (sum(audit.wrong is verdict for audit in answers) for verdict in (False, True))
    n, answered, delta = len(every), len(answers), as_level(delta)
    return AuditedRates(
        alpha=expected.alpha,
        audited=n,
        answered=answered,
        right=right,
        wrong=wrong,
        level=1 - delta,
        accuracy_limits=_limits(right, answered - wrong, answered, delta),
        confident_error_limits=_limits(wrong, answered - right, n, delta),
        predicted_accuracy=expected.selective_accuracy_corrected,
        predicted_answered=expected.answered,
        predicted_at_least=expected.answered_unlabelled > 0,
    )


def _limits(least: int, most: int, n: int, delta: float) -> Limits:
    """Of a rate whose successes are only known to lie between two counts."""
    return Limits(limits_at_all_times(least, n, delta).low, limits_at_all_times(most, n, delta).high)


def _told(limits: Limits) -> str:
    return f"{limits.low:.1%} to {limits.high:.1%}"


def _percent(rate: float) -> str:
    return "nothing" if math.isnan(rate) else f"{rate:.1%}"
