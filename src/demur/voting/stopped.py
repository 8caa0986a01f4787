"""Pools that a stopping rule ends: the first paths of each, as many as the rule wants, and no others.

Replayed on pools that have all their paths, a rule leaves what it would have drawn; on pools that it drew, all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.stopping import Stopping
from demur.voting.codes import CodedAnswers
from demur.voting.rows import KeyRows, ScoreRows


@dataclass(frozen=True, eq=False)
class Stopped:
    """Where a rule ends each pool of a table."""

    stopping: Stopping
    """With the number of paths that a pool has at most."""
    sizes: NDArray[np.intp]
    """Paths of each pool; 0 where the rule wants more than there are."""

    @classmethod
    def at(cls, stopping: Stopping, table: CodedAnswers) -> Stopped:
        """A rule on the pools of a table; whole ones have as many paths as the largest, unless it is said."""
        whole = stopping.at_most(int(np.max(table.n_paths)))
        return cls(whole, whole.sizes(table.codes, table.n_paths))

    @property
    def short(self) -> NDArray[np.intp]:
        """Pools that end before the rule does."""
        return np.flatnonzero(self.sizes == 0)

    def refuse_short(self, n_paths: NDArray[np.intp], name: Any = None) -> None:
        """Raise where a pool ends before the rule does; `name` says what pools are called."""
        if not len(self.short):
            return
        row = int(self.short[0])
        raise InvalidValue(
            f"{len(self.short)} of {len(self.sizes)} pools have fewer paths than the rule {self.stopping} wants of "
            f"them: {f'pool {row}' if name is None else repr(name[row])} has {int(n_paths[row])}",
            "leave them out with {partial=True}, or draw the rest",
        )

    def take(self, rows: NDArray[np.intp]) -> Stopped:
        """Of some of the pools, in that order."""
        return replace(self, sizes=self.sizes[rows])

    def table(self, table: CodedAnswers) -> CodedAnswers:
        """The answers of the paths that are left."""
        pools = table.pools if table.pools is None else self.rows(table.pools)
        return CodedAnswers(table.codes[:, : int(self.sizes.max())], self.sizes, pools)

    def rows(self, column: Any) -> Any:
        """What there is of each path, of those that are left: a row per pool."""
        if column is None:
            return None
        if isinstance(column, (KeyRows, ScoreRows)):
            return column.cut(self.sizes)
        return [row[:size] for row, size in zip(column, self.sizes.tolist(), strict=True)]

    def columns(self, by_name: Mapping[str, Any] | None) -> dict[str, Any]:
        """The same of several, by name."""
        return {name: self.rows(column) for name, column in (by_name or {}).items()}


def described(upstream: Description, stopping: Stopping) -> Description:
    """The stages before the vote, with the rule that ended pools; one that never does is none."""
    rest = {name: value for name, value in upstream.sampling.items() if name != "stopping"}
    told = {"stopping": stopping.describe()} if stopping.stops else {}
    return replace(upstream, sampling={**rest, **told})
