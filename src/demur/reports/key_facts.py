"""What the report says of the key: what leads it, and what gates before it and behind the thresholds do."""

from __future__ import annotations

import math
from typing import Any

from demur.policy.explanations import UNLIKE
from demur.policy.policy import Policy
from demur.voting.gate import GATED
from demur.voting.votes import Votes

_SHARE = "share"
_OUTLIER = "this question is unlike the calibration questions, or has no text to tell by"


def confidence_facts(policy: Policy) -> dict[str, Any]:
    """What the confidence is that a threshold is set on, in a word and in full, and why a gate abstains."""
    recipe = policy.recipe
    name, fitted = recipe.names[0].removeprefix(GATED), len(recipe.key[0].fitted_on.ids)
    shared = name == _SHARE
    made = "the winner's share of the vote" if shared else name.replace("_", " ")
    on = f", fitted on {fitted} labelled problems that calibrate nothing" if fitted else ""
    closed = "" if recipe.gate is None else "; 0 for questions that the gate takes for outliers"
    gates = [*([] if recipe.gate is None else [UNLIKE]), *([] if policy.outliers is None else [_OUTLIER])]
    return {
        "told": "confidence" if shared else f"{name.replace('_', ' ')} confidence",
        "made": f"{made}{on}{closed}",
        "is_share": shared,
        "unlike": "; or ".join(gates) or None,
    }


def key_facts(votes: Votes) -> list[list[float | None]]:
    """The numbers of each key; what is no number for JSON is nothing."""
    return [[value if math.isfinite(value) else None for value in key] for key in votes.key.tolist()]
