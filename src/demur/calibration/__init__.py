"""Guarantees, one file each: an object that says which rank of the wrong confidences is the threshold, and why."""

from demur.calibration.guarantee import Guarantee, OperatingPoint, exact_alpha, set_point
from demur.calibration.high_probability import HighProbability
from demur.calibration.marginal import Marginal
from demur.calibration.smoothed import Smoothed

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
