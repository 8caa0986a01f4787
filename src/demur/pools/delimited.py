"""Pools as CSV: one row per path under a header, the columns being those of `pools.frames`.

What is known of how pools came to be stands in the first row, in a column `demur` (see `pools.provenance`).

A CSV has no types. Blank cells are nothing; ids, answers, questions and gold stay the texts that they are; any other
column is numbers, or true and false, where all of its cells are written so.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from demur.errors import PoolFileError
from demur.files.atomic import written_whole
from demur.files.headers import is_header
from demur.files.inputs import text_of
from demur.files.strict_json import NotJson, parse
from demur.pools.columns import ListColumns, refuse_repeated
from demur.pools.frame_rows import OF_PROBLEM, PROBLEM, SCORE, table_of
from demur.pools.frames import FramePools, renamed
from demur.pools.provenance import PoolFile, Provenance
from demur.records import ASKED_WITH, Pool

_TEXTS = {*PROBLEM, *OF_PROBLEM, "answer", "text", "path_extra"} - {"temperature"}
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,300})(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")
_NOTHING = ("", "nan", "NaN")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_KNOWN = "demur"
"""The column that says how pools came to be."""


def read_csv(source: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> PoolFile:
    """The pools of a file, and what it says of how they came to be; `columns` says what its own names mean."""
    path = Path(source)
    text = text_of(path, PoolFileError)
    with _long_cells():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(path), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            refuse_repeated(header, str(path))
            if not header:
                raise PoolFileError(f"{path} holds no rows; expected one per path, under a header")
            rows = []
            for row in reader:
                if row and len(row) != len(header):
                    raise PoolFileError(
                        f"{path}, line {reader.line_num}: {len(row)} cells under a header of {len(header)}",
                        "put quotes around cells that hold a separator",
                    )
                rows += [row] if row else []
        except csv.Error as error:
            raise PoolFileError(f"{path}, line {reader.line_num}: {error}") from None
    cells = {name: [row[at] for row in rows] for at, name in enumerate(header)}
    known = _provenance(cells, path)
    named = renamed(ListColumns(cells), columns or {}, str(path))
    typed = ListColumns({name: _typed(name, named.cells(name), path) for name in named.names})
    return PoolFile(FramePools(typed, str(path)), known)


def _provenance(cells: dict[str, list[str]], path: Path) -> Provenance:
    """What is told of the whole file, whose column is taken out; rows of several runs are refused."""
    told = {cell for cell in cells.get(_KNOWN, ()) if cell.strip()}
    try:
        documents = [parse(cell) for cell in told]
    except NotJson:
        documents = []
    if not documents or not all(map(is_header, documents)):
        return Provenance()
    if len(documents) > 1:
        raise PoolFileError(f"{path}: the column {_KNOWN!r} tells of several runs", "keep them apart")
    del cells[_KNOWN]
    return Provenance.of(documents[0], str(path))


def write_csv(pools: Sequence[Pool], target: str | os.PathLike[str], provenance: Provenance | None = None) -> None:
    """One row per path; the file appears only when it is whole."""
    columns = table_of(pools)
    if provenance is not None and (known := provenance.text()) is not None:
        columns[_KNOWN] = [known, *[None] * (len(columns["id"]) - 1)]
    write_rows(chain([columns], zip(*columns.values(), strict=True)), target)


def write_rows(rows: Iterable[Iterable[Any]], target: str | os.PathLike[str]) -> None:
    """Rows of cells, separated and packed as the name says; the file appears only when it is whole."""
    path = Path(target)
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with (
        written_whole(path, PoolFileError) as unfinished,
        opened(unfinished, "wt", encoding="utf-8", newline="") as stream,
    ):
        csv.writer(stream, delimiter=_separator(path)).writerows(rows)


def _separator(path: Path) -> str:
    return "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","


def _typed(name: str, cells: Sequence[str], path: Path) -> list[Any]:
    """A column's values, read alike in all of its cells."""
    if name in _TEXTS:
        read_text = _list_or_text if name in ASKED_WITH else str
        return [read_text(cell) if cell.strip() else None for cell in cells]
    if name.startswith(SCORE):
        cells = ["" if _INFINITE.fullmatch(cell.strip()) else cell for cell in cells]
    said = {cell.strip() for cell in cells} - set(_NOTHING)
    read: Callable[[str], Any] = str
    if all(_is_finite(cell) for cell in said):
        read = _number
    elif {cell.lower() for cell in said} <= {"true", "false"}:
        read = _is_true
    elif name.startswith(SCORE):
        odd = next(row for row, cell in enumerate(cells) if not _is_finite(cell.strip() or "0"))
        raise PoolFileError(f"{path}, row {odd}: {name!r} must be a finite number, got {cells[odd]!r:.40}")
    return [None if cell.strip() in _NOTHING else read(cell.strip()) for cell in cells]


def _is_finite(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and math.isfinite(float(cell))


def _list_or_text(cell: str) -> Any:
    """Options, passages or messages as they are written: a JSON list or object, or else a text."""
    try:
        value = parse(cell)
    except NotJson:
        return cell
    return value if isinstance(value, (list, dict)) else cell


def _number(cell: str) -> int | float:
    return int(cell) if cell.removeprefix("-").isdigit() else float(cell)


def _is_true(cell: str) -> bool:
    return cell.lower() == "true"


@contextmanager
def _long_cells() -> Iterator[None]:
    """Texts of paths are longer than what Python takes for a cell."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
