"""High-probability control: with probability 1 − δ over calibration sets, the policy's true error rate is ≤ α.

The true rate of the k-th largest wrong confidence has the law Beta(k, n + 1 − k), and P(Beta > α) is the binomial
P(Bin(n, α) ≤ k − 1). So the rank is the number of j in 0 … n − 1 with P(Bin(n, α) ≤ j) ≤ δ: exact, and no bound can
allow more. It needs independent calibration questions, not merely exchangeable ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, log, log1p
from typing import ClassVar

from scipy.special import bdtr, bdtrik, bdtrin

from demur.calibration.all_but_delta import AllButDelta
from demur.calibration.choices import whichever
from demur.calibration.guarantee import QUESTION, Count, shown
from demur.calibration.smallest_n import smallest_n

_EXACT_LIMIT = 20_000  # sample sizes up to which a tie with δ is settled in whole numbers


@dataclass(frozen=True)
class HighProbability(AllButDelta):
    """Confident-error rate at most alpha, for all but a share delta of calibration sets."""

    name: ClassVar[str] = "high_probability"

    def rank(self, n: int) -> int:
        # The rank is one less than the smallest that is not allowed; P(Bin(n, α) ≤ j) grows with j. Floats say where.
        near = float(bdtrik(self.delta / self.choices, n, self.alpha))
        return smallest_n(lambda k: not self.reaches(k, n), int(near) + 2 if 0 <= near < n else 1) - 1

    def reaches(self, k: int, n: int) -> bool:
        return k <= n and (k < 1 or self._allows(k - 1, n))

    def n_of_rank(self, k: int, near: int) -> int:
        guess = float(bdtrin(k - 1, self.delta / self.choices, self.alpha))
        return super().n_of_rank(k, ceil(guess) if k <= guess < inf else near)

    def n_needed(self) -> int:
        return super().n_of_rank(1, ceil(log(self.delta / self.choices) / log1p(-self.alpha)))

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        new = "on new questions like them" if unit == QUESTION else "on one question of each new cluster like them"
        return (
            f"For all but a share {shown(self.delta_level)} of calibration sets of {n} independent {unit}s, the rate "
            f"of wrong answers {new} is at most {shown(self.level)}{whichever(self.choices)}; which sets those are "
            "cannot be known."
        )

    def _allows(self, errors: int, n: int) -> bool:
        """P(Bin(n, α) ≤ errors) ≤ δ, or δ / J where there were J ways to choose from."""
        tail, delta = float(bdtr(errors, n, self.alpha)), self.delta / self.choices
        if abs(tail - delta) > 1e-9 * delta:
            return tail < delta
        if n > _EXACT_LIMIT:
            return False  # too close to tell in floats: the smaller rank keeps the promise
        return _binomial_cdf(errors, n, self.level) <= self.delta_level / self.choices


def _binomial_cdf(errors: int, n: int, alpha: Fraction) -> Fraction:
    """P(Bin(n, α) ≤ errors), exactly."""
    hit, miss = alpha.numerator, alpha.denominator - alpha.numerator
    total = term = miss**n
    for j in range(errors):
        term = term * hit * (n - j) // ((j + 1) * miss)
        total += term
    return Fraction(total, alpha.denominator**n)
