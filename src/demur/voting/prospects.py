"""What a vote can still become while paths are missing: who must win, and between which bounds its share will lie.

Notation, beside that of `reach`, with V⁻_y and V⁺_y the least and most that the drawn paths of answer y weigh:
    leader    y* with V⁻_y* > V⁺_y + rest for every other answer y, one that no path has given yet included (V⁺ = 0)
    least     V⁻_y* / (V⁻_y* + Σ V⁺ of the other paths + rest)
    most      the largest, over answers, of (V⁺_y + rest) / (V⁺_y + rest + Σ V⁻ of the other paths)

Paths without an answer are other paths to every answer. Majority votes are counted in whole numbers, and an answer that
can at most draw level loses where its key is the larger one; for other weights, bounds are so far apart that neither
rounding nor the tie rule can reach across.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.voting._tally import CONFIDENCE_DECIMALS
from demur.voting.one_pool import key_order, share_of
from demur.voting.reach import ANY_NUMBER, Range, reach
from demur.voting.recipe import Recipe
from demur.voting.weights import Uniform


@dataclass(frozen=True)
class Prospects:
    """What is certain of the vote of a whole pool."""

    leader: Any
    """The answer that must win; None where several can."""
    least: float
    """Its share is at least this; 0 where nobody must win."""
    most: float
    """No answer's share will be more."""


NOTHING_KNOWN = Prospects(None, 0.0, 1.0)


def prospects(
    recipe: Recipe, keys: Sequence[Any], scores: Sequence[float] | None, left: int, within: Range = ANY_NUMBER
) -> Prospects:
    """What is certain when `left` paths are missing; `within` holds the score of every path."""
    if isinstance(recipe.weight, Uniform):
        return _of_counts(keys, left)
    bounds = None if scores is None else reach(recipe, scores, left, within)
    if bounds is None:
        return NOTHING_KNOWN
    low: dict[Any, float] = {None: 0.0}
    high: dict[Any, float] = {None: 0.0}
    for key, least, most in zip(keys, bounds.least, bounds.most, strict=True):
        low[key] = low.get(key, 0.0) + least
        high[key] = high.get(key, 0.0) + most
    all_low, all_high = math.fsum(bounds.least), math.fsum(bounds.most)
    low.pop(None)
    high.pop(None)
    rest, largest = bounds.rest, all_high + bounds.rest
    reached = [(votes + rest) / (votes + rest + all_low - low[key]) for key, votes in high.items()]
    most = _up(max([*reached, rest / (rest + all_low)]) + bounds.slop)
    leader = max(low, key=lambda key: low[key], default=None)
    if leader is None:
        return Prospects(None, 0.0, most)
    rival = max((votes for key, votes in high.items() if key != leader), default=0.0)
    if not low[leader] - rival - rest > bounds.slop * largest:
        return Prospects(None, 0.0, most)
    own = low[leader]
    return Prospects(leader, _down(own / (own + all_high - high[leader] + rest) - bounds.slop), most)


def _of_counts(keys: Sequence[Any], left: int) -> Prospects:
    """Of a majority vote, in whole numbers."""
    votes, n_paths = Counter(key for key in keys if key is not None), len(keys) + left
    if not votes:
        return Prospects(None, 0.0, share_of(left, n_paths))
    leader = min(votes, key=lambda key: (-votes[key], *key_order(key)))
    own = votes.pop(leader)
    most = share_of(own + left, n_paths)
    if own <= left:  # an answer that no path has given yet may draw level, and have the smaller key
        return Prospects(None, 0.0, most)
    for key, rivals in votes.items():
        if rivals + left > own or (rivals + left == own and key_order(key) < key_order(leader)):
            return Prospects(None, 0.0, most)
    return Prospects(leader, share_of(own, n_paths), most)


def _down(share: float) -> float:
    scale = 10.0**CONFIDENCE_DECIMALS
    return max(0.0, math.floor(share * scale) / scale)


def _up(share: float) -> float:
    scale = 10.0**CONFIDENCE_DECIMALS
    return min(1.0, math.ceil(share * scale) / scale)
