"""What the report says of the key: what leads it, and what a gate has to do with it."""

from __future__ import annotations

from typing import Any

from demur.policy.explanations import UNLIKE
from demur.voting.gate import GATED
from demur.voting.recipe import Recipe

_SHARE = "share"


def confidence_facts(recipe: Recipe) -> dict[str, Any]:
    """What the confidence is that a threshold is set on, in a word and in full, and why a gate abstains."""
    name, fitted = recipe.names[0].removeprefix(GATED), len(recipe.key[0].fitted_on.ids)
    shared = name == _SHARE
    made = "the winner's share of the vote" if shared else name.replace("_", " ")
    on = f", fitted on {fitted} labelled problems that calibrate nothing" if fitted else ""
    closed = "" if recipe.gate is None else "; 0 for questions that the gate takes for outliers"
    return {
        "told": "confidence" if shared else f"{name.replace('_', ' ')} confidence",
        "made": f"{made}{on}{closed}",
        "is_share": shared,
        "unlike": None if recipe.gate is None else UNLIKE,
    }
