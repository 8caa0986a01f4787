"""Pools from a table of paths, one row each.

`id` and `answer` are required; `question`, `gold`, `aliases`, `cluster`, `group`, `text` and `path` (the order of
paths) are known by name, scores are columns `score.NAME`, and other columns are kept as fields of the path.

Rows of one problem stand together, unless `path` says which is which: an id that turns up again further down is more
often another problem's than the same one's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import PoolFileError
from demur.pools.columns import Columns, columns_of, refuse_repeated
from demur.pools.frame_rows import DIGEST, OF_PROBLEM, PROBLEM, SCORE, is_whole, name_of, path_of, problem_of
from demur.pools.runs import Runs
from demur.records import Pool, Problem
from demur.voting.text_columns import DigestColumn, TextColumn

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
        self._refuse_missing()
        runs, self.ids = self._identities()
        self.order: NDArray[np.intp] | None = None
        """The rows, pool by pool; None where they stand so."""
        if len(runs.codes) == len(self.ids):
            self._refuse_torn(runs.starts, runs.starts + runs.lengths - 1)
            self.sizes: NDArray[np.intp] = runs.lengths.astype(np.intp)
            self.first: NDArray[np.intp] = runs.starts.astype(np.intp)
            """The first row of each problem."""
            codes = None if self._stand_in_order() else np.repeat(runs.codes, runs.lengths)
        else:
            codes = np.repeat(runs.codes, runs.lengths)
            self.sizes = np.bincount(codes, minlength=len(self.ids))
            self.first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
            self._refuse_scattered(runs)
        if codes is not None:
            self.order = self._order(codes)
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
        if self.columns.in_memory or self.columns.n <= _KEPT_ROWS:
            return iter(self._built)
        starts = range(0, len(self), _AT_ONCE)
        return chain.from_iterable(self._build(start, min(start + _AT_ONCE, len(self))) for start in starts)

    def of_task(self, task: str) -> FramePools:
        """The same, of problems that are all of one task."""
        return FramePools(self.columns, self.where, task, self.keys_by_file)

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
        return bool(set(self.columns.cells(name)) != {None}) if numbers is None else not np.isnan(numbers).all()

    @property
    def _problem_columns(self) -> list[str]:
        """The columns that tell of problems; the text of questions is not looked at where their digests are there."""
        known = (*PROBLEM[1:], *OF_PROBLEM, DIGEST)
        return [name for name in known if name in self.columns.names]

    @cached_property
    def _built(self) -> list[Pool]:
        names = self.columns.names
        return self._pools(0, len(self), list(zip(*(self.columns.cells(name) for name in names), strict=True)))

    def _build(self, start: int, end: int) -> list[Pool]:
        """Some pools as objects, read from the table."""
        ends = np.cumsum(self.sizes[:end])  # small beside the reading
        low, high = int(ends[start - 1]) if start else 0, int(ends[-1])
        rows = np.arange(low, high) if self.order is None else np.sort(self.order[low:high])
        cells = list(zip(*(self.columns.cells_at(name, rows) for name in self.columns.names), strict=True))
        return self._pools(start, end, dict(zip(rows.tolist(), cells, strict=True)), low)

    def _pools(self, start: int, end: int, rows: Any, low: int = 0) -> list[Pool]:
        names, pools, at = self.columns.names, [], low
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

    def _at(self, row: int) -> str:
        """Where a row stands, for messages."""
        return self.columns.at(row) or f"{self.where}, row {row}"

    def _refuse_missing(self) -> None:
        names = self.columns.names
        for name in ("id", "answer"):
            if name not in names:
                there = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
                there = f", and it has {there}" if there else ""
                raise PoolFileError(
                    f"{self.where} has no column {name!r}; expected one row per path{there}",
                    f"rename the one that it is, or in Python say columns={{'…': {name!r}}}" if there else "",
                )
        if not self.columns.n:
            raise PoolFileError(f"{self.where} holds no rows; expected one per path")

    def _identities(self) -> tuple[Runs, Sequence[str]]:
        """The problem of each row, numbered as they come, and their names."""
        runs = self.columns.runs("id")
        if runs is None:
            raise PoolFileError(f"{self.where}: ids must be texts or whole numbers, got lists or objects")
        if (blank := np.flatnonzero(runs.codes < 0)).size:
            raise PoolFileError(f"{self._at(int(runs.starts[blank[0]]))}: a path needs the id of its problem")
        names: Sequence[str] = runs.values
        if not isinstance(runs.values, TextColumn):
            values = runs.values
            kinds = set(map(type, values))
            if bool in kinds or (str in kinds and len(kinds) > 1):
                odd = next((value for value in values if type(value) is not type(values[0])), values[0])
                raise PoolFileError(
                    f"{self.where}: the column 'id' mixes types ({values[0]!r:.40} and {odd!r:.40}), so that 1 and "
                    "'1' could be two problems or one",
                    "make all of them texts",
                )
            if not kinds <= {str, int, float}:
                raise PoolFileError(f"{self.where}: ids must be texts or whole numbers, got {values[0]!r:.40}")
            names = values if kinds == {str} else list(map(str if kinds == {int} else name_of, values))
        if not all(map(str.strip, names)):
            blank_id = next(at for at, name in enumerate(names) if not name.strip())
            row = int(runs.starts[int(np.argmax(runs.codes == blank_id))])
            raise PoolFileError(f"{self._at(row)}: a path needs the id of its problem")
        return runs, names

    def _stand_in_order(self) -> bool:
        """Whether the paths of each problem stand in the order of their numbers, as far as that is seen at a glance."""
        if "path" not in self.columns.names:
            return True
        places = self.columns.whole_numbers("path")
        if places is None:
            return False
        rising = places[1:] > places[:-1]
        rising[self.first[1:] - 1] = True
        return bool(rising.all())

    def _order(self, codes: NDArray[np.intp]) -> NDArray[np.intp] | None:
        step = np.diff(codes)
        together = not len(step) or bool(step.min() >= 0 and step.max() <= 1)  # numbered as they come
        places = self._places()
        if places is None:
            if together:
                return None
            row = 1 + int(np.argmax((step != 0) & (step != 1)))
            raise PoolFileError(
                f"{self._at(row)}: the id {self.ids[codes[row]]!r} turns up again behind others",
                "sort the table by id if it is the same problem, give a column 'path' that numbers its paths, or give "
                "other problems other ids",
            )
        order = np.lexsort((places, codes))
        same = (np.diff(codes[order]) == 0) & (np.diff(places[order]) == 0)
        if same.any():
            row = int(order[1 + int(np.argmax(same))])
            raise PoolFileError(
                f"{self._at(row)}: the id {self.ids[codes[row]]!r} has two rows of the path {places[row]}",
                "give other problems other ids, and each path a number of its own",
            )
        return None if together and (order == np.arange(len(order))).all() else order

    def _places(self) -> NDArray[np.int64] | None:
        """The number of each path in its pool; None where the table does not say it of all."""
        if "path" not in self.columns.names:
            return None
        numbers = self.columns.numbers("path")
        if numbers is not None and np.isnan(numbers).any():
            return None
        if numbers is not None and (np.abs(numbers) < 2**53).all():
            return numbers.astype(np.int64)
        cells = self.columns.cells("path")
        if None in cells:
            return None
        try:
            return np.array([int(cell) for cell in cells], dtype=np.int64)
        except (ValueError, TypeError, OverflowError):
            odd = next(row for row, cell in enumerate(cells) if not is_whole(cell))
            raise PoolFileError(f"{self._at(odd)}: 'path' must be a whole number, got {cells[odd]!r:.40}") from None

    def _refuse_scattered(self, runs: Runs) -> None:
        """Raise if an id stands in two files."""
        order = np.argsort(runs.codes, kind="stable")
        ends = np.flatnonzero(np.diff(runs.codes[order], append=-2))
        starts = np.concatenate([[0], ends[:-1] + 1])
        last = runs.starts + runs.lengths - 1
        self._refuse_torn(runs.starts[order[starts]], last[order[ends]])

    def _refuse_torn(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> None:
        """Raise if the first and the last row of a problem stand in two files."""
        torn = self.columns.part_of(first) != self.columns.part_of(last)
        if torn.any():
            problem = int(np.argmax(torn))
            one, other = (self._at(int(row)) for row in (first[problem], last[problem]))
            raise PoolFileError(
                f"the id {self.ids[problem]!r} stands in two files: {one}, and {other}",
                "write each pool whole into one file, and give other problems other ids",
            )

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
