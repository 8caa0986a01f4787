"""Calibration evidence by number of paths.

Confidence among few paths is not confidence among many, so a promise needs pools in use to be of the sizes that
calibrated it (theory, n2). Where sizes differ, a vote must pass twice: against all calibration votes, and against
those of its own size. So the promise holds for each size by itself, however often sizes occur in use; a size that
calibration saw too seldom cannot pass. Where sizes vary by chance, in use as in calibration, the first test suffices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.evidence.counts import Evidence, Floats, ThresholdKey

Sizes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Strata:
    """Evidence of each pool size, and of all together."""

    by_size: Mapping[int, Evidence]
    """Sizes ascend."""
    by_chance: bool = False
    """Sizes vary by chance, in use as in calibration, so that only all together count."""
    missed: Evidence | None = None
    """Of labels by a judge: see `Evidence.missed`."""

    @classmethod
    def of(
        cls,
        key: ArrayLike,
        correct: ArrayLike,
        n_paths: ArrayLike,
        known: NDArray[np.bool_] | None = None,
        *,
        by_chance: bool = False,
    ) -> Strata:
        """Count votes of pools of these sizes; `known` says which have a label, None that all have."""
        keys, labels, sizes = np.asarray(key), np.asarray(correct), np.asarray(n_paths)
        groups = rows_by_size(sizes) or {0: slice(None)}  # of nothing, evidence says that there is none
        parts = {
            size: Evidence.of(keys[rows], labels[rows], None if known is None else known[rows])
            for size, rows in groups.items()
        }
        return cls(parts, by_chance)

    @cached_property
    def pooled(self) -> Evidence:
        """All sizes together."""
        return replace(Evidence.merged(list(self.by_size.values())), missed=self.missed)

    @property
    def n(self) -> int:
        return self.pooled.n

    @property
    def n_right(self) -> int:
        return self.pooled.n_right

    @property
    def n_unlabelled(self) -> int:
        return self.pooled.n_unlabelled

    @cached_property
    def sizes(self) -> dict[int, int]:
        """How many votes there are of each size."""
        return {size: evidence.n for size, evidence in self.by_size.items()}

    @property
    def usual_size(self) -> int:
        """The size that most votes have, the larger of two."""
        return max(self.by_size, key=lambda size: (self.by_size[size].n, size))

    def knows(self, size: Any) -> Any:
        """Whether calibration saw pools of a size, or where sizes vary by chance, smaller and larger ones.

        Takes one size, or many at once.
        """
        if self.by_chance:
            return (min(self.by_size) <= size) & (size <= max(self.by_size))
        return size in self.by_size if isinstance(size, int) else np.isin(size, list(self.by_size))

    def p_value(self, key: Floats, n_paths: Sizes) -> Floats:
        """The conformal p-value of each vote: the larger of that among all votes and that among those of its size."""
        p_value = self.pooled.p_value(key)
        for size, rows in rows_by_size(n_paths).items():
            if not self.knows(size):
                p_value[rows] = 1.0
            elif not self.by_chance and len(self.by_size) > 1:
                p_value[rows] = np.maximum(p_value[rows], self.by_size[size].p_value(key[rows]))
        return p_value

    def p_value_of(self, key: ThresholdKey, size: int) -> float:
        """The p-value of one vote, without arrays."""
        if self.by_chance or (len(self.by_size) == 1 and size in self.by_size):
            return self.pooled.p_value_of(key) if self.knows(size) else 1.0
        own = self.by_size.get(size)
        return 1.0 if own is None else max(self.pooled.p_value_of(key), own.p_value_of(key))


def rows_by_size(n_paths: Sizes) -> dict[int, NDArray[np.intp] | slice]:
    """The rows of each pool size, sizes ascending; all of them as a slice where they have one."""
    if not len(n_paths):
        return {}
    if n_paths.min() == n_paths.max():
        return {int(n_paths[0]): slice(None)}
    return {int(size): np.flatnonzero(n_paths == size) for size in np.unique(n_paths)}
