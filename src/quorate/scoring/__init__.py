"""Scores: one number per path that says how good it is. None of them ever sees gold."""

from __future__ import annotations

from quorate.scoring.families import ScorerSettings, make_scorer
from quorate.scoring.own import OwnScore
from quorate.scoring.perplexity import Perplexity
from quorate.scoring.protocol import Scorer
from quorate.scoring.runs import score_run
from quorate.scoring.self_consistency import SelfConsistency

__all__ = ["OwnScore", "Perplexity", "Scorer", "ScorerSettings", "SelfConsistency", "make_scorer", "score_run"]
