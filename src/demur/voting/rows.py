"""Pools that lie end to end in a column, as tables have them: sequences of lists to whoever reads them one by one.

The vote takes the columns themselves, so that a table of paths costs it no object per path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 8192  # pools that are lists at the same time, where somebody reads all of them one by one


def pad(flat: NDArray[Any], sizes: NDArray[np.intp], filler: float) -> NDArray[Any]:
    """Pools laid end to end, as rows of equal width."""
    width = int(sizes.max())
    table = np.full((len(sizes), width), filler, dtype=flat.dtype)
    table[np.arange(width) < sizes[:, None]] = flat
    return table


@dataclass(frozen=True, eq=False)
class _Rows(Sequence[Any]):
    flat: NDArray[Any]
    sizes: NDArray[np.intp]
    """Paths per pool, at least one each."""

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            start, end, step = row.indices(len(self))
            return list(self._between(start, end)) if step == 1 else [self[at] for at in range(start, end, step)]
        if not -len(self) <= row < len(self):
            raise IndexError(f"pool {row} of {len(self)}")
        row %= len(self)
        return self._listed(self.flat[self._starts[row] : self._starts[row + 1]])

    def __iter__(self) -> Iterator[list[Any]]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self._between(first, min(first + _AT_ONCE, len(self)))

    def _between(self, first: int, last: int) -> Iterator[list[Any]]:
        """Some of the pools, as lists that are made together."""
        starts = self._starts[first : last + 1]
        if first < last:
            some, places = self._listed(self.flat[starts[0] : starts[-1]]), (starts - starts[0]).tolist()
            yield from (some[start:end] for start, end in pairwise(places))

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def even(self) -> bool:
        """Whether all pools have as many paths."""
        return bool((self.sizes == self.sizes[0]).all())

    def padded(self, filler: float) -> NDArray[Any]:
        """One row per pool, as wide as the largest."""
        if self.even:
            return self.flat.reshape(len(self), -1)
        return pad(self.flat, self.sizes, filler)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Some of the pools, in that order."""
        sizes = self.sizes[rows]
        first = np.repeat(self._starts[rows] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        return replace(self, flat=self.flat[first + np.arange(len(first))], sizes=sizes)

    def cut(self, sizes: NDArray[np.intp]) -> Self:
        """The first paths of each pool, so many of each."""
        place = np.arange(len(self.flat)) - np.repeat(self._starts[:-1], self.sizes)
        return replace(self, flat=self.flat[place < np.repeat(sizes, self.sizes)], sizes=sizes)

    def _listed(self, part: NDArray[Any]) -> list[Any]:
        return part.tolist()  # type: ignore[no-any-return]


class ScoreRows(_Rows):
    """The scores of pools."""

    @classmethod
    def of(cls, scores: Sequence[list[float]]) -> ScoreRows:
        """From a list for each pool."""
        if isinstance(scores, ScoreRows):
            return scores
        sizes = np.array(list(map(len, scores)), dtype=np.intp)
        return cls(np.fromiter(chain.from_iterable(scores), dtype=np.float64, count=int(sizes.sum())), sizes)


class LabelRows(_Rows):
    """Whether each path of pools is right."""


@dataclass(frozen=True, eq=False)
class KeyRows(_Rows):
    """The answers of pools, as codes."""

    keys: NDArray[Any]
    """The key behind each code, and None at the end, where the code −1 finds it."""

    def _listed(self, part: NDArray[Any]) -> list[Any]:
        return self.keys[part].tolist()  # type: ignore[no-any-return]

    @cached_property
    def places(self) -> dict[Any, int]:
        """The code of each key."""
        return {key: code for code, key in enumerate(self.keys[:-1].tolist())}

    @cached_property
    def paths_of(self) -> NDArray[np.intp]:
        """How many paths have each key, and at the end how many have none."""
        counts = np.zeros(len(self.keys), dtype=np.intp)
        for start in range(0, len(self.flat), _AT_ONCE << 4):
            part = self.flat[start : start + (_AT_ONCE << 4)]
            counts += np.bincount(np.where(part < 0, len(counts) - 1, part), minlength=len(counts))
        return counts

    def without(self, rows: Sequence[int]) -> KeyRows:
        """The same, the paths of some pools without an answer."""
        left_out = np.zeros(len(self), dtype=np.bool_)
        left_out[list(rows)] = True
        return replace(self, flat=np.where(np.repeat(left_out, self.sizes), -1, self.flat).astype(self.flat.dtype))
