"""Stopping rules: when the paths that a question has are enough, by their answers alone, in order of index."""

from __future__ import annotations

from demur.stopping.rules import Agreement, Beta, Fixed, Rule, parse_rule
from demur.stopping.stopping import Stopping, agreement, as_stopping, beta, fixed, parse_stopping, stopping_of

__all__ = [
    "Agreement",
    "Beta",
    "Fixed",
    "Rule",
    "Stopping",
    "agreement",
    "as_stopping",
    "beta",
    "fixed",
    "parse_rule",
    "parse_stopping",
    "stopping_of",
]
