"""Labelled votes made up from a guess, for whoever plans before there is a pilot.

The simulator's difficulties are moved until the vote is as accurate as guessed. What comes out is as good as the guess
and the simulator's other habits: real confidences may tell right from wrong better or worse.
"""

from __future__ import annotations

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.pools.simulated import simulate_pools
from demur.voting.key import mean_score
from demur.voting.votes import vote

_SPREAD = 1.85
"""a + b of the simulator's difficulties."""
_HALVINGS, _VOTES = 12, 5000
_WIDEST = 0.02


def guessed_evidence(accuracy: float, *, separation: float = 0.7, n_paths: int = 16, seed: int = 0) -> Evidence:
    """Simulated votes of which a share `accuracy` is right; ties are broken by the mean score."""
    if not 0 < accuracy < 1:
        raise InvalidValue(
            f"accuracy must lie strictly between 0 and 1, got {accuracy:g}", "guess which share of votes is right"
        )
    if n_paths < 1:
        raise InvalidValue(f"n_paths must be at least 1, got {n_paths}", "give {n_paths} of the pools to come")
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        votes = _simulated(middle, separation, n_paths, seed)
        low, high = (middle, high) if votes.vote_accuracy < accuracy else (low, middle)
    votes = _simulated((low + high) / 2, separation, n_paths, seed)
    if abs(votes.vote_accuracy - accuracy) > _WIDEST:
        raise InvalidValue(
            f"no simulated votes are right {accuracy:.1%} of the time: the nearest are {votes.vote_accuracy:.1%}",
            "give {accuracy} nearer to that, or other {n_paths}",
        )
    return votes


def _simulated(single_path: float, separation: float, n_paths: int, seed: int) -> Evidence:
    a, b = _SPREAD * single_path, _SPREAD * (1 - single_path)
    drawn = simulate_pools(_VOTES, n_paths=n_paths, seed=seed, a=a, b=b, separation=separation)
    votes = vote(drawn.answers, drawn.scores, tie_break=mean_score())
    return Evidence.of(votes.key, drawn.is_right(votes.answer))
