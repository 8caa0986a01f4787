"""Does the score separate right from wrong, and what accuracy does that predict?

Notation (paper §3.2, §3.3, appendix on hazards), from labelled votes by confidence ν:
    vote_accuracy       p_v       P(correct)
    survival_right      S_cor(λ)  P(ν > λ | correct)
    survival_wrong      S_err(λ)  P(ν > λ | wrong)
    separability_gap    Δ(λ)      S_cor − S_err
    hazard_…            h(v)      #{ν = v} / #{ν ≥ v} within a class
    hazard_gap          δ(v)      h_err − h_cor
    selective_accuracy  A_c(λ)    P(correct | ν > λ)
Everything uses strict >, where the paper's appendix mixes > and ≥ (departures B, C). A class with no votes has no
survival function: its entries are NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from demur.errors import InvalidValue
from demur.evidence import Counts, Evidence
from demur.exact_sums import Floats


@dataclass(frozen=True, eq=False)
class Separability:
    """Survival functions, their gap and the accuracy they predict, at each threshold."""

    threshold: Floats
    n: int
    vote_accuracy: float
    survival_right: Floats
    survival_wrong: Floats
    separability_gap: Floats
    answered: Floats
    """Yield Y(λ) = P(ν > λ)."""
    confident_error: Floats
    """P(ν > λ, wrong)."""
    false_abstention: Floats
    """P(ν ≤ λ, correct): right votes withheld, as a share of all questions."""
    selective_accuracy: Floats
    """A_c(λ); NaN where nothing is answered."""

    @classmethod
    def of(cls, evidence: Evidence, threshold: ArrayLike | None = None) -> Self:
        """Survival functions and rates at the given thresholds, or at 0 and every distinct confidence."""
        nu = evidence.by_confidence.levels[:, 0]
        at = np.union1d([0.0], nu) if threshold is None else np.atleast_1d(np.asarray(threshold, dtype=np.float64))
        right, wrong = _answered(evidence, at)
        n, n_right, n_wrong = evidence.n, evidence.n_right, evidence.n_wrong
        survival_right, survival_wrong = _ratio(right, n_right), _ratio(wrong, n_wrong)
        return cls(
            threshold=at,
            n=n,
            vote_accuracy=evidence.vote_accuracy,
            survival_right=survival_right,
            survival_wrong=survival_wrong,
            separability_gap=survival_right - survival_wrong,
            answered=(right + wrong) / n,
            confident_error=wrong / n,
            false_abstention=(n_right - right) / n,
            selective_accuracy=_ratio(right, right + wrong),
        )


@dataclass(frozen=True, eq=False)
class Hazards:
    """How fast each class thins out at each support point or in each bin of confidence."""

    edges: Floats
    """Support points, or the right ends of the bins (a, b]."""
    hazard_right: Floats
    hazard_wrong: Floats
    hazard_gap: Floats

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Discrete hazards at each distinct confidence, so that S(λ) = Π_{v ≤ λ} (1 − h(v)) exactly.

        The gap is NaN where either class has no votes left. At the last support point of both classes each hazard is 1
        and the gap 0: it says nothing there (departure D).
        """
        by_nu = evidence.by_confidence
        rates = []
        for counts in (by_nu.right, by_nu.wrong):
            at_risk = np.cumsum(counts[::-1])[::-1]
            rates.append(_ratio(counts, at_risk))
        return cls(by_nu.levels[:, 0], rates[0], rates[1], rates[1] - rates[0])

    @classmethod
    def binned(cls, evidence: Evidence, edges: ArrayLike) -> Self:
        """Hazard rates on half-open bins (a, b], so that exp(−Σ h·width) is S at every edge exactly.

        `edges` are the ascending ends of the bins; the first must lie below every confidence. A bin that empties a
        class has an infinite rate, and bins after it NaN.
        """
        ends = np.asarray(edges, dtype=np.float64)
        if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all():
            raise InvalidValue("edges must be at least two ascending numbers")
        right, wrong = _answered(evidence, ends)
        if right[0] + wrong[0] != evidence.n:
            raise InvalidValue(f"the first edge, {ends[0]:g}, must lie below every confidence")
        width = np.diff(ends)
        rates = []
        for above in (right, wrong):
            with np.errstate(divide="ignore"):
                rates.append(-np.log(_ratio(above[1:], above[:-1])) / width)
        with np.errstate(invalid="ignore"):
            gap = rates[1] - rates[0]
        return cls(ends[1:], rates[0], rates[1], gap)


