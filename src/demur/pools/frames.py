"""Pools from a table of paths, one row each.

`id` and `answer` are required; `question`, `gold`, `aliases`, `cluster`, `group`, `text` and `path` (the order of
paths) are known by name, scores are columns `score.NAME`, and other columns are kept as fields of the path.

Rows of one problem stand together, unless `path` says which is which: an id that turns up again further down is more
often another problem's than the same one's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import PoolFileError
from demur.pools.columns import Columns, columns_of, refuse_repeated
from demur.pools.frame_layout import Layout
from demur.pools.frame_rows import DIGEST, OF_PROBLEM, PROBLEM, SCORE, path_of, problem_of
from demur.records import Pool, Problem
from demur.voting.codes import taken
from demur.voting.text_columns import DigestColumn

_AT_ONCE = 2048  # pools that become objects together, where their table is not in memory
_KEPT_ROWS = 1 << 20  # rows whose pools stay in memory once somebody has looked at all of them
Said = tuple[NDArray[Any], Sequence[Any]]
"""A code for each problem, −1 for nothing, and the value behind each."""
FileKeys = tuple[str, Mapping[str, Any]]
"""The name of a file, and how the keys in it were made."""


def common_keys(keys_by_file: Sequence[FileKeys]) -> Mapping[str, Any]:
    """How the keys of all files were made; nothing where there are none, or where they were made in several ways."""
    first: Mapping[str, Any] = keys_by_file[0][1] if keys_by_file else {}
    return first if all(keys == first for _, keys in keys_by_file) else {}


class FramePools(Sequence[Pool]):
    """The pools of a table, which become objects only where somebody looks at one."""

    def __init__(
        self, columns: Columns, where: str, task: str | None = None, keys_by_file: Sequence[FileKeys] = ()
    ) -> None:
        self.columns, self.where = columns, where
        self.task = task
        """What all problems are said to be of, whatever the table says."""
        self.keys_by_file = keys_by_file
        """The files of the table, and how the answers were compared whose classes each holds; nothing where none."""
        self.keys = common_keys(keys_by_file)
        self._read = columns.names
        """The columns that are read where pools become objects."""
        layout = Layout(columns, where)
        self._at, self.ids, self.sizes = layout.at, layout.ids, layout.sizes
        self.first, self.order = layout.first, layout.order
        """The first row of each problem; and the rows, pool by pool, None where they stand so."""
        self._said: dict[str, Said] = {}
        self._block: tuple[int, list[Pool]] = (-1, [])
        for name in self._problem_columns:
            self._refuse_contradictions(name)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: Any) -> Any:
        if self.columns.in_memory or "_built" in vars(self):
            return self._built[row]
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"pool {row} of {len(self)}")
        block, place = divmod(int(row) % len(self), _AT_ONCE)
        if self._block[0] != block:
            self._block = block, self._build(block * _AT_ONCE, min((block + 1) * _AT_ONCE, len(self)))
        return self._block[1][place]

    def __iter__(self) -> Iterator[Pool]:
        return iter(self._built) if self.columns.n <= _KEPT_ROWS else self.in_passing()

    def in_passing(self) -> Iterator[Pool]:
        """One pool after the other, and none is kept in memory that was not there."""
        if self.columns.in_memory or "_built" in vars(self):
            return iter(self._built)
        starts = range(0, len(self), _AT_ONCE)
        return chain.from_iterable(self._build(start, min(start + _AT_ONCE, len(self))) for start in starts)

    def of_task(self, task: str) -> FramePools:
        """The same, of problems that are all of one task."""
        other = self._as_new()
        other.task = task
        return other

    def part(self, rows: NDArray[np.intp], sizes: NDArray[np.intp] | None = None) -> FramePools:
        """Some of the pools, ascending; with `sizes`, only the first paths of each, so many."""
        sizes = self.sizes[rows] if sizes is None else sizes
        other, starts = self._as_new(), np.cumsum(self.sizes) - self.sizes
        places = np.repeat(starts[rows] - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
        other.order = places if self.order is None else self.order[places]
        other.ids, other.first, other.sizes = taken(self.ids, rows), self.first[rows], sizes
        return other

    def without_texts(self) -> FramePools:
        """The same, its paths without their texts where those are in a file."""
        return self if self.columns.in_memory or "text" not in self._read else self._textless

    def of_paths(self, column: NDArray[Any]) -> NDArray[Any]:
        """A column of the table as its pools have it, path by path."""
        return column if self.order is None else column[self.order]

    def _as_new(self) -> FramePools:
        """A copy that has read nothing yet."""
        other = copy(self)
        other._said, other._block = {}, (-1, [])
        for name in ("kinds", "_built", "_textless"):
            vars(other).pop(name, None)
        return other

    def said(self, name: str) -> Said | None:
        """What a column says of each problem, in its first row; None where there is no such column, or where it holds
        lists or objects."""
        if name not in self._said:
            if name not in self.columns.names:
                return None
            if self.columns.only(name) is not None:
                self._said[name] = np.zeros(len(self), dtype=np.int32), [self.columns.only(name)]
            else:
                runs = self.columns.runs(name)
                if runs is None:
                    return None
                self._said[name] = runs.at(self.first), runs.values
        return self._said[name]

    def of_problems(self, name: str) -> list[Any]:
        """What a column says of each problem, in its first row; None of all where there is no such column."""
        if name not in self.columns.names:
            return [None] * len(self)
        said = self.said(name)
        if said is None:
            return self.columns.cells_at(name, self.first)
        codes, values = said
        listed = np.array([*values, None], dtype=object)
        return listed[codes].tolist()  # type: ignore[no-any-return]

    def problems(self, rows: NDArray[np.intp] | None = None) -> Iterator[Problem]:
        """The problems of some pools or of all, without a look at their paths."""
        names = ["id", *self._problem_columns]
        wanted = np.arange(len(self)) if rows is None else rows
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            columns = [self.columns.cells_at(name, self.first[some]) for name in names]
            for pool, *cells in zip(some.tolist(), *columns, strict=True):
                yield self._problem(pool, dict(zip(names, cells, strict=True)))

    @cached_property
    def kinds(self) -> tuple[NDArray[Any], list[Problem]]:
        """What of a problem may tell how its answers are read, as a code for each, and one problem of each kind."""
        codes = np.zeros(len(self), dtype=np.int64)
        for name in ("problem_extra", *OF_PROBLEM):
            if name in self.columns.names:
                said = self.said(name)
                if said is None:
                    codes = np.arange(len(self))
                    break
                if len(said[1]) > 1 or (said[0] < 0).any():
                    codes = np.unique(codes * (len(said[1]) + 1) + said[0] + 1, return_inverse=True)[1]
        if len(self) and not codes.any():
            return codes, list(self.problems(np.zeros(1, dtype=np.intp)))
        _, first, place = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)  # as they come
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank[place], list(self.problems(first[order]))

    @property
    def clusters(self) -> Sequence[str | None]:
        """The cluster of each problem, as text."""
        if "cluster" not in self.columns.names or not len((self.said("cluster") or (0, "?"))[1]):
            return DigestColumn.none(len(self))
        cells = self.of_problems("cluster")
        return [None if cell is None else str(cell) for cell in cells]

    @property
    def score_names(self) -> list[str]:
        """Scores that some path has."""
        named = [name for name in self.columns.names if name.startswith(SCORE)]
        return sorted(name.removeprefix(SCORE) for name in named if self._has_values(name))

    def _has_values(self, name: str) -> bool:
        numbers = self.columns.numbers(name)
        if numbers is not None:
            return not np.isnan(self.of_paths(numbers)).all()
        cells = self.columns.cells(name)
        return any(cells[row] is not None for row in (range(len(cells)) if self.order is None else self.order.tolist()))

    @property
    def _problem_columns(self) -> list[str]:
        """The columns that tell of problems; the text of questions is not looked at where their digests are there."""
        known = (*PROBLEM[1:], *OF_PROBLEM, DIGEST)
        return [name for name in known if name in self.columns.names]

    @cached_property
    def _textless(self) -> FramePools:
        other = self._as_new()
        other._read = [name for name in self._read if name != "text"]
        return other

    @cached_property
    def _built(self) -> list[Pool]:
        if not self.columns.in_memory:
            return self._build(0, len(self))
        return self._pools(0, len(self), list(zip(*map(self.columns.cells, self._read), strict=True)))

    def _build(self, start: int, end: int) -> list[Pool]:
        """Some pools as objects, read from the table."""
        low = int(self.sizes[:start].sum())
        high = low + int(self.sizes[start:end].sum())
        # The first row of a problem tells of it, be it that of a path which is left out.
        rows = np.arange(low, high) if self.order is None else np.union1d(self.order[low:high], self.first[start:end])
        cells = list(zip(*(self.columns.cells_at(name, rows) for name in self._read), strict=True))
        return self._pools(start, end, dict(zip(rows.tolist(), cells, strict=True)), low)

    def _pools(self, start: int, end: int, rows: Any, low: int = 0) -> list[Pool]:
        names, pools, at = self._read, [], low
        sizes, firsts = self.sizes[start:end].tolist(), self.first[start:end].tolist()
        for place, size, first in zip(range(start, end), sizes, firsts, strict=True):
            numbers = range(at, at + size) if self.order is None else self.order[at : at + size].tolist()
            problem, number = self._problem(place, dict(zip(names, rows[first], strict=True))), first
            try:
                paths = []
                for number in numbers:
                    paths.append(path_of(dict(zip(names, rows[number], strict=True))))
            except (ValueError, TypeError, OverflowError) as error:
                raise PoolFileError(f"{self._at(number)}: {error}") from None
            pools.append(Pool(problem, tuple(paths)))
            at += size
        return pools

    def _problem(self, place: int, row: Mapping[str, Any]) -> Problem:
        try:
            problem = problem_of(row, self.ids[place])
        except (ValueError, TypeError, OverflowError) as error:
            raise PoolFileError(f"{self._at(int(self.first[place]))}: {error}") from None
        if self.task is None:
            return problem
        return replace(problem, extra={**problem.extra, "task": self.task})

    def _refuse_contradictions(self, name: str) -> None:
        """Raise if rows of one id say different things of the problem: then they are of two."""
        if self.columns.only(name) is not None:
            return
        if name == "question" and DIGEST in self.columns.names and not self.columns.in_memory:
            return  # the digest says what is asked
        runs = self.columns.runs(name)
        if runs is not None:
            places = np.minimum(np.searchsorted(self.first, runs.starts), len(self.first) - 1)
            if self.order is None and (self.first[places] == runs.starts).all():
                if name != "question":
                    self._said[name] = runs.at(self.first), runs.values
                return
        codes = np.empty(self.columns.n, dtype=np.intp)
        every = np.arange(self.columns.n) if self.order is None else self.order
        codes[every] = np.repeat(np.arange(len(self)), self.sizes)
        if runs is None:
            cells = self.columns.cells(name)
            firsts = [cells[row] for row in self.first.tolist()]
            pairs = zip(cells, codes.tolist(), strict=True)
            differ = np.array([cell is not None and cell != firsts[code] for cell, code in pairs], dtype=np.bool_)
        else:
            said = np.repeat(runs.codes, runs.lengths)
            differ = (said >= 0) & (said != said[self.first][codes])
        if differ.any():
            row = int(np.argmax(differ))
            there = int(self.first[codes[row]])
            told = self.columns.at(there) or f"row {there}"
            raise PoolFileError(
                f"{self._at(row)}: the id {self.ids[codes[row]]!r} has another {name!r} than in {told}",
                "give other problems other ids",
            )


def pools_of_frame(frame: Any, columns: Mapping[str, str] | None = None, where: str = "the table") -> FramePools:
    """The pools of a table; `columns` says what its own names mean: {"response": "answer", "rm": "score.rm"}."""
    table = columns_of(frame, where)
    return FramePools(renamed(table, columns or {}, where), where)


def renamed(table: Columns, columns: Mapping[str, str], where: str) -> Columns:
    """A table under the names that are known here."""
    unknown = [name for name in columns if name not in table.names]
    if unknown:
        there = ", ".join(map(repr, table.names))
        raise PoolFileError(f"{where} has no column {unknown[0]!r}, which columns= names; it has {there}")
    names = [columns.get(name, name) for name in table.names]
    refuse_repeated(names, where)
    return table.renamed(columns) if columns else table
