"""What guarantees have in common that hold for all but a share δ of calibration sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from demur.calibration.guarantee import RankGuarantee, exact_alpha, stored


@dataclass(frozen=True)
class AllButDelta(RankGuarantee):
    """A rank guarantee that holds for all but a share delta of calibration sets."""

    delta: float
    delta_level: Fraction = field(init=False, repr=False)
    """Delta, exactly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta_level", exact_alpha(self.delta, "delta"))
        object.__setattr__(self, "delta", float(self.delta_level))

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "delta": stored(self.delta_level)}
