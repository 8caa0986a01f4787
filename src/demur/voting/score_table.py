"""Scores as people have them, in the shape of a table of answers."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from demur.errors import InvalidValue
from demur.voting._exact_sums import Floats
from demur.voting.codes import CodedAnswers, Rows
from demur.voting.guards import refuse_booleans, refuse_mask
from demur.voting.recipe import where
from demur.voting.rows import ScoreRows, pad


def as_scores(scores: Any, table: CodedAnswers) -> Floats:
    """One number per path, in the shape of the table."""
    if isinstance(scores, ScoreRows) and np.array_equal(scores.sizes, table.n_paths):
        return scores.padded(0.0)
    refuse_mask(scores, "scores")
    if not isinstance(scores, Sized) and hasattr(scores, "__iter__"):
        scores = list(scores)
    refuse_booleans(scores, "scores")
    try:
        if table.sizes is None or isinstance(scores, np.ndarray):
            values = np.asarray(scores, dtype=np.float64)
        else:
            pools = [np.asarray(pool, dtype=np.float64) for pool in scores]
            sizes = [pool.size for pool in pools]
            if sizes != table.sizes.tolist():
                raise InvalidValue(
                    f"scores must have one number per path: {sizes[:3]}… paths, where answers have "
                    f"{table.sizes[:3].tolist()}…"
                )
            return pad(np.concatenate(pools), table.sizes, 0.0)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(f"scores must be numbers, one per path, in the shape of answers: {error}") from None
    if values.shape != table.codes.shape or table.sizes is not None:
        raise InvalidValue(
            f"scores must have the shape of answers, {table.codes.shape}"
            f"{' with pools of different size' if table.sizes is not None else ''}, got {values.shape}"
        )
    return values


def require_finite(scores: Floats, rows: Rows) -> None:
    finite = np.isfinite(scores)
    if not finite.all():
        pool, path = where(~finite, rows)
        value = scores.ravel()[int(np.argmin(finite))]
        raise InvalidValue(f"scores must be finite; pool {pool} has {value} at path {path}")
