"""What a p-value of an audit says, in words."""

from __future__ import annotations

CONSISTENT, MORE_THAN_USUAL, NOT_CONSISTENT = "consistent", "more than usual", "not consistent"
UNUSUAL = 0.05
SUSPICIOUS = 0.01
"""The p-value, shared among what is audited together, below which an audit speaks of inconsistency."""


def verdict_of(p_value: float, points: int) -> str:
    """What a p-value says, of one of so many operating points that are audited together."""
    if p_value >= UNUSUAL:
        return CONSISTENT
    return MORE_THAN_USUAL if p_value >= SUSPICIOUS / points else NOT_CONSISTENT
