"""Conformal risk control (paper §3.4): P(answers and is wrong) ≤ α on a new exchangeable question.

The paper's threshold inf{λ : R̂(λ) ≤ α − (1 − α)/n} is one order statistic: with k = ⌊(n + 1)α⌋, the k-th largest
wrong confidence. No grid, no root finder. The promise is marginal: over the calibration set and the new question.
The true rate of one calibrated policy exceeds α in a little under half of all calibrations (its law is
Beta(k, n + 1 − k)); `HighProbability` is the answer to that. Where the way to vote was chosen from several by the same
labels, `choices` says from how many, and the rank is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demur.calibration.choices import fewest_votes, union_rank, whichever
from demur.calibration.guarantee import QUESTION, Count, RankGuarantee, new_one, shown


@dataclass(frozen=True)
class Marginal(RankGuarantee):
    """Confident-error rate at most alpha, in expectation over calibration sets."""

    name: ClassVar[str] = "marginal"

    def rank(self, n: int) -> int:
        if self.choices > 1:
            return union_rank(n, self.level, self.choices)
        # (n + 1)α in exact arithmetic: in floats 100 * 0.29 < 29 costs one allowed error.
        return (n + 1) * self.level.numerator // self.level.denominator

    def n_of_rank(self, k: int, near: int) -> int:
        if self.choices > 1:
            return super().n_of_rank(k, near)
        alpha = self.level  # the smallest n with n + 1 ≥ k/α, in whole numbers
        return -(-k * alpha.denominator // alpha.numerator) - 1

    def n_needed(self) -> int:
        return self.n_of_rank(1, 0) if self.choices == 1 else fewest_votes(self.level, self.choices)

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        promised = (
            f"the probability of answering it wrongly is at most {shown(self.level)}, averaged over calibration sets"
        )
        if self.choices == 1:
            return f"{new_one(n, unit)}, {promised}."
        new = "a new question like" if unit == QUESTION else "one question of a new cluster like"
        return f"On {new} the {n} independent calibration {unit}s, {promised}{whichever(self.choices)}."
