"""Is a realised error rate consistent with the promise? Exact laws, not rules of thumb.

A calibrated policy's true error rate is itself random, Beta(k, n + 1 − k), so the number of errors on N fresh
questions is beta-binomial: much wider than a binomial at alpha. Only the upper tail speaks against the promise; ties
and scarce errors make low counts likely. Small p-values say that the questions are not exchangeable with the
calibration ones, or that votes were made another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from demur.calibration import OperatingPoint
from demur.errors import InvalidValue
from demur.evidence import as_labels
from demur.laws import error_count_interval, upper_tail
from demur.policy import Policy
from demur.voting import Votes

CONSISTENT, MORE_THAN_USUAL, NOT_CONSISTENT = "consistent", "more than usual", "not consistent"
UNUSUAL = 0.05
SUSPICIOUS = 0.01
"""The p-value, shared among a policy's operating points, below which an audit speaks of inconsistency."""


@dataclass(frozen=True)
class Audit:
    """Realised rates of one operating point on labelled questions it has not seen."""

    point: OperatingPoint
    n: int
    """Audited questions."""
    errors: int
    """Questions answered wrongly."""
    answered: float
    selective_accuracy: float
    """NaN where nothing was answered."""
    confident_error: float
    false_abstention: float
    expected: float
    """k / (n_cal + 1), the mean confident-error rate where there are no ties: at most alpha."""
    interval: tuple[float, float]
    """Where the rate lies in 95 % of such audits, if there are no ties."""
    p_value: float
    """P(at least so many errors) if the promise holds."""
    consistent: bool
    verdict: str


def audit_policy(
    policy: Policy,
    votes: Votes,
    correct: ArrayLike,
    *,
    questions: Sequence[str | None] | None = None,
    clusters: Sequence[str | None] | None = None,
) -> list[Audit]:
    """Audit every operating point of a policy; votes must be made as calibrated, on problems it has not seen.

    Problems are known by their ids, question texts and clusters, as far as those are given.
    """
    labels = as_labels(correct, len(votes))
    if not len(votes):
        raise InvalidValue("an audit needs at least one labelled vote")
    names = votes.ids if votes.ids is not None else [""] * len(votes)
    policy.refuse_seen(names, questions, clusters)
    return [_audit(policy, point, votes, labels) for point in policy.points]


def _audit(
    policy: Policy, point: OperatingPoint, votes: Votes, labels: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Audit:
    answered = policy.decide_votes(votes, alpha=point.alpha).answered
    n, given = len(votes), int(answered.sum())
    errors = int((answered & ~labels).sum())
    low, high = error_count_interval(n, point.k, point.n)
    p_value = upper_tail(errors, n, point.k, point.n)
    consistent = verdict_of(p_value, len(policy.points)) != NOT_CONSISTENT
    return Audit(
        point=point,
        n=n,
        errors=errors,
        answered=given / n,
        selective_accuracy=(given - errors) / given if given else float("nan"),
        confident_error=errors / n,
        false_abstention=int((~answered & labels).sum()) / n,
        expected=point.k / (point.n + 1),
        interval=(low / n, high / n),
        p_value=p_value,
        consistent=consistent,
        verdict=_verdict(point, n, errors, p_value, consistent=consistent),
    )


def verdict_of(p_value: float, points: int) -> str:
    """What a p-value says, of one of so many operating points that are audited together."""
    if p_value >= UNUSUAL:
        return CONSISTENT
    return MORE_THAN_USUAL if p_value >= SUSPICIOUS / points else NOT_CONSISTENT


def _verdict(point: OperatingPoint, n: int, errors: int, p_value: float, *, consistent: bool) -> str:
    if not point.feasible:
        return f"Abstains always: {point.n} calibration questions are too few for alpha = {point.alpha:g}."
    seen = (
        f"{errors} wrong answers in {n} questions ({errors / n:.3g} against alpha = {point.alpha:g}, p = {p_value:.3g})"
    )
    if p_value >= UNUSUAL:
        return f"Consistent with the promise: {seen}."
    if consistent:
        return f"More errors than usual, but chance alone does this now and then: {seen}. Audit more questions."
    return (
        f"Not consistent with the promise: {seen}. These questions are probably not exchangeable with the calibration "
        "ones, or something before the vote has changed; calibrate again on questions like these."
    )
