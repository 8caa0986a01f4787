"""The weight of one question just asked."""

from __future__ import annotations

from typing import Any

from demur.calibration.guarantee import Rule
from demur.calibration.shifted import Shifted
from demur.errors import InvalidValue
from demur.records import Problem, is_nothing
from demur.voting.cases import as_importance


def weight_asked(rule: Rule, question: str | Problem | None, weight: Any = None) -> float | None:
    """What was given, or what the question says where a rule needs it; None where the rule needs none."""
    guarantee = rule.guarantee
    if not isinstance(guarantee, Shifted):
        return None
    if weight is None and guarantee.ratio is None and isinstance(question, Problem):
        weight = question.extra.get(str(guarantee.weights))
    if weight is None and guarantee.ratio is not None:
        text = question.question if isinstance(question, Problem) else question
        weight = None if is_nothing(text) or not str(text).strip() else guarantee.ratio.weight(str(text))
    if weight is None:
        raise InvalidValue(
            "this policy promises about questions by their weights, and that of this one is not known",
            "give {weight}" if guarantee.ratio is None else "give {question} as text, or its {weight}",
        )
    column = as_importance([weight], 1) if weight else None
    return 0.0 if column is None else float(column[0])
