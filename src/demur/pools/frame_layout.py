"""Whose the rows of a table are: the problems it tells of, and the paths of each in their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from demur.errors import PoolFileError
from demur.pools.columns import Columns
from demur.pools.frame_rows import is_whole, name_of
from demur.pools.runs import Runs
from demur.voting.text_columns import TextColumn


class Layout:
    """Where the pools of a table stand; a table that leaves it open is refused."""

    def __init__(self, columns: Columns, where: str) -> None:
        self.columns, self.where = columns, where
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

    def at(self, row: int) -> str:
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
            raise PoolFileError(f"{self.at(int(runs.starts[blank[0]]))}: a path needs the id of its problem")
        names: Sequence[str] = runs.values
        if not isinstance(runs.values, TextColumn):
            values = runs.values
            kinds = set(map(type, values))
            named = list(map(str if kinds == {int} else name_of, values))
            if bool in kinds or (len(kinds) > 1 and (str in kinds or len(set(named)) < len(named))):
                odd = next((value for value in values if type(value) is not type(values[0])), values[0])
                raise PoolFileError(
                    f"{self.where}: the column 'id' mixes types ({values[0]!r:.40} and {odd!r:.40}), so that 1 and "
                    "'1' could be two problems or one",
                    "make all of them texts",
                )
            if not kinds <= {str, int, float}:
                raise PoolFileError(f"{self.where}: ids must be texts or whole numbers, got {values[0]!r:.40}")
            names = values if kinds == {str} else named
        if not all(map(str.strip, names)):
            blank_id = next(at for at, name in enumerate(names) if not name.strip())
            row = int(runs.starts[int(np.argmax(runs.codes == blank_id))])
            raise PoolFileError(f"{self.at(row)}: a path needs the id of its problem")
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
                f"{self.at(row)}: the id {self.ids[codes[row]]!r} turns up again behind others",
                "sort the table by id if it is the same problem, give a column 'path' that numbers its paths, or give "
                "other problems other ids",
            )
        order = np.lexsort((places, codes))
        same = (np.diff(codes[order]) == 0) & (np.diff(places[order]) == 0)
        if same.any():
            row = int(order[1 + int(np.argmax(same))])
            raise PoolFileError(
                f"{self.at(row)}: the id {self.ids[codes[row]]!r} has two rows of the path {places[row]}",
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
            raise PoolFileError(f"{self.at(odd)}: 'path' must be a whole number, got {cells[odd]!r:.40}") from None

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
            one, other = (self.at(int(row)) for row in (first[problem], last[problem]))
            raise PoolFileError(
                f"the id {self.ids[problem]!r} stands in two files: {one}, and {other}",
                "write each pool whole into one file, and give other problems other ids",
            )
