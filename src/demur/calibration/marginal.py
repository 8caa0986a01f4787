"""Conformal risk control (paper §3.4): P(answers and is wrong) ≤ α on a new exchangeable question.

The paper's threshold inf{λ : R̂(λ) ≤ α − (1 − α)/n} is one order statistic: with k = ⌊(n + 1)α⌋, the k-th largest
wrong confidence. No grid, no root finder. The promise is marginal: over the calibration set and the new question.
The true rate of one calibrated policy exceeds α in a little under half of all calibrations (its law is
Beta(k, n + 1 − k)); `HighProbability` is the answer to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from demur.calibration.guarantee import QUESTION, Count, RankGuarantee, new_one, shown


@dataclass(frozen=True)
class Marginal(RankGuarantee):
    """Confident-error rate at most alpha, in expectation over calibration sets."""

    name: ClassVar[str] = "marginal"

    def rank(self, n: int) -> int:
        # (n + 1)α in exact arithmetic: in floats 100 * 0.29 < 29 costs one allowed error.
        return int((n + 1) * self.level)

    def n_needed(self) -> int:
        return ceil((1 - self.level) / self.level)

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        promised = f"the probability of answering it wrongly is at most {shown(self.level)}"
        return f"{new_one(n, unit)}, {promised}, averaged over calibration sets."
