"""Guarantees, one file each: an object that says which rank of the wrong confidences is the threshold, and why."""

from quorate.calibration.guarantee import Guarantee, OperatingPoint, exact_alpha, set_point
from quorate.calibration.high_probability import HighProbability
from quorate.calibration.marginal import Marginal
from quorate.calibration.smoothed import Smoothed

GUARANTEES: dict[str, type[Marginal] | type[Smoothed] | type[HighProbability]] = {
    kind.name: kind for kind in (Marginal, Smoothed, HighProbability)
}

__all__ = [
    "GUARANTEES",
    "Guarantee",
    "HighProbability",
    "Marginal",
    "OperatingPoint",
    "Smoothed",
    "exact_alpha",
    "set_point",
]
