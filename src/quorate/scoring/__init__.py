"""Scores: one number per path that says how good it is. None of them ever sees gold."""

from __future__ import annotations

from quorate.scoring.perplexity import Perplexity
from quorate.scoring.protocol import Scorer, scorer_named

__all__ = ["Perplexity", "Scorer", "scorer_named"]
