"""What weights are, wherever they come from: finite numbers that are not negative, and not all of them 0.

    ω(x)    how much more often questions like x occur in use than in calibration, up to a factor that all share
    ESS     (Σω)² / Σω²: about as many questions without weights would say as much
"""

from __future__ import annotations

from typing import Any

import numpy as np

from demur.errors import InvalidValue
from demur.questions.features import Floats

LARGEST = 1e100
"""Weights beyond this are no ratio of anything, and their squares would overflow."""


def as_weights(values: Any, rows: int, name: str = "weights") -> Floats:
    """One weight per row; a one-line error where they are none."""
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"{name} must be numbers, one per question, got {values!r:.60}") from None
    if np.asarray(values).dtype == np.bool_ or weights.shape != (rows,):
        raise InvalidValue(f"{name} must hold one number per question, {rows} of them, got shape {weights.shape}")
    bad = ~(np.isfinite(weights) & (weights >= 0) & (weights <= LARGEST))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidValue(f"{name} must be finite and at least 0; question {row} has {weights[row]}")
    return weights + 0.0  # −0.0 is 0


def effective_size(weights: Floats) -> float:
    """ESS, as large as the number of weights where they are equal; 0 of nothing, or where all are 0."""
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return 0.0
    share = weights / largest
    return float(share.sum() ** 2 / (share**2).sum())
