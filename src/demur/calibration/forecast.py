"""What to expect of a rule, said beforehand from calibration data alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from demur.calibration.choices import choices_of, mean_at_most
from demur.calibration.guarantee import Rule
from demur.calibration.shifted import ShiftedRule
from demur.evidence.counts import Evidence
from demur.evidence.laws import BoundLaw, ErrorLaw
from demur.evidence.strata import Strata


@dataclass(frozen=True)
class Forecast:
    """Predicted rates of one rule. NaN where they are not defined: nothing answered, or not known for want of labels.

    Where votes without a label are answered, `answered_unlabelled` says how many. They count as wrong in
    `expected_confident_error`, which then is a bound, in `selective_accuracy_corrected` and in `accuracy_at_least`.
    """

    alpha: float
    threshold: float
    answered: float
    """Predicted yield: the share of questions that get an answer."""
    selective_accuracy: float
    """Â_c: the share of answers that are right, on labelled calibration data."""
    selective_accuracy_corrected: float
    """The same without the optimism of the errors that set the threshold: 1 − expected_confident_error / yield."""
    accuracy_at_least: float
    """With probability 95 % the selective accuracy on new questions is no lower (uniform bound, theory 1.3)."""
    confident_error: float
    """Share of calibration questions answered wrongly: (k − 1)/n by construction where there are no ties. NaN where
    some of those that are answered have no label."""
    expected_confident_error: float
    """What to expect on new questions: one error more among one question more, which is k/(n+1) where there are no
    ties, and an estimate where there are. Of a way to vote that the same labels chose, a bound on that."""
    false_abstention: float
    """Share of calibration questions that the vote had right and the policy withholds; NaN where some of those that it
    withholds have no label."""
    unspent_by_ties: float = 0.0
    """Share of questions that might be answered wrongly besides, and is not spent because votes tie at the threshold:
    a tie-break would tell them apart."""
    answered_unlabelled: float = 0.0
    """Share of questions that are answered and have no label."""


def forecast(evidence: Evidence | Strata, rule: Rule, *, delta: float = 0.05) -> Forecast:
    """Predict the rates of a rule."""
    if isinstance(rule, ShiftedRule):
        return _weighted(evidence, rule)
    n, (right, wrong) = evidence.n, rule.answered(evidence)
    answered = right + wrong
    if isinstance(rule.law, BoundLaw):
        return _judged(evidence, rule, answered / n, wrong / n)
    thresholds = rule.n_thresholds  # each was set by the data, and the bound must hold for all of them
    bounds = thresholds * choices_of(rule.guarantee)  # and of every way to vote that might have been chosen
    margin = thresholds * math.sqrt(math.log(2 * bounds / delta) / (2 * n))
    unlabelled = rule.answered_unlabelled(evidence)
    at_least = right / answered if answered else math.nan
    accuracy = right / (answered - unlabelled) if answered > unlabelled else math.nan
    withheld = (evidence.n_right - right) / n if evidence.n_unlabelled == unlabelled else math.nan
    expected = _expected(evidence, rule)
    return Forecast(
        alpha=rule.alpha,
        threshold=rule.threshold,
        answered=answered / n,
        selective_accuracy=accuracy,
        selective_accuracy_corrected=max(0.0, 1 - expected / (answered / n)) if answered else math.nan,
        accuracy_at_least=max(0.0, at_least - margin / (answered / n)) if answered else math.nan,
        confident_error=math.nan if unlabelled else wrong / n,
        expected_confident_error=expected,
        false_abstention=withheld,
        unspent_by_ties=_unspent(evidence, rule),
        answered_unlabelled=unlabelled / n,
    )


def _judged(evidence: Evidence | Strata, rule: Rule, answered: float, seen: float) -> Forecast:
    """Of labels by a judge: errors it saw, and those it missed on checked votes; both are bounds where its "wrong" is
    false. What it cannot know of true labels is NaN.
    """
    assert evidence.missed is not None
    n, checked = evidence.n, evidence.missed.n
    missed = evidence.missed.above(rule.threshold_key)[1]
    wrong = seen + missed / checked
    # One error more of each kind, as each threshold was set by one.
    expected = (round(seen * n) + 1) / (n + 1) + (missed + 1) / (checked + 1) if answered and rule.threshold else wrong
    return Forecast(
        alpha=rule.alpha,
        threshold=rule.threshold,
        answered=answered,
        selective_accuracy=max(0.0, 1 - wrong / answered) if answered else math.nan,
        selective_accuracy_corrected=max(0.0, 1 - expected / answered) if answered else math.nan,
        accuracy_at_least=math.nan,
        confident_error=wrong,
        expected_confident_error=expected,
        false_abstention=math.nan,
    )


def _weighted(evidence: Evidence | Strata, rule: ShiftedRule) -> Forecast:
    """The rates of questions as they occur in use: calibration votes count by weight. No bound on accuracy is known."""
    right, wrong = rule.answered_weight(evidence)
    answered, unlabelled = right + wrong, rule.answered_unlabelled(evidence)
    pooled = evidence if isinstance(evidence, Evidence) else evidence.pooled
    expected = (wrong * pooled.total_weight + rule.usual_weight) / (pooled.total_weight + rule.usual_weight)
    expected = wrong if rule.threshold == 0 or not answered else expected
    every_right = 0.0 if pooled.right_weight is None else float(pooled.right_weight.sum()) / pooled.total_weight
    return Forecast(
        alpha=rule.alpha,
        threshold=rule.threshold,
        answered=answered,
        selective_accuracy=right / answered if answered and not unlabelled else math.nan,
        selective_accuracy_corrected=max(0.0, 1 - expected / answered) if answered else math.nan,
        accuracy_at_least=math.nan,
        confident_error=math.nan if unlabelled else wrong,
        expected_confident_error=expected,
        false_abstention=every_right - right if evidence.n_unlabelled == unlabelled else math.nan,
        answered_unlabelled=unlabelled / evidence.n,
    )


def forecast_of_group(evidence: Strata, rule: Rule, name: str) -> Forecast:
    """Predict the rates of a rule on questions of one group."""
    part, own = evidence.of_group(name), rule.of_kind((name,))
    # Where groups overlap, some of its questions have to exceed the threshold of another group too.
    return replace(forecast(part, own if part.kinds == ((name,),) else rule), threshold=own.threshold)


def _unspent(evidence: Evidence | Strata, rule: Rule) -> float:
    """Of k − 1 errors that may lie above the threshold, the share that do not because others tie with it."""
    if isinstance(evidence, Strata):
        if rule.needs_groups:
            # Where the threshold of all stands in, it is among all votes that errors tie with it.
            kinds = [(kind, bool(rule.stand_in(kind))) for kind in evidence.kinds if len(kind) < 2]
            parts = [(evidence.of_kind(kind), rule.of_kind(kind), every) for kind, every in kinds]
            return sum(part.n * _unspent(evidence if every else part, own) for part, own, every in parts) / evidence.n
        evidence = evidence.pooled
    if not isinstance(rule.law, ErrorLaw) or not rule.feasible or rule.threshold == 0:
        return 0.0
    return max(0, rule.law.k - 1 - evidence.above(rule.threshold_key)[1]) / (evidence.n + 1)


def _expected(evidence: Evidence | Strata, rule: Rule) -> float:
    """The rate on new questions. Each threshold was set by an error, which a new question may make too.

    Where a threshold was set by more questions than these, that error is theirs in proportion.
    """
    if rule.needs_groups and isinstance(evidence, Strata):
        parts = [(evidence.of_kind(kind), rule.of_kind(kind)) for kind in evidence.kinds]
        return sum(part.n * _expected(part, own) for part, own in parts) / evidence.n
    more = min(1.0, evidence.n / rule.n) if rule.n else 1.0
    n, (right, wrong) = evidence.n, rule.answered(evidence)
    chosen = choices_of(rule.guarantee)
    apart = {} if isinstance(evidence, Evidence) else evidence.by_size
    expected = 0.0
    for size, threshold in rule.by_size.items():
        if (part := apart.get(size)) is not None:
            own = part.above(threshold)
            expected += part.n * _corrected(part.n, *own, threshold[0], more, chosen)
            n, right, wrong = n - part.n, right - own[0], wrong - own[1]
    return (expected + n * _corrected(n, right, wrong, rule.threshold, more, chosen)) / evidence.n


def _corrected(n: int, right: int, wrong: int, threshold: float, more: float, chosen: int) -> float:
    """The error rate of one threshold, with one error more among one question more, or with a part of both.

    A threshold of 0 was not set by an error, and where nothing is answered nothing is to be corrected. Whatever was
    chosen by the same labels is likely to be lucky on them: then it is a bound on what to expect.
    """
    if not n:
        return 0.0
    if chosen > 1 and right + wrong:
        return mean_at_most(wrong + 1, n, chosen)
    return (more + wrong) / (n + more) if threshold > 0 and right + wrong else wrong / n
