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
survival function: its entries are NaN. So are all that some votes without a label leave unknown.
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
    """P(ν > λ, wrong); NaN where some vote above has no label."""
    false_abstention: Floats
    """P(ν ≤ λ, correct): right votes withheld, as a share of all questions."""
    selective_accuracy: Floats
    """A_c(λ), of the labelled votes; NaN where nothing is answered, or where the next ones down have no label."""

    @classmethod
    def of(cls, evidence: Evidence, threshold: ArrayLike | None = None) -> Self:
        """Survival functions and rates at the given thresholds, or at 0 and every distinct confidence."""
        nu = evidence.by_confidence.levels[:, 0]
        at = np.union1d([0.0], nu) if threshold is None else np.atleast_1d(np.asarray(threshold, dtype=np.float64))
        right, wrong, unlabelled = _answered(evidence, at)
        n, n_right = evidence.n, evidence.n_right
        survival_right, survival_wrong = _ratio(right, n_right), _ratio(wrong, evidence.n_wrong)
        accuracy, answered = _ratio(right, right + wrong), (right + wrong + unlabelled) / n
        errors, withheld = wrong / n, (n_right - right) / n
        if evidence.n_unlabelled:
            survival_right, survival_wrong, withheld = (np.full(len(at), np.nan) for _ in range(3))
            errors = np.where(unlabelled > 0, np.nan, errors)
            lowest = evidence.labelled.levels[:1, 0]
            accuracy = np.where(at < lowest, np.nan, accuracy) if len(lowest) else accuracy
        gap = survival_right - survival_wrong
        rates = (answered, errors, withheld, accuracy)
        return cls(at, n, evidence.vote_accuracy, survival_right, survival_wrong, gap, *rates)

    def accuracy_between(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """The selective accuracy if every vote without a label is wrong, and if every such vote is right."""
        right, wrong, unlabelled = _answered(evidence, self.threshold)
        every = right + wrong + unlabelled
        return _ratio(right, every), _ratio(right + unlabelled, every)


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
        if by_nu.unlabelled is not None:
            right, wrong = (np.where(by_nu.unlabelled > 0, np.nan, hazard) for hazard in (right, wrong))
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
        right, wrong, unlabelled = _answered(evidence, ends)
        if right[0] + wrong[0] + unlabelled[0] != evidence.n:
            raise InvalidValue(f"the first edge, {ends[0]:g}, must lie below every confidence")
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = [-np.log(_ratio(above[1:], above[:-1])) / np.diff(ends) for above in (right, wrong)]
            rates = [np.where(np.diff(unlabelled) < 0, np.nan, rate) for rate in rates]
            return cls(ends[1:], rates[0], rates[1], rates[1] - rates[0])


def _answered(evidence: Evidence, threshold: Floats) -> tuple[Counts, Counts, Counts]:
    """Right, wrong and unlabelled votes with ν > λ, for each λ."""
    by_nu = evidence.by_confidence
    position = np.searchsorted(by_nu.levels[:, 0], threshold, side="right")
    right, wrong = or_above(by_nu.right)[position], or_above(by_nu.wrong)[position]
    return right, wrong, or_above(by_nu.not_right)[position] - wrong


def _ratio(part: Counts, whole: Counts | int) -> Floats:
    part, whole = np.broadcast_arrays(part, whole)
    ratio = np.full(part.shape, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio
