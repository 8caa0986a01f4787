"""Scores: one number per path that says how good it is. None of them ever sees gold."""

from __future__ import annotations

from demur.scoring.factory import make_scorer
from demur.scoring.model_scorer import ModelScorer
from demur.scoring.own import OwnScore
from demur.scoring.perplexity.recorded import Perplexity
from demur.scoring.protocol import Scorer
from demur.scoring.self_consistency import SelfConsistency
from demur.scoring.settings import ScorerSettings

__all__ = ["ModelScorer", "OwnScore", "Perplexity", "Scorer", "ScorerSettings", "SelfConsistency", "make_scorer"]
