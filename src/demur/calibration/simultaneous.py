"""An alpha that may be chosen late: with probability 1 − δ over calibration sets, every threshold keeps its bound.

The band (`band`) bounds the true rate of wrong answers above the k-th largest wrong key by b_k, for every k at once. So
whoever has seen yields, errors and the whole frontier may take any threshold: with j calibration errors above it, its
rate is at most b_{j+1}. Asked for an alpha, the rank is the largest k with b_k ≤ α. What that costs against an alpha
that was fixed beforehand is the difference to `HighProbability`. It needs independent calibration questions, not merely
exchangeable ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from demur.calibration.all_but_delta import AllButDelta
from demur.calibration.band import Band, band, fewest_votes
from demur.calibration.choices import whichever
from demur.calibration.guarantee import QUESTION, Count, Level, exact_alpha, shown
from demur.evidence.laws import ErrorLaw


@dataclass(frozen=True)
class Simultaneous(AllButDelta):
    """Confident-error rate at most alpha, for all but a share delta of calibration sets, at every alpha at once."""

    name: ClassVar[str] = "simultaneous"

    def at(self, alpha: Level) -> Simultaneous:
        """The same promise at another alpha: all of them are kept together."""
        return replace(self, alpha=str(exact_alpha(alpha)), delta=str(self.delta_level))  # type: ignore[arg-type]

    def band(self, n: int) -> Band:
        """The bounds of n calibration votes."""
        return band(n, float(self.delta_level / self.choices))

    def rank(self, n: int) -> int:
        return self.band(n).rank(self.alpha) if n else 0

    def law(self, n: int) -> ErrorLaw:
        """Whoever audits may have the worst of all ranks before them: any of those that were looked at, chosen late."""
        late = len(self.band(n).looks) if n else 1
        return ErrorLaw(self.rank(n), n, self.choices * late)

    def n_needed(self) -> int:
        return fewest_votes(self.alpha, float(self.delta_level / self.choices))

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        new = "on new questions like them" if unit == QUESTION else "on one question of each new cluster like them"
        return (
            f"For all but a share {shown(self.delta_level)} of calibration sets of {n} independent {unit}s, the rate "
            f"of wrong answers {new} is within its bound at every threshold at once{whichever(self.choices)}; at this "
            f"threshold the bound is at most {shown(self.level)}, whenever that alpha was chosen. Which sets those are "
            "cannot be known."
        )
