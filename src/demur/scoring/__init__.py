"""Scores: one number per path that says how good it is. None of them ever sees gold."""

from __future__ import annotations

from demur.scoring.families import ScorerSettings, make_scorer
from demur.scoring.own import OwnScore
from demur.scoring.perplexity import Perplexity
from demur.scoring.protocol import Scorer
from demur.scoring.runs import score_run
from demur.scoring.self_consistency import SelfConsistency

__all__ = ["OwnScore", "Perplexity", "Scorer", "ScorerSettings", "SelfConsistency", "make_scorer", "score_run"]
