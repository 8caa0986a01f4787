"""How the answers of a pool stand to its winner, and how much of the vote speaks for answers that are not there.

    nearness    r(y) = (V_y / max V) · (V_y / Σ V)    an answer's part of the largest tally times its share of all votes
                for answers; 1 for the largest itself, and 0 where no answer has any weight
    novelty     g     the share of all weight on answers that only one path gave, or on none: Good and Turing's estimate
                of the chance that one more path gives an answer not seen yet

The product orders the answers of different pools better than either factor (docs/results.md). Both numbers are rounded
as the confidence is, so that one pool and a table of them give the same numbers, and ties stay ties.
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
        top, answered = tally.max(axis=0), tally.sum(axis=0)
        part = np.divide(tally, top, out=np.zeros_like(tally), where=top > 0)
        share = np.divide(tally, answered, out=np.zeros_like(tally), where=top > 0)
        near = np.where(part == 1.0, 1.0, np.round(part * share, CONFIDENCE_DECIMALS))
        nearness[rows, :width] = np.where(is_first, near, NOT_FIRST).T
        new = np.where((codes < 0) | (is_first & (paths == 1)), whole, 0.0).sum(axis=0)
        novelty[rows] = np.round(new / whole.sum(axis=0), CONFIDENCE_DECIMALS)
    return Standings(table, nearness, novelty)


def standings_in(vote: Vote) -> tuple[dict[Any, float], float]:
    """The nearness of each answer of one pool, in the order of its tally, and the pool's novelty."""
    top, answered = max(vote.tally.values(), default=0.0), sum(vote.tally.values())
    single = sum(votes for answer, votes in vote.tally.items() if vote.support[answer] == 1)
    nearness = {answer: _nearness(votes, top, answered) for answer, votes in vote.tally.items()}
    return nearness, _rounded((vote.total - answered + single) / vote.total)


def _nearness(votes: float, top: float, answered: float) -> float:
    if not top:
        return 0.0
    return 1.0 if votes == top else _rounded((votes / top) * (votes / answered))


def _rounded(share: float) -> float:
    """As numpy rounds."""
    scale = 10.0**CONFIDENCE_DECIMALS
    return round(share * scale) / scale
