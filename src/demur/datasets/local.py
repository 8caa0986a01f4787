"""Questions from a file: JSON lines, a JSON list, or CSV with a header or as MMLU has it; plain or gzipped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demur.datasets import formats
from demur.errors import DatasetError
from demur.files.headers import is_header
from demur.files.inputs import text_of
from demur.files.strict_json import NotJson, RepeatedKey, parse
from demur.prompts.conversations import MESSAGES
from demur.records import Problem

Placed = tuple[str, Any]
"""A record, and where it stands: "line 3", or "record 3" where lines do not tell."""


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
    text = text_of(path, DatasetError)
    placed = _csv(text, path) if _kind(path) == ".csv" else _json(text, path)
    records = [(where, record) for where, record in placed if not is_header(record)]
    if not records:
        raise DatasetError(f"{path} holds no records")
    for where, record in records:
        if not isinstance(record, dict):
            raise DatasetError(f"{path}, {where}: expected JSON objects, got {type(record).__name__}")
    read_one = formats.recognise(records[0][1])
    problems = []
    for position, (where, record) in enumerate(records):
        try:
            problems.append(read_one(record, f"{stem}-{position}"))
        except DatasetError as error:
            raise DatasetError(f"{path}, {where}: {error}") from None
        except KeyError as error:
            raise DatasetError(f"{path}, {where}: the field {error!s:.60} is missing") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise DatasetError(f"{path}, {where}: {error!r:.120}: a field is wrong") from None
    return problems


def _json(text: str, path: Path) -> Iterator[Placed]:
    """A list in one document, one object, or an object per line."""
    try:
        whole = parse(text)
    except RepeatedKey as error:
        raise DatasetError(f"{path}, line {error.line}: {error}", "keep one of the two") from None
    except NotJson:
        whole = None
    if isinstance(whole, list):
        yield from ((f"record {number}", record) for number, record in enumerate(whole, start=1))
        return
    if whole is not None:
        blank = text[: len(text) - len(text.lstrip())]
        yield f"line {1 + blank.count(chr(10))}", whole
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"line {number}", parse(line)
            except RepeatedKey as error:
                raise DatasetError(f"{path}, line {number}: {error}", "keep one of the two") from None
            except NotJson as error:
                raise DatasetError(f"{path}, line {number}: not JSON: {error}") from None


def _csv(text: str, path: Path) -> Iterator[Placed]:
    """A table with a header that names `question` or `messages`; or MMLU's rows without one."""
    rows = _rows(text, path)
    first = next(rows, None)
    if first is None:
        return
    header = [name.strip() for name in first[1]]
    if not {"question", MESSAGES} & set(header):
        for where, row in (first, *rows):
            if len(row) < 4:
                expected = "a question, options and a letter, or a header that names `question`"
                raise DatasetError(f"{path}, {where}: expected {expected}")
            yield where, {"question": row[0], "choices": row[1:-1], "answer": row[-1].strip()}
        return
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise DatasetError(f"{path}, line 1: the column {twice!r:.60} stands twice", "keep one of the two")
    for where, row in rows:
        if len(row) > len(header):
            raise DatasetError(f"{path}, {where}: {len(row)} cells, and the header names {len(header)}")
        yield where, _named(_with_messages(dict(zip(header, row, strict=False)), f"{path}, {where}"))


def _rows(text: str, path: Path) -> Iterator[tuple[str, list[str]]]:
    """The rows that are not blank, each with the line it ends in."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: {error}", "mend it, or give JSON lines instead") from None


def _with_messages(record: dict[str, Any], where: str) -> dict[str, Any]:
    """A row whose messages are a list: a table has them as JSON, and nothing where a question is plain."""
    written = record.get(MESSAGES)
    if written is None:
        return record
    others = {name: value for name, value in record.items() if name != MESSAGES}
    if not written.strip():
        return others
    if not (others.get("question") or "").strip():
        others.pop("question", None)
    try:
        return {**others, MESSAGES: parse(written)}
    except NotJson as error:
        raise DatasetError(f"{where}: the messages are not JSON: {error}") from None


def _named(record: dict[str, Any]) -> dict[str, Any]:
    """A row by its header; columns A, B, C … are options."""
    letters = [name for name in record if len(name) == 1 and name.isupper()]
    if "answer" not in record or len(letters) < 2:
        return record
    return {name: record[name] for name in ("question", "answer")} | {"choices": [record[name] for name in letters]}
