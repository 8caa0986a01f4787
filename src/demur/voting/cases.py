"""What a rule may look at to answer or abstain: the key of each vote, and what kind of question it is on.

A question may be of no group, of one, or of several that overlap. Its groups are known before any label is, and are
never made of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.records import Groups, groups_of
from demur.voting._exact_sums import Floats
from demur.voting.guards import refuse_mask

Sizes = NDArray[np.intp]
LARGEST_WEIGHT = 1e100
"""Weights beyond this are no ratio of anything, and their squares would overflow."""


class GroupColumn(Sequence[Groups]):
    """The groups of each question; questions of the same groups share one entry of `kinds`."""

    def __init__(self, kinds: Sequence[Groups], codes: NDArray[np.intp]) -> None:
        self.kinds, self.codes = tuple(kinds), codes

    @classmethod
    def of(cls, values: Iterable[Any]) -> GroupColumn:
        """From one value per question: a name, several, or nothing."""
        if isinstance(values, GroupColumn):
            return values
        names: dict[str | None, int] = {}  # the usual ones are looked at once
        kinds: dict[Groups, int] = {}
        codes = []
        for row, value in enumerate(values):
            plain = value is None or isinstance(value, str)
            code = names.get(value) if plain else None
            if code is None:
                code = kinds.setdefault(groups_of(value, f"vote {row}"), len(kinds))
                if plain:
                    names[value] = code
            codes.append(code)
        return cls(tuple(kinds), np.array(codes, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, row: int) -> Groups: ...
    @overload
    def __getitem__(self, row: slice) -> GroupColumn: ...
    def __getitem__(self, row: int | slice) -> Groups | GroupColumn:
        return GroupColumn(self.kinds, self.codes[row]) if isinstance(row, slice) else self.kinds[self.codes[row]]

    def __iter__(self) -> Iterator[Groups]:
        return (self.kinds[code] for code in self.codes.tolist())

    def take(self, rows: Any) -> GroupColumn:
        """The groups of some rows, in that order."""
        return GroupColumn(self.kinds, self.codes[rows])

    def rows(self) -> dict[Groups, NDArray[np.intp]]:
        """The rows of each kind that occurs, kinds in order."""
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.kinds)))
        parts = zip(self.kinds, np.split(order, ends[:-1]), strict=True) if self.kinds else ()
        return dict(sorted((kind, part) for kind, part in parts if len(part)))


def as_groups(values: Any, rows: int) -> GroupColumn | None:
    """One entry per pool: the name of its group, several names, or nothing; None where nothing is known of any."""
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidValue(f"groups must hold one entry per pool, {rows} of them, got {values!r:.60}")
    column = GroupColumn.of(values)
    if len(column) != rows:
        raise InvalidValue(f"groups must hold one entry per pool, {rows} of them, got {len(column)}")
    return column


def as_importance(values: Any, rows: int) -> Floats | None:
    """One weight per pool: finite numbers, none negative and not all 0; None where there are none."""
    if values is None:
        return None
    refuse_mask(values, "importance")
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(f"importance must hold one number per pool, {rows} of them, got {values!r:.60}") from None
    if weights.shape != (rows,):
        raise InvalidValue(f"importance must hold one number per pool, {rows} of them, got shape {weights.shape}")
    refuse_bad_weights(weights)
    if rows and not weights.any():
        raise InvalidValue("weights must not all be 0: then no question counts")
    return weights


def questions_known(groups: Any, importance: Any, rows: int) -> dict[str, Any]:
    """What is known of questions besides their vote, as columns of `Votes`."""
    return {"groups": as_groups(groups, rows), "importance": as_importance(importance, rows)}


def refuse_bad_weights(weights: Floats) -> None:
    """Raise unless weights are finite and none is negative."""
    bad = ~((weights >= 0) & (weights <= LARGEST_WEIGHT))
    if bad.any():
        at = int(bad.argmax())
        raise InvalidValue(f"weights must be finite and not negative, got {weights[at]} for vote {at}")


@dataclass(frozen=True, eq=False)
class Cases:
    """Votes as a rule looks at them, one row each."""

    keys: Floats
    """n × c."""
    n_paths: Sizes
    groups: GroupColumn | None = None
    weights: Floats | None = None
    """Importance weights; None where all questions count alike."""

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Any) -> Cases:
        """Some of the rows: indices, or a slice."""
        groups = None if self.groups is None else self.groups.take(rows)
        weights = None if self.weights is None else self.weights[rows]
        return Cases(self.keys[rows], self.n_paths[rows], groups, weights)

    def counts(self) -> dict[tuple[Groups, int], int]:
        """How many votes there are of each stratum: its groups, and its number of paths."""
        counts: dict[tuple[Groups, int], int] = {}
        for groups, some in self.rows_by_groups().items():
            sizes, votes = np.unique(self.n_paths[some], return_counts=True)
            counts |= {(groups, int(size)): int(many) for size, many in zip(sizes, votes, strict=True)}
        return counts

    def without_groups(self) -> Cases:
        """The same of questions whose groups do not matter."""
        return self if self.groups is None else Cases(self.keys, self.n_paths, None, self.weights)

    def rows_by_size(self) -> dict[int, NDArray[np.intp] | slice]:
        """The rows of each number of paths, ascending; all of them as a slice where they have one."""
        if not len(self.n_paths):
            return {}
        if self.n_paths.min() == self.n_paths.max():
            return {int(self.n_paths[0]): slice(None)}
        return {int(size): np.flatnonzero(self.n_paths == size) for size in np.unique(self.n_paths)}

    def rows_by_groups(self) -> dict[Groups, NDArray[np.intp] | slice]:
        """The rows of questions of the same groups; all of them as a slice where no groups are known."""
        return {(): slice(None)} if self.groups is None else dict(self.groups.rows())
