"""How far the weights of a vote can still move while paths are missing.

Notation, for a pool of m paths of which t are drawn and r = m − t are not:
    least_j, most_j   bounds on the weight of drawn path j, which moves where a normaliser looks at the whole pool
    rest              the most that the r missing paths can weigh together
    slop              by how much a share, as the vote computes it, may differ from one in real numbers

All of them in one unit, for only ratios of weights reach a share: whatever the missing paths score, there is a unit in
which all bounds hold at once. What bounds each normaliser gives is derived in docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from demur.voting._exact_sums import grid
from demur.voting.normalisers import FixedAffine, FixedSigmoid, NoNormaliser, PoolMinMax, PoolZ, Rank
from demur.voting.recipe import Recipe
from demur.voting.weights import Exponential, Linear, Uniform

Range = tuple[float, float]
"""Between which numbers a score lies, whatever the path."""
ANY_NUMBER: Range = (-math.inf, math.inf)
_ROUNDING = 1e-11
"""More than rounding to twelve decimals, near ties (1e-12) and exponentials can move a share."""
_LARGEST = 1e150
"""The squares of larger scores overflow."""
_FAR = 2.0**20
"""Scores that are so many spreads away from 0 leave too few digits to tell them apart by."""


@dataclass(frozen=True)
class Reach:
    """Bounds on the weights of one pool."""

    least: Sequence[float]
    most: Sequence[float]
    rest: float
    slop: float


@dataclass(frozen=True)
class _Spread:
    """Bounds on normalised scores, up to what all of them have in common: a shift, or for linear weights a factor."""

    low: Sequence[float]
    high: Sequence[float]
    rest: Sequence[float]
    """For each missing path, the largest first: the k-th largest of them is at most the k-th of these."""
    error: float = 0.0
    """How far a normalised score, as it is computed, may be from that in real numbers."""


def reach(recipe: Recipe, scores: Sequence[float], left: int, within: Range = ANY_NUMBER) -> Reach | None:
    """What the weights of a pool can be when `left` more paths have come; None where nothing bounds them.

    `within` holds every score of a path; where one of these does not lie there, that was not so, and bounds nothing.
    """
    n_paths = len(scores) + left
    if isinstance(recipe.weight, Uniform):
        ones = [1.0] * len(scores)
        return Reach(ones, ones, float(left), 0.0)
    if not scores or not all(within[0] <= score <= within[1] and abs(score) < _LARGEST for score in scores):
        return None
    slop = _ROUNDING + 4 * n_paths / grid(n_paths)
    if isinstance(recipe.weight, Exponential):
        spread = _spread(recipe, scores, left, within)
        return None if spread is None else _exponential(recipe.weight.beta, spread, slop)
    spread = _ratios(recipe, scores, left, within) if isinstance(recipe.weight, Linear) else None
    if spread is None or not spread.rest[0] > 0:
        return None
    return Reach(spread.low, spread.high, math.fsum(spread.rest), slop)


def unbounded(recipe: Recipe, within: Range = ANY_NUMBER) -> str:
    """Why one more path may outweigh all others, in words; blank where its weight is bounded."""
    known = [bound for bound in reversed(within) if math.isfinite(bound)]
    trial = [*known, 0.0][0]
    if isinstance(recipe.weight, Uniform) or reach(recipe, [trial, trial], 1, within) is not None:
        return ""
    kind = recipe.normaliser.name
    if isinstance(recipe.weight, Linear) and kind == PoolMinMax.name:
        return "linear weights behind pool_minmax are all relative to the lowest score, which no range is known for"
    return (
        f"{recipe.weight.name} weights with the normaliser {kind} have no bound, for the score has no largest value "
        "that is known: one more path may outweigh all others"
    )


def _exponential(beta: float, spread: _Spread, slop: float) -> Reach | None:
    """exp(βq), the largest that any path may have being 1, so that none overflows."""
    peak = max(max(spread.high), spread.rest[0])
    if not math.isfinite(peak):
        return None
    least, most, rest = (
        [math.exp(beta * (value - peak)) for value in values] for values in (spread.low, spread.high, spread.rest)
    )
    return Reach(least, most, math.fsum(rest), slop + 4 * beta * spread.error)


def _spread(recipe: Recipe, scores: Sequence[float], left: int, within: Range) -> _Spread | None:
    """Bounds on normalised scores, up to a shift that they share."""
    kind, top = recipe.normaliser, within[1]
    if isinstance(kind, PoolZ):
        return _standardised(scores, left, top)
    if isinstance(kind, PoolMinMax):
        lowest, highest = min(scores), max(scores)
        narrowest = max(highest - lowest, PoolMinMax.floor)
        above = 1.0 if math.isinf(top) else (top - highest) / max(top - lowest, PoolMinMax.floor)
        low = [(score - highest) / narrowest for score in scores]
        return _Spread(low, [0.0] * len(scores), [above] * left, 1e-15)
    return _ranked(scores, left) if isinstance(kind, Rank) else _mapped(recipe, scores, left, within)


def _ratios(recipe: Recipe, scores: Sequence[float], left: int, within: Range) -> _Spread | None:
    """Bounds on normalised scores that are never negative, up to a factor that they share."""
    kind, (bottom, top) = recipe.normaliser, within
    if isinstance(kind, PoolMinMax):
        if math.isinf(bottom) or math.isinf(top):
            return None
        lowest = min(scores)
        return _Spread(
            [score - lowest for score in scores], [score - bottom for score in scores], [top - bottom] * left
        )
    if isinstance(kind, Rank):
        return _ranked(scores, left)
    spread = None if isinstance(kind, PoolZ) else _mapped(recipe, scores, left, within)
    return spread if spread is not None and min(spread.low) >= 0 else None


def _standardised(scores: Sequence[float], left: int, top: float) -> _Spread | None:
    """Behind pool_z, measured from the mean of the drawn paths: their spread can only be that of all or less of it."""
    drawn, n_paths = len(scores), len(scores) + left
    mean = math.fsum(scores) / drawn
    squares = math.fsum((score - mean) * (score - mean) for score in scores)
    narrowest = max(math.sqrt(squares / n_paths), PoolZ.floor)
    if not max(abs(score) for score in scores) < _FAR * narrowest:
        return None
    away = [(score - mean) / narrowest for score in scores]
    above = (top - mean) / narrowest
    rest = [min(math.sqrt(n_paths * (drawn + k) / (k * drawn)), above) for k in range(1, left + 1)]
    error = math.sqrt(2 * n_paths) * (2 * n_paths / grid(n_paths) + 1e-12)
    return _Spread([min(value, 0.0) for value in away], [max(value, 0.0) for value in away], rest, error)


def _ranked(scores: Sequence[float], left: int) -> _Spread:
    """A missing path raises the rank of a drawn one by at most 1."""
    n_paths = len(scores) + left
    ranks = [sum(b < a for b in scores) + (sum(b == a for b in scores) + 1) / 2 for a in scores]
    low, high = [rank / n_paths for rank in ranks], [(rank + left) / n_paths for rank in ranks]
    return _Spread(low, high, [(n_paths - k) / n_paths for k in range(left)], 1e-15)


def _mapped(recipe: Recipe, scores: Sequence[float], left: int, within: Range) -> _Spread | None:
    """Behind a map that looks at one score at a time, drawn paths stay where they are."""
    kind, top = recipe.normaliser, within[1]
    if not isinstance(kind, (NoNormaliser, FixedAffine, FixedSigmoid)):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        *mapped, last = kind(np.array([[*scores, top if math.isfinite(top) else 0.0]]))[0].tolist()
    highest = last if math.isfinite(top) else 1.0 if isinstance(kind, FixedSigmoid) else math.inf
    highest += 4e-16 * abs(highest)  # an exponential may be off by its last bit
    if not all(map(math.isfinite, [*mapped, highest])):
        return None
    return _Spread(mapped, mapped, [highest] * left)
