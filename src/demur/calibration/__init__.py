"""Guarantees (paper §3.4), one file each: given evidence, it settles on the rule that keeps its promise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from demur.calibration.forecast import Forecast, forecast, forecast_of_group
from demur.calibration.grouped import PREFIX, Grouped, GroupedRule, grouped_of
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
from demur.calibration.laws_on import law_on, laws_by_group
from demur.calibration.marginal import Marginal
from demur.calibration.selective import Selective
from demur.calibration.shifted import Shifted
from demur.calibration.simultaneous import Simultaneous
from demur.calibration.smoothed import Smoothed

_IN_GROUPS: tuple[Any, ...] = (Marginal, Smoothed, HighProbability, Selective)
_KINDS: tuple[Any, ...] = (*_IN_GROUPS, Simultaneous, JudgeMarginal, JudgeHighProbability, Shifted)
GUARANTEES: dict[str, Callable[..., Guarantee]] = {
    **{kind.name: kind for kind in _KINDS},
    **{PREFIX + kind.name: partial(grouped_of, kind) for kind in _IN_GROUPS},
}
"""What makes a guarantee again from its name and its parameters."""

__all__ = [
    "CLUSTER",
    "GUARANTEES",
    "QUESTION",
    "Forecast",
    "Grouped",
    "GroupedRule",
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
    "forecast_of_group",
    "law_on",
    "laws_by_group",
    "settle_by_size",
]
