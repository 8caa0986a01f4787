"""What labelled votes say (paper §3.2, §3.3): counts, separability, predictor, frontier, and exact laws."""

from __future__ import annotations

from demur.evidence.counts import Evidence
from demur.evidence.frontier import Frontier, auroc, common_auc
from demur.evidence.laws import ErrorLaw
from demur.evidence.predictor import AccuracyBand, Interval
from demur.evidence.separability import Hazards, Separability
from demur.evidence.strata import Strata

__all__ = [
    "AccuracyBand",
    "ErrorLaw",
    "Evidence",
    "Frontier",
    "Hazards",
    "Interval",
    "Separability",
    "Strata",
    "auroc",
    "common_auc",
]
