"""Which answers are right by the gold of a table, read once for each way that it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.pools.frame_rows import listed
from demur.pools.frames import FramePools
from demur.records import Problem
from demur.voting.rows import KeyRows, LabelRows


@dataclass(frozen=True, eq=False)
class GoldColumn(Sequence[frozenset[str]]):
    """The keys of right answers to each problem; problems that accept the same share one set."""

    codes: NDArray[Any]
    sets: Sequence[frozenset[str]]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self.sets[code] for code in self.codes[row].tolist()]
        return self.sets[self.codes[row]]

    def take(self, rows: NDArray[np.intp]) -> GoldColumn:
        """Those of some problems, in that order."""
        return GoldColumn(self.codes[rows], self.sets)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Which problems accept nothing."""
        return np.asarray(np.array([not keys for keys in self.sets], dtype=np.bool_)[self.codes])

    def right(self, answers: Sequence[Any] | NDArray[Any]) -> NDArray[np.bool_]:
        """Whether an answer to each problem is right, by its key; no answer is wrong."""
        pairs = zip(answers, self.codes.tolist(), strict=True)
        return np.fromiter((key in self.sets[code] for key, code in pairs), dtype=np.bool_, count=len(self))

    def right_paths(self, answers: KeyRows) -> LabelRows:
        """Whether each path is right."""
        most, place = max(map(len, self.sets), default=0), answers.places
        right = np.zeros(len(answers.flat), dtype=np.bool_)
        for number in range(most):
            accepted = [sorted(keys)[number] if number < len(keys) else None for keys in self.sets]
            wanted = np.array([-2 if key is None else place.get(key, -2) for key in accepted], dtype=answers.flat.dtype)
            right |= answers.flat == np.repeat(wanted[self.codes], answers.sizes)
        return LabelRows(right, answers.sizes)


def gold_of_columns(pools: FramePools, keys_of: Callable[[Problem], Sequence[str]]) -> GoldColumn | None:
    """The keys of what each problem accepts, by `keys_of` one of each kind and gold; None where they are no column."""
    if "gold" in pools.columns.names and pools.said("gold") is None:
        return None
    said = pools.said("gold") or (np.full(len(pools), -1, dtype=np.int32), [])
    kind_of, problems = pools.kinds
    codes, first, place = np.unique(
        kind_of.astype(np.int64) * (len(said[1]) + 1) + said[0] + 1, return_index=True, return_inverse=True
    )
    sets: list[frozenset[str]] = [frozenset()] * len(codes)
    for at in np.argsort(first).tolist():  # in the order of problems, as errors name the first
        row = int(first[at])
        written = None if said[0][row] < 0 else said[1][int(said[0][row])]
        problem = replace(problems[int(kind_of[row])], id=pools.ids[row], gold=tuple(listed(written)))
        sets[at] = frozenset(keys_of(problem))
    return GoldColumn(place.astype(np.int32), sets)
