"""How the answers of a pool stand to its winner, and how much of the vote speaks for answers that are not there.

    nearness    r(y) = V_y / max V    1 for the winner, less for others; 0 where no answer has any weight
    novelty     g                     the share of all weight on answers that only one path gave, or on none: Good and
                                      Turing's estimate of the chance that one more path gives an answer not seen yet

Both are rounded as the confidence is, so that one pool and a table of them give the same numbers, and ties stay ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from demur.records import Vote
from demur.voting._exact_sums import Floats, grid, on_grid
from demur.voting._tally import CONFIDENCE_DECIMALS, compact, count_paths, first_paths, tally_weights
from demur.voting.codes import CodedAnswers
from demur.voting.recipe import Recipe
from demur.voting.weights import Uniform

NOT_FIRST = -1.0
"""In place of a nearness, where a path has no answer, or an earlier path of its pool gave the same."""


@dataclass(frozen=True, eq=False)
class Standings:
    """Those of many pools."""

    answers: CodedAnswers
    nearness: Floats
    """n × most paths: r(y) at the first path that gives the answer y, and NOT_FIRST at all others."""
    novelty: Floats


def standings(table: CodedAnswers, scores: Floats | None, recipe: Recipe) -> Standings:
    """The standings in every pool of a table."""
    nearness, novelty = np.full(table.codes.shape, NOT_FIRST), np.empty(len(table))
    for rows, width in table.blocks():
        codes = compact(table.codes[rows, :width])
        if scores is None or isinstance(recipe.weight, Uniform):
            whole = np.full(codes.shape, grid(width))
        else:
            whole = np.ascontiguousarray(on_grid(recipe.weights(scores[rows, :width], rows)).T)
        first, paths = first_paths(codes), count_paths(codes)
        tally, is_first = tally_weights(first, whole), first == np.arange(width)[:, None]
        top = tally.max(axis=0)
        shares = np.divide(tally, top, out=np.zeros_like(tally), where=top > 0)
        nearness[rows, :width] = np.where(is_first, np.round(shares, CONFIDENCE_DECIMALS), NOT_FIRST).T
        new = np.where((codes < 0) | (is_first & (paths == 1)), whole, 0.0).sum(axis=0)
        novelty[rows] = np.round(new / whole.sum(axis=0), CONFIDENCE_DECIMALS)
    return Standings(table, nearness, novelty)


def standings_in(vote: Vote) -> tuple[dict[Any, float], float]:
    """The nearness of each answer of one pool, in the order of its tally, and the pool's novelty."""
    top, counted = max(vote.tally.values(), default=0.0), sum(vote.tally.values())
    single = sum(votes for answer, votes in vote.tally.items() if vote.support[answer] == 1)
    nearness = {answer: _rounded(votes / top) if top else 0.0 for answer, votes in vote.tally.items()}
    return nearness, _rounded((vote.total - counted + single) / vote.total)


def _rounded(share: float) -> float:
    """As numpy rounds."""
    scale = 10.0**CONFIDENCE_DECIMALS
    return round(share * scale) / scale
