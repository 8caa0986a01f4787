"""Pools from a table of paths, one row each.

`id` and `answer` are required; `question`, `gold`, `aliases`, `cluster`, `group`, `text` and `path` (the order of
paths) are known by name, scores are columns `score.NAME`, and other columns are kept as fields of the path.

Rows of one problem stand together, unless `path` says which is which: an id that turns up again further down is more
often another problem's than the same one's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.answers.relations import as_written
from demur.errors import PoolFileError
from demur.files.strict_json import NotJson, parse
from demur.pools.columns import Columns, columns_of, refuse_repeated
from demur.prompts.conversations import known_transcript
from demur.records import ASKED_WITH, Groups, Path, Pool, Problem, group_as_text, group_in_file, group_of_text

SCORE = "score."
PROBLEM = ("id", "question", "gold", "cluster", "group", "problem_extra")
OF_PROBLEM = ("task", "dataset", "model", "temperature", "aliases", *ASKED_WITH)
"""Further columns that tell of the problem; others tell of the path."""
PATH = ("path", "answer", "has_answer", "text", "path_extra")


class FramePools(Sequence[Pool]):
    """The pools of a table, which become objects only where somebody looks at one."""

    def __init__(self, columns: Columns, where: str) -> None:
        self.columns, self._where = columns, where
        self._refuse_missing()
        codes, ids = self._identities()
        self.ids: list[str] = ids
        self.sizes: NDArray[np.intp] = np.bincount(codes, minlength=len(ids))
        self.order: NDArray[np.intp] | None = self._order(codes)
        """The rows, pool by pool; None where they stand so."""
        self.first: NDArray[np.intp] = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
        """The first row of each problem."""
        self._refuse_contradictions(codes)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: Any) -> Any:
        return self._built[row]

    def __iter__(self) -> Iterator[Pool]:
        return iter(self._built)

    def of_problems(self, name: str) -> list[Any]:
        """What a column says of each problem, in its first row; None of all where there is no such column."""
        if name not in self.columns.names:
            return [None] * len(self)
        cells = self.columns.cells(name)
        return [cells[row] for row in self.first.tolist()]

    def questions(self) -> list[str | None]:
        """The text of each problem, be it the transcript of its messages."""
        return [None] * len(self) if self.plain_problems else [pool.problem.question for pool in self]

    def clusters(self) -> list[str | None]:
        """The cluster of each problem, as text."""
        return [None if cell is None else str(cell) for cell in self.of_problems("cluster")]

    @property
    def score_names(self) -> list[str]:
        """Scores that some path has."""
        named = [name for name in self.columns.names if name.startswith(SCORE)]
        return sorted(name.removeprefix(SCORE) for name in named if set(self.columns.cells(name)) != {None})

    @property
    def plain_problems(self) -> bool:
        """Whether the table says nothing of problems that reading and comparing answers could depend on."""
        return not any(name in self.columns.names for name in ("question", "problem_extra", *OF_PROBLEM))

    @cached_property
    def _built(self) -> list[Pool]:
        names = self.columns.names
        rows = list(zip(*(self.columns.cells(name) for name in names), strict=True))
        order = (np.arange(len(rows)) if self.order is None else self.order).tolist()
        pools, at = [], 0
        for name, size, first in zip(self.ids, self.sizes.tolist(), self.first.tolist(), strict=True):
            number = first
            try:
                problem = _problem(dict(zip(names, rows[first], strict=True)), name)
                paths = []
                for number in order[at : at + size]:
                    paths.append(_path(dict(zip(names, rows[number], strict=True))))
            except (ValueError, TypeError, OverflowError) as error:
                raise PoolFileError(f"{self._where}, row {number}: {error}") from None
            pools.append(Pool(problem, tuple(paths)))
            at += size
        return pools

    def _refuse_missing(self) -> None:
        names = self.columns.names
        for name in ("id", "answer"):
            if name not in names:
                there = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
                there = f", and it has {there}" if there else ""
                raise PoolFileError(
                    f"{self._where} has no column {name!r}; expected one row per path{there}",
                    f"rename the one that it is, or in Python say columns={{'…': {name!r}}}" if there else "",
                )
        if not self.columns.n:
            raise PoolFileError(f"{self._where} holds no rows; expected one per path")

    def _identities(self) -> tuple[NDArray[np.intp], list[str]]:
        """The problem of each row, numbered as they come, and their names."""
        encoded = self.columns.encoded("id", in_runs=True)
        if encoded is None:
            raise PoolFileError(f"{self._where}: ids must be texts or whole numbers, got lists or objects")
        codes, values = encoded
        if (blank := np.flatnonzero(codes < 0)).size:
            raise PoolFileError(f"{self._where}, row {blank[0]}: a path needs the id of its problem")
        kinds = set(map(type, values))
        if bool in kinds or (str in kinds and len(kinds) > 1):
            odd = next((value for value in values if type(value) is not type(values[0])), values[0])
            raise PoolFileError(
                f"{self._where}: the column 'id' mixes types ({values[0]!r:.40} and {odd!r:.40}), so that 1 and '1' "
                "could be two problems or one",
                "make all of them texts",
            )
        names = values if kinds == {str} else list(map(str if kinds == {int} else _name, values))
        if not all(map(str.strip, names)):
            blank_id = next(at for at, name in enumerate(names) if not name.strip())
            raise PoolFileError(
                f"{self._where}, row {int(np.argmax(codes == blank_id))}: a path needs the id of its problem"
            )
        return codes, names

    def _order(self, codes: NDArray[np.intp]) -> NDArray[np.intp] | None:
        step = np.diff(codes)
        together = not len(step) or bool(step.min() >= 0 and step.max() <= 1)  # numbered as they come
        places = self._places()
        if places is None:
            if together:
                return None
            row = 1 + int(np.argmax((step != 0) & (step != 1)))
            raise PoolFileError(
                f"{self._where}, row {row}: the id {self.ids[codes[row]]!r} turns up again behind others",
                "sort the table by id if it is the same problem, give a column 'path' that numbers its paths, or give "
                "other problems other ids",
            )
        order = np.lexsort((places, codes))
        same = (np.diff(codes[order]) == 0) & (np.diff(places[order]) == 0)
        if same.any():
            row = int(order[1 + int(np.argmax(same))])
            raise PoolFileError(
                f"{self._where}, row {row}: the id {self.ids[codes[row]]!r} has two rows of the path {places[row]}",
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
            odd = next(row for row, cell in enumerate(cells) if not _is_whole(cell))
            raise PoolFileError(
                f"{self._where}, row {odd}: 'path' must be a whole number, got {cells[odd]!r:.40}"
            ) from None

    def _refuse_contradictions(self, codes: NDArray[np.intp]) -> None:
        """Raise if rows of one id say different things of the problem: then they are of two."""
        for name in (*PROBLEM[1:], *OF_PROBLEM):
            if name not in self.columns.names:
                continue
            encoded = self.columns.encoded(name, in_runs=True)
            if encoded is None:
                cells = self.columns.cells(name)
                firsts = [cells[row] for row in self.first.tolist()]
                pairs = zip(cells, codes.tolist(), strict=True)
                differ = np.array([cell is not None and cell != firsts[code] for cell, code in pairs], dtype=np.bool_)
            else:
                said = encoded[0]
                differ = (said >= 0) & (said != said[self.first][codes])
            if differ.any():
                row = int(np.argmax(differ))
                raise PoolFileError(
                    f"{self._where}, row {row}: the id {self.ids[codes[row]]!r} has another {name!r} than in row "
                    f"{self.first[codes[row]]}",
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


def table_of(pools: Sequence[Pool]) -> dict[str, list[Any]]:
    """Pools as columns, one row per path: problem fields repeat, and what has no column of its own is JSON."""
    names = sorted({name for pool in pools for path in pool.paths for name in path.scores})
    columns: dict[str, list[Any]] = {name: [] for name in (*PROBLEM, *PATH, *(SCORE + name for name in names))}
    for pool in pools:
        problem, gold, extra = pool.problem, json.dumps(list(pool.problem.gold)), json.dumps(dict(pool.problem.extra))
        shared = (problem.id, problem.question, gold, problem.cluster, group_as_text(problem.group), extra)
        for position, path in enumerate(pool.paths):
            own = (position, as_written(path.answer), path.has_answer_field, path.text, json.dumps(dict(path.extra)))
            row = (*shared, *own, *map(path.scores.get, names))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value.encode("utf-8", "replace").decode() if isinstance(value, str) else value)
    return columns


def _name(value: Any) -> str:
    """An id as text: whole numbers stay whole, as tables that lack some of them do not have it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_whole(value: Any) -> bool:
    try:
        return int(value) is not None
    except (ValueError, TypeError, OverflowError):
        return False


