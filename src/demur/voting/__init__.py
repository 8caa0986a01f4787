"""Score-weighted voting (paper §3.1): weights, normalisers, keys, the count itself, baselines."""

from __future__ import annotations

from demur.voting.key import jitter, mean_score
from demur.voting.recipe import Recipe
from demur.voting.votes import Votes, vote, vote_again
from demur.voting.weights import exponential, linear, uniform

__all__ = ["Recipe", "Votes", "exponential", "jitter", "linear", "mean_score", "uniform", "vote", "vote_again"]
