"""The file that keeps what math-verify said, so that a busy machine cannot change it later.

    {"format": "demur-verdicts", "version": 2,
     "verdicts": [[a, b, true or false], …], "readings": {formula: [spellings of its value], …}}

A formula without a value has no spellings.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from demur.errors import InvalidValue
from demur.files.atomic import atomic_file
from demur.files.inputs import text_of
from demur.files.strict_json import as_json, parse

Verdicts = dict[tuple[str, str], bool]
Readings = dict[str, list[str]]

_FORMAT = "demur-verdicts"
_VERSION = 2


def read(file: str | os.PathLike[str]) -> tuple[Verdicts, Readings]:
    """The verdicts and readings of a file; raises where it holds anything else."""
    try:
        return _verdicts_and_readings(parse(text_of(Path(file), InvalidValue)))
    except InvalidValue:
        raise
    except ValueError as error:
        remedy = "name another file: it is made where there is none"
        raise InvalidValue(f"{file} cannot be read as verdicts: {error}", remedy) from None


def write(file: str | os.PathLike[str], verdicts: Verdicts, readings: Readings) -> None:
    rows = [[a, b, verdict] for (a, b), verdict in sorted(verdicts.items())]
    document = {"format": _FORMAT, "version": _VERSION, "verdicts": rows, "readings": dict(sorted(readings.items()))}
    with atomic_file(file) as unfinished:
        unfinished.write_text(as_json(document), encoding="utf-8")


def _verdicts_and_readings(document: Any) -> tuple[Verdicts, Readings]:
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ValueError("not a file of verdicts")
    version = document.get("version", 1)
    if version != _VERSION:
        raise ValueError(f"they are of version {version!r:.20}, and this demur has version {_VERSION}")
    rows, readings = document.get("verdicts"), document.get("readings")
    if not isinstance(rows, list) or not all(map(_is_verdict, rows)):
        raise ValueError("each verdict must be two answers, and true or false")
    if not isinstance(readings, dict) or not all(map(_is_texts, readings.values())):
        raise ValueError("each reading must be a list of texts")
    return {(min(a, b), max(a, b)): verdict for a, b, verdict in rows}, readings


def _is_verdict(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 3 and _is_texts(row[:2]) and isinstance(row[2], bool)


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
