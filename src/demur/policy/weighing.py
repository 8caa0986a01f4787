"""Weights of questions in a policy: what they are worth, and that of one question just asked."""

from __future__ import annotations

from typing import Any

from demur.calibration.guarantee import Rule
from demur.calibration.shifted import Shifted
from demur.errors import InvalidValue
from demur.policy.document import PolicyParts
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


def weight_notes(policy: PolicyParts) -> list[str]:
    """What weights leave of the calibration questions, and what was cut; nothing where none promises by them."""
    if not any(isinstance(rule.guarantee, Shifted) for rule in policy.points):
        return []
    n, worth, unit = policy.evidence.n, policy.evidence.effective_size, policy.unit
    notes = [f"weighted, the {n} calibration {unit}s are worth about {worth:.0f} (effective sample size)"]
    if (ratio := policy.shift) is not None:
        notes.append(
            f"weights were fitted on {ratio.traffic} questions of the traffic and {ratio.reference} others, and cut at "
            f"{ratio.clip:g} times the mean: {ratio.clipped_traffic:.1%} of the traffic weighs more than it counts"
        )
        notes += [] if ratio.shift_seen else ["no shift was to be seen by the words of the questions"]
    return notes


def refuse_weighted(policy: PolicyParts, what: str, instead: str) -> None:
    """Raise where a promise is by the weights of questions, and something takes them all for alike."""
    if any(isinstance(rule.guarantee, Shifted) for rule in policy.points):
        raise InvalidValue(f"{what}, and this policy promises about questions by their weights", instead)
