"""Conformal risk control that spends α to the last bit: P(answers and is wrong) = α for continuous confidences.

⌊(n + 1)α⌋ leaves up to one rank unspent. Here the rank is one higher with probability frac((n + 1)α). The draw is made
once, when the guarantee is made, and stored, so every decision of a policy uses the same threshold. It is random
unless a seed is given; whoever gives one must not choose it by its result.
"""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from demur.calibration.guarantee import QUESTION, Count, RankGuarantee, new_one, shown
from demur.calibration.marginal import Marginal


@dataclass(frozen=True)
class Smoothed(RankGuarantee):
    """Confident-error rate at most alpha, in expectation over calibration sets and one draw of the rank."""

    seed: int | None = None
    name: ClassVar[str] = "smoothed"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "seed", secrets.randbits(48) if self.seed is None else int(self.seed))

    def rank(self, n: int) -> int:
        spend = (n + 1) * self.level
        whole = int(spend)
        draw = Fraction(random.Random(f"demur smoothed rank {self.seed}").random())
        return whole + (draw < spend - whole)

    def n_needed(self) -> int:
        """The n from which the rank is at least 1 whatever the draw."""
        return Marginal(self.level).n_needed()  # type: ignore[arg-type]

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "seed": self.seed}

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        promised = f"the probability of answering it wrongly is at most {shown(self.level)}"
        return f"{new_one(n, unit)}, {promised}, averaged over calibration sets and the one random draw of the rank."
