"""What the vote is compared with: single path, majority vote, best-of-m, oracle.

The majority vote is `vote(answers)`, and with ties broken at random, for a fair comparison with continuous scores,
`vote(answers, tie_break=jitter(seed), ids=ids)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.voting._tally import compact, majority
from demur.voting.codes import code_answers
from demur.voting.path_scores import as_scores, require_finite
from demur.voting.winners import settle


def best_of_m(answers: Any, scores: Any) -> NDArray[Any]:
    """The answer of the path with the highest score, among paths that have one.

    Where several paths share the highest score, the answer most of them gave, then the smaller key: label-blind, and
    blind to the order of paths.
    """
    table = code_answers(answers)
    values = as_scores(scores, table)
    winner = np.empty(len(table), dtype=np.int64)
    for rows, width in table.blocks():
        codes = table.codes[rows, :width]
        require_finite(values[rows, :width], rows)
        candidates = np.where(codes >= 0, values[rows, :width], -np.inf)
        best = candidates == candidates.max(axis=1, keepdims=True)
        winner[rows] = settle(table, rows, majority(compact(np.where(best & (codes >= 0), codes, -1))))
    return table.keys_of(winner)


def single_path(path_correct: Sequence[Sequence[bool]]) -> float:
    """The accuracy of one path drawn at random from each pool."""
    return float(np.mean([np.mean(_labels(pool)) for pool in path_correct]))


def oracle(path_correct: Sequence[Sequence[bool]]) -> float:
    """The share of problems in which any path is right."""
    return float(np.mean([bool(_labels(pool).any()) for pool in path_correct]))


def _labels(pool: Sequence[bool]) -> NDArray[np.bool_]:
    labels = np.asarray(pool)
    if labels.dtype != np.bool_ or not labels.size:
        raise InvalidValue(
            f"path labels must be booleans, at least one per pool, got {labels.dtype} of size {labels.size}"
        )
    return labels
