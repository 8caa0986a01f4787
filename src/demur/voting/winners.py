"""The winner of every pool of a table, by the weights of its recipe and the tie rule of `_tally`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.voting._exact_sums import Floats
from demur.voting._tally import Outcome, compact, majority, weighted
from demur.voting.codes import CodedAnswers, Rows
from demur.voting.path_scores import require_finite
from demur.voting.recipe import Recipe
from demur.voting.weights import Uniform


def winners_of(
    table: CodedAnswers, scores: Floats | None, recipe: Recipe
) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """For each pool the winning code, ν, and whether all paths gave that answer."""
    uniform = isinstance(recipe.weight, Uniform)
    if scores is None and not uniform:
        raise InvalidValue(f"{recipe.weight.name} weights need scores; give them, or use uniform weights")
    winner, confidence = np.empty(len(table), dtype=np.int64), np.empty(len(table))
    unanimous = np.empty(len(table), dtype=np.bool_)
    for rows, width in table.blocks():
        codes = compact(table.codes[rows, :width])
        if scores is not None:
            # Pools stay rows, but lie path by path in memory: every step then runs along it.
            block = np.asfortranarray(scores[rows, :width])
            require_finite(block, rows)
        outcome = majority(codes) if uniform else weighted(codes, recipe.weights(block, rows))
        winner[rows] = settle(table, rows, outcome)
        confidence[rows], unanimous[rows] = outcome.confidence, outcome.unanimous
    return winner, confidence, unanimous


def settle(table: CodedAnswers, rows: Rows, outcome: Outcome) -> NDArray[np.int64]:
    """The winning codes of a block, ties that fall to the smaller key included."""
    if table.pools is not None and outcome.tied.size:  # codes of keys have no order of their own
        index = np.arange(len(table))[rows][outcome.tied]
        outcome.winner[outcome.tied] = table.smallest_keys(index, outcome.candidates.T)
    return outcome.winner
