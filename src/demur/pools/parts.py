"""Parts of pools, and what is known of all of them: by columns where they are a table, so that none is an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from demur.pools import frame_rows
from demur.pools.frame_table import score_column
from demur.pools.frames import FramePools
from demur.records import Pool, Problem


def some_of(pools: Sequence[Pool], rows: Sequence[int] | NDArray[np.intp]) -> Sequence[Pool]:
    """Some of the pools, by ascending rows."""
    if isinstance(pools, FramePools):
        return pools.part(np.asarray(rows, dtype=np.intp))
    return [pools[int(row)] for row in rows]


def first_paths(pools: Sequence[Pool], sizes: NDArray[np.intp]) -> Sequence[Pool]:
    """The pools with only their first paths, so many of each."""
    if isinstance(pools, FramePools):
        return pools.part(np.arange(len(pools)), sizes)
    return [replace(pool, paths=pool.paths[:size]) for pool, size in zip(pools, sizes.tolist(), strict=True)]


def sizes_of(pools: Sequence[Pool]) -> NDArray[np.intp]:
    """How many paths each pool has."""
    if isinstance(pools, FramePools):
        return pools.sizes
    return np.array([len(pool.paths) for pool in pools], dtype=np.intp)


def ids_of(pools: Sequence[Pool]) -> Sequence[str]:
    """The names of the problems."""
    return pools.ids if isinstance(pools, FramePools) else [pool.problem.id for pool in pools]


def every_problem(pools: Sequence[Pool]) -> Iterable[Problem]:
    """The problem of each pool."""
    return pools.problems() if isinstance(pools, FramePools) else (pool.problem for pool in pools)


def without_texts(pools: Sequence[Pool]) -> Sequence[Pool]:
    """The pools as they are, but for the texts of paths where those would have to be read first."""
    return pools.without_texts() if isinstance(pools, FramePools) else pools


def with_field(pools: Sequence[Pool], name: str) -> Sequence[Pool]:
    """The pools for a look at a field, by its dotted name: without texts that would have to be read, unless it is
    those."""
    return pools if name.removeprefix(".").split(".")[0] == "text" else without_texts(pools)


def in_passing(pools: Sequence[Pool]) -> Iterator[Pool]:
    """One pool after the other, for a single look: those of a file are not kept."""
    return pools.in_passing() if isinstance(pools, FramePools) else iter(pools)


def score_names(pools: Sequence[Pool]) -> list[str]:
    """Scores that some path has."""
    return pools.score_names if isinstance(pools, FramePools) else frame_rows.score_names(pools)


def lacking_score(pools: Sequence[Pool], name: str) -> list[int]:
    """The rows of pools that have a path without the score."""
    if isinstance(pools, FramePools) and (values := score_column(pools, name)) is not None:
        rows: list[int] = np.unique(np.repeat(np.arange(len(pools)), pools.sizes)[np.isnan(values)]).tolist()
        return rows
    every = without_texts(pools)
    return [row for row, pool in enumerate(every) if any(name not in path.scores for path in pool.paths)]


def values_of(pools: Sequence[Pool], name: str) -> NDArray[np.float64]:
    """All values of a score, of the paths that have one."""
    if isinstance(pools, FramePools) and (values := score_column(pools, name)) is not None:
        return values[~np.isnan(values)]
    every = (path.scores for pool in without_texts(pools) for path in pool.paths)
    return np.array([scores[name] for scores in every if name in scores], dtype=np.float64)