@dataclass(frozen=True, eq=False)
class AccuracyBand:
    """What is known of A_c(λ) from n votes, at all thresholds at once, with probability at least 1 − δ."""

    threshold: Floats
    predicted: Floats
    lower: Floats
    upper: Floats
    lower_one_sided: Floats
    """A bound from below alone, which costs less: holds at all λ at once, so also at the calibrated one."""
    paper_half_width: Floats
    """4ε/s₀ with s₀ = the yield here; infinite where the paper's condition on n fails."""

    @classmethod
    def of(cls, evidence: Evidence, *, delta: float = 0.05, threshold: ArrayLike | None = None) -> Self:
        """The simple uniform band |Â_c(λ) − A_c(λ)| ≤ ε / Ŷ(λ), ε = √(log(4/δ) / 2n), beside the paper's bound.

        Needs neither a lower bound on the yield nor a condition on n: both follow from bands on P(ν > λ, correct) and
        P(ν > λ, wrong), of which A_c is a ratio. Ends are clipped to [0, 1].
        """
        if not 0 < delta < 1:
            raise InvalidValue(f"delta must lie strictly between 0 and 1, got {delta}")
        table = Separability.of(evidence, threshold)
        n = evidence.n
        two_sided = math.sqrt(math.log(4 / delta) / (2 * n))
        one_sided = math.sqrt(math.log(2 / delta) / (2 * n))
        answered = np.where(table.answered > 0, table.answered, np.nan)
        predicted = table.selective_accuracy
        paper = np.where(n >= 2 * math.log(4 / delta) / answered**2, 4 * two_sided / answered, np.inf)
        return cls(
            threshold=table.threshold,
            predicted=predicted,
            lower=np.maximum(predicted - two_sided / answered, 0.0),
            upper=np.minimum(predicted + two_sided / answered, 1.0),
            lower_one_sided=np.maximum(predicted - one_sided / answered, 0.0),
            paper_half_width=np.where(np.isnan(answered), np.nan, paper),
        )


@dataclass(frozen=True)
class Interval:
    """A rate and its exact (Clopper–Pearson) confidence interval."""

    estimate: float
    lower: float
    upper: float

    @classmethod
    def exact(cls, successes: int, trials: int, *, delta: float = 0.05) -> Self:
        """Clopper–Pearson: for one rate at one threshold fixed beforehand. At a threshold chosen on the same data it is
        optimistic; use `AccuracyBand` there."""
        if not 0 <= successes <= trials:
            raise InvalidValue(f"successes must lie between 0 and trials, got {successes} of {trials}")
        if not 0 < delta < 1:
            raise InvalidValue(f"delta must lie strictly between 0 and 1, got {delta}")
        if trials == 0:
            return cls(math.nan, 0.0, 1.0)
        failures = trials - successes
        lower = float(betaincinv(successes, failures + 1, delta / 2)) if successes else 0.0
        upper = float(betaincinv(successes + 1, failures, 1 - delta / 2)) if failures else 1.0
        return cls(successes / trials, lower, upper)


def predicted_accuracy(vote_accuracy: ArrayLike, survival_right: ArrayLike, survival_wrong: ArrayLike) -> Floats:
    """The paper's closed form Â_c = p_v + p_v(1 − p_v)Δ / (S_cor − (1 − p_v)Δ).

    On calibration data it *is* the share of answered votes that are right; `Separability.selective_accuracy` holds
    that ratio of counts. Defined wherever the yield is positive, whatever the sign of Δ.
    """
    p = np.asarray(vote_accuracy, dtype=np.float64)
    s_right, s_wrong = (
        np.asarray(survival_right, dtype=np.float64),
        np.asarray(survival_wrong, dtype=np.float64),
    )
    gap = s_right - s_wrong
    answered = s_right - (1 - p) * gap
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(answered > 0, p + p * (1 - p) * gap / answered, np.nan))


def _answered(evidence: Evidence, threshold: Floats) -> tuple[Counts, Counts]:
    """Right and wrong votes with ν > λ, for each λ."""
    by_nu = evidence.by_confidence
    position = np.searchsorted(by_nu.levels[:, 0], threshold, side="right")
    above = [np.append(np.cumsum(counts[::-1])[::-1], 0)[position] for counts in (by_nu.right, by_nu.wrong)]
    return above[0], above[1]


def _ratio(part: Counts, whole: Counts | int) -> Floats:
    part, whole = np.broadcast_arrays(part, whole)
    ratio = np.full(part.shape, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio
