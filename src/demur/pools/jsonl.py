"""Pool files: one JSON object per line, plain or gzipped.

    {"id": "q1", "question": "…", "gold": "4", "cluster": "…", "group": "…",
     "paths": [{"answer": "4", "text": "…", "scores": {"judge": 0.9}}, …]}

Only `id` and `paths` are required. `gold` may be a list. Fields without a name here are kept as they are.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any, NoReturn, TextIO, cast

from demur.atomic_files import atomic_file
from demur.errors import PoolFileError
from demur.records import Path, Pool, Problem

_PROBLEM_FIELDS = ("id", "question", "gold", "cluster", "group", "paths")
_PATH_FIELDS = ("answer", "text", "scores")
_LABELS = ("cluster", "group")


def read_pools(source: str | os.PathLike[str]) -> list[Pool]:
    """Every pool of a file; an error names the file and the line."""
    first_line: dict[str, int] = {}
    pools = []
    for number, record in _records(FilePath(source)):
        where = f"{source}, line {number}"
        pool = _pool(record, where)
        earlier = first_line.setdefault(pool.problem.id, number)
        if earlier != number:
            twice = f"the id {pool.problem.id!r} already stands in line {earlier}"
            raise PoolFileError(f"{where}: {twice}; ids must differ")
        pools.append(pool)
    if not pools:
        raise PoolFileError(f"{source} holds no problems; expected one JSON object per line")
    return pools


def write_pools(pools: Iterable[Pool], target: str | os.PathLike[str]) -> None:
    """Write pools one per line, gzipped where the name ends in .gz; the file appears only when it is whole."""
    write_lines((_record(pool) for pool in pools), target)


def write_lines(records: Iterable[dict[str, Any]], target: str | os.PathLike[str]) -> None:
    """Write JSON objects one per line; the file appears only when it is whole."""
    path = FilePath(target)
    try:
        with atomic_file(path) as unfinished, _open(unfinished, "wt", gzipped=path.suffix == ".gz") as stream:
            for record in records:
                stream.write(_line(record) + "\n")
    except OSError as error:
        raise PoolFileError(f"cannot write {path}: {error.strerror or error}") from None


def _line(record: dict[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as models sometimes leave: only an escape can write it
        text = json.dumps(record)
    return text


def _open(path: FilePath, mode: str, *, gzipped: bool) -> TextIO:
    opened: Any = gzip.open if gzipped else open
    encoding = "utf-8-sig" if mode == "rt" else "utf-8"
    return cast(TextIO, opened(path, mode, encoding=encoding, newline="\n"))


def _records(path: FilePath) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    try:
        with _open(path, "rt", gzipped=path.suffix == ".gz") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    got = f"{_shown(line)}: {getattr(error, 'msg', error)}"
                    raise PoolFileError(f"{path}, line {number}: expected one whole JSON object, got {got}") from None
                if not isinstance(record, dict):
                    raise PoolFileError(f"{path}, line {number}: expected a JSON object, got {_shown(line)}")
                yield number, record
    except FileNotFoundError:
        raise PoolFileError(f"there is no file {path}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise PoolFileError(f"{path}, after line {number}: the file is cut off or damaged: {error}") from None
    except OSError as error:
        raise PoolFileError(f"cannot read {path}: {error.strerror or error}") from None


def _pool(record: dict[str, Any], where: str) -> Pool:
    def fail(what: str) -> NoReturn:
        raise PoolFileError(f"{where}: {what}")

    name = record.get("id")
    if not isinstance(name, (str, int)) or isinstance(name, bool) or not str(name).strip():
        fail(f"`id` must be a non-blank string or a whole number, got {_shown(name)}")
    question = _optional(record.get("question"), str, "`question` must be a string", fail)
    paths = record.get("paths")
    if not isinstance(paths, list) or not paths:
        fail(f"`paths` must be a list of at least one path, got {_shown(paths)}")
    gold = record.get("gold")
    golds = gold if isinstance(gold, list) else [] if gold is None else [gold]
    if not all(isinstance(entry, (str, int, float)) for entry in golds):
        fail(f"`gold` must be a string, a number or a list of those, got {_shown(gold)}")
    labels = [_optional(record.get(field), (str, int), f"`{field}` must be a string", fail) for field in _LABELS]
    cluster, group = (None if label is None else str(label) for label in labels)
    problem = Problem(str(name), question, tuple(golds), cluster, group, _extra(record, _PROBLEM_FIELDS))
    return Pool(problem, tuple(_path(path, position, fail) for position, path in enumerate(paths)))


def _path(record: Any, position: int, fail: Any) -> Path:
    if not isinstance(record, dict):
        fail(f"path {position} must be an object, got {_shown(record)}")
    text = _optional(record.get("text"), str, f"`text` of path {position} must be a string", fail)
    named = f"`scores` of path {position} must be an object of numbers by name"
    scores = _optional(record.get("scores"), dict, named, fail)
    return Path(record.get("answer"), text, scores or {}, _extra(record, _PATH_FIELDS), "answer" in record)


def _optional(value: Any, kind: type | tuple[type, ...], rule: str, fail: Any) -> Any:
    if not (value is None or isinstance(value, kind)):
        fail(f"{rule}, got {_shown(value)}")
    return value


def _extra(record: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    return {field: value for field, value in record.items() if field not in known}


def _record(pool: Pool) -> dict[str, Any]:
    problem, gold = pool.problem, pool.problem.gold
    record: dict[str, Any] = {"id": problem.id}
    record |= {} if problem.question is None else {"question": problem.question}
    record |= {"gold": gold[0] if len(gold) == 1 else list(gold)} if gold else {}
    record |= {field: label for field in _LABELS if (label := getattr(problem, field)) is not None}
    record |= problem.extra
    record["paths"] = [
        {
            **({"answer": path.answer} if path.has_answer_field else {}),
            **({} if path.text is None else {"text": path.text}),
            **({"scores": dict(path.scores)} if path.scores else {}),
            **path.extra,
        }
        for path in pool.paths
    ]
    return record


def _shown(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"
