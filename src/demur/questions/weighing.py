"""The effective size of weighted questions: (Σω)² / Σω², about as many as would say as much without weights."""

from __future__ import annotations

from demur.questions.features import Floats


def effective_size(weights: Floats) -> float:
    """As large as the number of weights where they are equal; 0 of nothing, or where all are 0."""
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return 0.0
    share = weights / largest
    return float(share.sum() ** 2 / (share**2).sum())
