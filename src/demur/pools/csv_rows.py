"""Pools as a table of paths, one row each, as comma-separated values with a header: see `pools.frames`.

All cells are text there. Scores must be numbers; a further column is numbers, or true and false, where every cell of it
is. An empty cell is nothing.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demur.errors import PoolFileError
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, parse
from demur.pools.frames import OF_PROBLEM, PATH, PROBLEM, SCORE, pools_of_rows, refuse_repeated
from demur.pools.provenance import PoolFile
from demur.records import ASKED_WITH

_LONGEST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_NAMES = tuple(name for name in OF_PROBLEM if name not in (*ASKED_WITH, "temperature"))
"""Columns that are text whatever they look like."""
_TRUTH = {"true": True, "false": False}
Rows = list[dict[str, Any]]


def read_csv(source: str | os.PathLike[str]) -> PoolFile:
    """Pools from a table of paths; `id` and `answer` are required, the rest may be missing."""
    rows = list(_rows(Path(source)))
    names = list(rows[0]) if rows else []
    for name in names:
        _read_column(rows, name, str(source))
    return PoolFile(pools_of_rows(rows, str(source)))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    reader = csv.reader((line for _, line in lines_of(path, PoolFileError)), strict=True)
    header: list[str] | None = None
    try:
        with _long_cells():
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if header is None:
                    header = [name.strip() for name in row]
                    refuse_repeated(header, str(path))
                    _refuse_other_header(header, where)
                elif row:
                    if len(row) != len(header):
                        raise PoolFileError(f"{where}: {len(row)} cells, and the header names {len(header)}")
                    yield {name: cell if cell.strip() else None for name, cell in zip(header, row, strict=True)}
    except csv.Error as error:
        raise PoolFileError(f"{path}, line {reader.line_num}: {error}", "mend it, or give JSON lines instead") from None


def _refuse_other_header(header: list[str], where: str) -> None:
    if lacking := [name for name in ("id", "answer") if name not in header]:
        there = ", ".join(f"{name:.40}" for name in header[:20])
        raise PoolFileError(f"{where}: there is no column {lacking[0]!r}; expected one row per path, and found {there}")


@contextmanager
def _long_cells() -> Iterator[None]:
    """Texts of paths may be longer than cells commonly are."""
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_column(rows: Rows, name: str, source: str) -> None:
    """Read the cells of a column as what they are, in place."""
    if name.startswith(SCORE):
        for number, row in enumerate(rows):
            if row[name] is not None and (value := _number(row[name])) is None:
                raise PoolFileError(f"{source}, row {number}: the score must be a finite number, got {row[name]!r:.40}")
            row[name] = None if row[name] is None else value
    elif name == "has_answer" or name not in (*PROBLEM, *PATH, *_NAMES):
        readers: tuple[Callable[[str], Any], ...] = (_json,) if name in ASKED_WITH else (_truth, _number)
        for reader in readers:
            read = {row[name]: reader(row[name]) for row in rows if row[name] is not None}
            if None not in read.values():
                _replace(rows, name, read)
                return


def _replace(rows: Rows, name: str, read: Mapping[str, Any]) -> None:
    for row in rows:
        row[name] = read.get(row[name])


def _truth(cell: str) -> bool | None:
    return _TRUTH.get(cell.strip().lower())


def _number(cell: str) -> float | None:
    """A finite number, written as numbers are."""
    if not _NUMBER.fullmatch(text := cell.strip()):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _json(cell: str) -> Any:
    """A list or an object, where it is one."""
    try:
        value = parse(cell)
    except NotJson:
        return cell
    return value if isinstance(value, (list, dict)) else cell
