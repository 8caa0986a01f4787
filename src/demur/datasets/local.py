"""Questions from a file: JSON lines, a JSON list, or MMLU's headless CSV; plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from demur.datasets import formats
from demur.errors import DatasetError
from demur.records import Problem


def read(path: Path) -> list[Problem]:
    """Every problem of a file, or of all the files of a folder."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and _kind(file))
        if not files:
            raise DatasetError(f"the folder {path} holds no .jsonl, .json or .csv file")
        return [problem for file in files for problem in _read(file, file.relative_to(path).with_suffix("").as_posix())]
    return _read(path, path.name.partition(".")[0])


def _kind(path: Path) -> str | None:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return suffix if suffix in (".jsonl", ".json", ".csv") else None


def _read(path: Path, stem: str) -> list[Problem]:
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
    records = _csv(text, path) if _kind(path) == ".csv" else _json(text, path)
    if not records:
        raise DatasetError(f"{path} holds no records")
    if not all(isinstance(record, dict) for record in records):
        raise DatasetError(f"{path}: expected JSON objects")
    read_one = formats.recognise(records[0])
    problems = []
    for position, record in enumerate(records):
        try:
            problems.append(read_one(record, f"{stem}-{position}"))
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{path}, record {position + 1}: {error!r:.120} is wrong or missing") from None
    return problems


def _json(text: str, path: Path) -> list[Any]:
    """A list in one document, one object, or an object per line."""
    with suppress(ValueError):
        if (whole := json.loads(text)) is not None:
            return whole if isinstance(whole, list) else [whole]
    records = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise DatasetError(f"{path}, line {number}: not JSON: {error}") from None
    return records


def _csv(text: str, path: Path) -> list[dict[str, Any]]:
    """A table with a header that names `question`; or MMLU's rows without one: question, options, the right letter."""
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    if "question" in header:
        return [_named(dict(zip(header, row, strict=False))) for row in rows[1:]]
    records = []
    for number, row in enumerate(rows, start=1):
        if len(row) < 4:
            expected = "a question, options and a letter, or a header that names `question`"
            raise DatasetError(f"{path}, row {number}: expected {expected}")
        records.append({"question": row[0], "choices": row[1:-1], "answer": row[-1].strip()})
    return records


def _named(record: dict[str, Any]) -> dict[str, Any]:
    """A row by its header; columns A, B, C … are options."""
    letters = [name for name in record if len(name) == 1 and name.isupper()]
    if "answer" not in record or len(letters) < 2:
        return record
    return {name: record[name] for name in ("question", "answer")} | {"choices": [record[name] for name in letters]}
