"""What accuracy the separability predicts, and how sure that is (paper §3.3).

selective_accuracy  A_c(λ)    P(correct | ν > λ)
predicted           Â_c(λ)    the same on calibration votes: the paper's closed form is algebraically that ratio
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats
from demur.evidence.separability import Separability


@dataclass(frozen=True, eq=False)
class AccuracyBand:
    """What is known of A_c(λ) from n votes, at all thresholds at once, with probability at least 1 − δ.

    Votes without a label count as wrong in what bounds from below, and as right in what bounds from above.
    """

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
        table, n = Separability.of(evidence, threshold), evidence.n
        two_sided, one_sided = (math.sqrt(math.log(sides / delta) / (2 * n)) for sides in (4, 2))
        answered = np.where(table.answered > 0, table.answered, np.nan)
        predicted = table.selective_accuracy
        least, most = table.accuracy_between(evidence)
        lower, lower_one_sided = (np.maximum(least - e / answered, 0.0) for e in (two_sided, one_sided))
        upper = np.minimum(most + two_sided / answered, 1.0)
        paper = np.where(n >= 2 * math.log(4 / delta) / answered**2, 4 * two_sided / answered, np.inf)
        paper = np.where(np.isnan(answered), np.nan, paper)
        return cls(table.threshold, predicted, lower, upper, lower_one_sided, paper)


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
    columns = (vote_accuracy, survival_right, survival_wrong)
    p, s_right, s_wrong = (np.asarray(column, dtype=np.float64) for column in columns)
    gap = s_right - s_wrong
    answered = s_right - (1 - p) * gap
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(answered > 0, p + p * (1 - p) * gap / answered, np.nan))