def _problem(row: Mapping[str, Any], identity: str) -> Problem:
    cluster = None if row.get("cluster") is None else str(row["cluster"])
    group = group_of_cell(row.get("group"), identity)
    beside = {name: row[name] for name in OF_PROBLEM if row.get(name) is not None}
    if "aliases" in beside:
        beside["aliases"] = _list(beside["aliases"])
    gold, extra = tuple(_list(row.get("gold"))), beside | _object(row, "problem_extra")
    return known_transcript(Problem(identity, _text(row, "question"), gold, cluster, group, extra))


def group_of_cell(cell: Any, identity: str) -> str | Groups | None:
    """A problem's group as tables have it: a name, a list of them, or a list as we write it."""
    if isinstance(cell, str):
        return group_of_text(cell)
    return group_in_file(_name(cell) if isinstance(cell, float) else cell, f"problem {identity!r:.60}")


def _path(row: Mapping[str, Any]) -> Path:
    scores = {name.removeprefix(SCORE): row[name] for name in row if name.startswith(SCORE) and row[name] is not None}
    known = (*PROBLEM, *PATH, *OF_PROBLEM)
    others = {name: row[name] for name in row if name not in known and not name.startswith(SCORE)}
    extra, has_answer = others | _object(row, "path_extra"), row.get("has_answer") is not False
    return Path(row["answer"], _text(row, "text"), scores, extra, has_answer)


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name!r} must be a text, got {value!r:.40}")
    return value


def _object(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Further fields as we write them, a JSON object."""
    written = _text(row, name)
    value = parse(written) if written else {}
    if not isinstance(value, dict):
        raise TypeError(f"{name!r} must be a JSON object, got {written!r:.40}")
    return value


def _list(gold: Any) -> list[Any]:
    """Gold as we write it (a JSON list), or as others do: a bare value or a list."""
    if gold is None or isinstance(gold, list):
        return gold or []
    try:
        value = parse(gold) if isinstance(gold, str) else None
    except NotJson:
        value = None
    return value if isinstance(value, list) else [gold]
