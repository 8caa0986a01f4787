"""Guarantees (paper §3.4), one file each: given evidence, it settles on the rule that keeps its promise."""

from __future__ import annotations

from demur.calibration.forecast import Forecast, forecast
from demur.calibration.guarantee import (
    CLUSTER,
    QUESTION,
    Guarantee,
    Level,
    RankGuarantee,
    Rule,
    exact_alpha,
    settle_by_size,
)
from demur.calibration.high_probability import HighProbability
from demur.calibration.marginal import Marginal
from demur.calibration.selective import Selective
from demur.calibration.simultaneous import Simultaneous
from demur.calibration.smoothed import Smoothed

GUARANTEES: dict[
    str, type[Marginal] | type[Smoothed] | type[HighProbability] | type[Selective] | type[Simultaneous]
] = {kind.name: kind for kind in (Marginal, Smoothed, HighProbability, Selective, Simultaneous)}

__all__ = [
    "CLUSTER",
    "GUARANTEES",
    "QUESTION",
    "Forecast",
    "Guarantee",
    "HighProbability",
    "Level",
    "Marginal",
    "RankGuarantee",
    "Rule",
    "Selective",
    "Simultaneous",
    "Smoothed",
    "exact_alpha",
    "forecast",
    "settle_by_size",
]
