"""Does the score separate right from wrong?

Notation (paper §3.2, appendix on hazards), from labelled votes by confidence ν:
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

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from demur.errors import InvalidValue
from demur.evidence.counts import Counts, Evidence, Floats, or_above


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
        n, n_right = evidence.n, evidence.n_right
        survival_right, survival_wrong = _ratio(right, n_right), _ratio(wrong, evidence.n_wrong)
        gap, accuracy = survival_right - survival_wrong, _ratio(right, right + wrong)
        rates = ((right + wrong) / n, wrong / n, (n_right - right) / n)
        return cls(at, n, evidence.vote_accuracy, survival_right, survival_wrong, gap, *rates, accuracy)


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
        right, wrong = (_ratio(counts, or_above(counts)[:-1]) for counts in (by_nu.right, by_nu.wrong))
        return cls(by_nu.levels[:, 0], right, wrong, wrong - right)

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
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = [-np.log(_ratio(above[1:], above[:-1])) / np.diff(ends) for above in (right, wrong)]
            return cls(ends[1:], rates[0], rates[1], rates[1] - rates[0])


def _answered(evidence: Evidence, threshold: Floats) -> tuple[Counts, Counts]:
    """Right and wrong votes with ν > λ, for each λ."""
    by_nu = evidence.by_confidence
    position = np.searchsorted(by_nu.levels[:, 0], threshold, side="right")
    return or_above(by_nu.right)[position], or_above(by_nu.wrong)[position]


def _ratio(part: Counts, whole: Counts | int) -> Floats:
    part, whole = np.broadcast_arrays(part, whole)
    ratio = np.full(part.shape, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio
