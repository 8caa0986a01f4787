"""What to expect of an operating point, said beforehand from calibration data alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate.calibration import OperatingPoint
from quorate.evidence import Evidence


@dataclass(frozen=True)
class Forecast:
    """Predicted rates of one operating point. NaN where they are not defined: nothing answered."""

    alpha: float
    threshold: float
    answered: float
    """Predicted yield: the share of questions that get an answer."""
    selective_accuracy: float
    """Â_c: the share of answers that are right, on calibration data."""
    selective_accuracy_corrected: float
    """1 − (k/(n+1)) / yield: the same without the optimism of counting the errors that set the threshold."""
    accuracy_at_least: float
    """With probability 95 % the selective accuracy on new questions is no lower (uniform bound, theory 1.3)."""
    confident_error: float
    """Share of calibration questions answered wrongly."""
    false_abstention: float
    """Share of calibration questions that the vote had right and the policy withholds."""


def forecast(evidence: Evidence, point: OperatingPoint, *, delta: float = 0.05) -> Forecast:
    """Predict the rates of an operating point."""
    n = evidence.n
    right, wrong = evidence.above(point.threshold_key)
    answered = right + wrong
    margin = math.sqrt(math.log(2 / delta) / (2 * n))
    accuracy = right / answered if answered else math.nan
    # Fewer than k wrong votes leave nothing to correct for: the threshold was not set by an error.
    spent = point.k / (n + 1) if evidence.n_wrong >= point.k else wrong / n
    return Forecast(
        alpha=point.alpha,
        threshold=point.threshold,
        answered=answered / n,
        selective_accuracy=accuracy,
        selective_accuracy_corrected=max(0.0, 1 - spent / (answered / n)) if answered else math.nan,
        accuracy_at_least=max(0.0, accuracy - margin / (answered / n)) if answered else math.nan,
        confident_error=wrong / n,
        false_abstention=(evidence.n_right - right) / n,
    )
