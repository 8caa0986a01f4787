"""Weighted evidence: which keys may be answered, and the p-values of votes, where questions count with weights.

    ω_i    the weight of calibration vote i          S      Σ ω_i
    ω      the weight of a new question              C(κ)   Σ ω_i over votes i that are not known right, key_i ≥ κ

A new vote with key κ is answered at level α where C(κ) + ω ≤ α (S + ω); that is, where its p-value
(C(κ) + ω) / (S + ω) is at most α. With equal weights this is the k-th largest wrong key, as without weights. A question
that weighs much must itself be paid for, so that the threshold rises with ω; it is never answered where ω alone
exceeds α (S + ω). Weights are floats: sums within a part in 10¹² of each other are taken for equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from demur.evidence.counts import Evidence, Floats, ThresholdKey, above_all, answer_all, levels_below

_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class WeightedErrors:
    """The weight of votes that are not known to be right, from each level up."""

    levels: Floats
    from_here: Floats
    """C at each level, ascending, and 0 behind the last."""
    total: float
    """S."""

    @classmethod
    def of(cls, evidence: Evidence) -> WeightedErrors:
        """Votes without weights all weigh 1."""
        weights = evidence.not_right_weight
        own = evidence.not_right.astype(np.float64) if weights is None else weights
        return cls(evidence.levels, np.append(np.cumsum(own[::-1])[::-1], 0.0), evidence.total_weight)

    def answers(self, keys: Floats, weights: Floats, level: Fraction) -> NDArray[np.bool_]:
        """Which votes are answered; never one without confidence, nor of a question that is said not to occur."""
        errors = self.from_here[levels_below(self.levels, keys)]
        return np.asarray((errors <= self._budget(weights, level)) & (keys[:, 0] > 0) & (weights > 0))

    def threshold(self, weight: float, level: Fraction) -> ThresholdKey:
        """The key that a vote on a question of this weight must exceed."""
        width = self.levels.shape[1]
        budget = self._budget(np.array([weight]), level)[0]
        if budget < 0 or weight <= 0:
            return above_all(width)
        over = int(np.count_nonzero(self.from_here > budget))  # levels from which on errors weigh too much
        if over == 0 or self.levels[over - 1, 0] == 0:
            return answer_all(width)
        return tuple(self.levels[over - 1].tolist())

    def p_value(self, keys: Floats, weights: Floats) -> Floats:
        """The weighted conformal p-value of each vote; 1 for a question that is said not to occur."""
        errors = self.from_here[levels_below(self.levels, keys)]
        whole = self.total + weights
        share = np.divide(errors + weights, whole, out=np.ones(len(keys)), where=(whole > 0) & (weights > 0))
        return np.asarray(np.round(share, 12), dtype=np.float64)

    def _budget(self, weights: Floats, level: Fraction) -> Floats:
        """What errors may weigh beside each of these questions."""
        alpha, whole = float(level), self.total + weights
        return np.asarray(alpha * self.total - float(1 - level) * weights + _EQUAL * whole)
