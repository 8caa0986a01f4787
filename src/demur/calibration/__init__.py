"""Guarantees (paper §3.4), one file each: given evidence, it settles on the rule that keeps its promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from demur.calibration.judged import JudgedGuarantee, JudgeHighProbability, JudgeMarginal
from demur.calibration.marginal import Marginal
from demur.calibration.selective import Selective
from demur.calibration.shifted import Shifted
from demur.calibration.simultaneous import Simultaneous
from demur.calibration.smoothed import Smoothed

_KINDS: tuple[Any, ...] = (
    Marginal, Smoothed, HighProbability, Selective, Simultaneous, JudgeMarginal, JudgeHighProbability, Shifted,
)  # fmt: skip
GUARANTEES: dict[str, Callable[..., Guarantee]] = {kind.name: kind for kind in _KINDS}
"""What makes a guarantee again from its name and its parameters."""

__all__ = [
    "CLUSTER",
    "GUARANTEES",
    "QUESTION",
    "Forecast",
    "Guarantee",
    "HighProbability",
    "JudgeHighProbability",
    "JudgeMarginal",
    "JudgedGuarantee",
    "Level",
    "Marginal",
    "RankGuarantee",
    "Rule",
    "Selective",
    "Shifted",
    "Simultaneous",
    "Smoothed",
    "exact_alpha",
    "forecast",
    "settle_by_size",
]
