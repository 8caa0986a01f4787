"""Pool files: one JSON object per line, plain or gzipped.

    {"id": "q1", "question": "…", "gold": "4", "cluster": "…", "group": "…",
     "paths": [{"answer": "4", "text": "…", "scores": {"judge": 0.9}}, …]}

Only `id` and `paths` are required; `messages` may stand for the question. `gold` may be a list of accepted answers; one
that is a list itself stands in such a list. Fields without a name here are kept as they are. A line may tell of the
whole file: see `pools.provenance`.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from math import isfinite
from pathlib import Path as FilePath
from typing import Any, NoReturn, TextIO, cast

from demur.answers.relations import as_written
from demur.errors import InvalidValue, PoolFileError
from demur.files.atomic import written_whole
from demur.files.headers import is_header
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, RepeatedKey, as_json, is_deep, is_finite, parse
from demur.pools.provenance import PoolFile, Provenance
from demur.prompts.conversations import known_transcript
from demur.records import Path, Pool, Problem, group_in_file

_ABSENT: Any = object()

Fail = Callable[[str], NoReturn]


def read_pools(source: str | os.PathLike[str]) -> list[Pool]:
    """Every pool of a file; an error names the file and the line."""
    return list(read_jsonl(source).pools)


def read_jsonl(source: str | os.PathLike[str]) -> PoolFile:
    """Every pool of a file, and what it says of how they came to be."""
    first_line: dict[str, int] = {}
    pools, header, left_out = [], None, 0
    for number, record in _records(FilePath(source)):
        where = f"{source}, line {number}"
        if is_header(record):  # files that were put one behind the other have several
            left_out += Provenance.of(record, str(source)).left_out
            record.pop("left_out", None)
            if header not in (None, record):
                raise PoolFileError(f"{where}: these are pools of another run than those before", "keep them apart")
            header = record
            continue
        pool = _pool(record, where)
        earlier = first_line.setdefault(pool.problem.id, number)
        if earlier != number:
            twice = f"the id {pool.problem.id!r} already stands in line {earlier}"
            raise PoolFileError(f"{where}: {twice}; ids must differ")
        pools.append(pool)
    if not pools:
        raise PoolFileError(f"{source} holds no problems; expected one JSON object per line")
    known = Provenance() if header is None else Provenance.of(header, str(source))
    return PoolFile(pools, replace(known, left_out=left_out))


def write_pools(pools: Iterable[Pool], target: str | os.PathLike[str], provenance: Provenance | None = None) -> None:
    """Write pools one per line, gzipped where the name ends in .gz; the file appears only when it is whole."""
    known = {} if provenance is None else provenance.document()
    write_lines(chain([known] if known else [], (record_of(pool) for pool in pools)), target)


def write_lines(records: Iterable[dict[str, Any] | str], target: str | os.PathLike[str]) -> None:
    """Write JSON objects one per line, those that are texts already as they are; the file appears only when whole."""
    path = FilePath(target)
    with written_whole(path, PoolFileError) as unfinished, _opened(unfinished, gzipped=path.suffix == ".gz") as stream:
        for record in records:
            stream.write((record if isinstance(record, str) else line_of(record)) + "\n")


def line_of(record: dict[str, Any]) -> str:
    """One JSON object in one line, without its end."""
    text = as_json(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as models sometimes leave: only an escape can write it
        text = as_json(record)
    return text


def _opened(path: FilePath, *, gzipped: bool) -> TextIO:
    opened: Any = gzip.open if gzipped else open
    return cast(TextIO, opened(path, "wt", encoding="utf-8", newline="\n"))


def _records(path: FilePath) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines_of(path, PoolFileError):
        if line.isspace():
            continue
        try:
            record = parse(line, any_depth=True)
        except RepeatedKey as error:
            raise PoolFileError(f"{path}, line {number}: {error}", "keep one of the two") from None
        except NotJson as error:
            got = f"{_shown(line)}: {error}"
            raise PoolFileError(f"{path}, line {number}: expected one whole JSON object, got {got}") from None
        if not isinstance(record, dict):
            raise PoolFileError(f"{path}, line {number}: expected a JSON object, got {_shown(line)}")
        yield number, record


def _pool(record: dict[str, Any], where: str) -> Pool:
    """A line's pool; what is left of the record when all known fields are taken out is its `extra`."""

    def fail(what: str) -> NoReturn:
        raise PoolFileError(f"{where}: {what}")

    name = record.pop("id", None)
    if not isinstance(name, (str, int)) or isinstance(name, bool) or not str(name).strip():
        fail(f"`id` must be a non-blank string or a whole number, got {_shown(name)}")
    question = _optional(record.pop("question", None), str, "`question` must be a string", fail)
    paths = record.pop("paths", None)
    if not isinstance(paths, list) or not paths:
        fail(f"`paths` must be a list of at least one path, got {_shown(paths)}")
    gold = record.pop("gold", None)
    golds = gold if isinstance(gold, list) else [] if gold is None else [gold]
    if not all(isinstance(entry, (str, int, float, dict, list)) and not _is_endless(entry) for entry in golds):
        fail(f"`gold` must be a string, a number, an object or a list of accepted ones, got {_shown(gold)}")
    _shallow({"gold": golds}, fail)
    golds = [entry if is_finite(entry) else as_written(entry) for entry in golds]
    cluster = _optional(record.pop("cluster", None), (str, int), "`cluster` must be a string", fail)
    try:
        group = group_in_file(record.pop("group", None), f"problem {name!r:.60}")
    except InvalidValue as error:
        fail(str(error))
    cluster = None if cluster is None else str(cluster)
    problem = Problem(str(name), question, tuple(golds), cluster, group, _shallow(record, fail))
    return Pool(known_transcript(problem), tuple([_path(path, position, fail) for position, path in enumerate(paths)]))


def _path(record: Any, position: int, fail: Fail) -> Path:
    if not isinstance(record, dict):
        fail(f"path {position} must be an object, got {_shown(record)}")
    answer = record.pop("answer", _ABSENT)
    text = record.pop("text", None)
    if text is not None and not isinstance(text, str):
        fail(f"`text` of path {position} must be a string, got {_shown(text)}")
    scores = record.pop("scores", None)
    if scores is not None and not isinstance(scores, dict):
        fail(f"`scores` of path {position} must be an object of numbers by name, got {_shown(scores)}")
    given = answer is not _ABSENT
    if _is_endless(answer):
        fail(f"`answer` of path {position} is {_shown(answer)}; null says that there is none")
    if isinstance(answer, (dict, list)):
        _shallow({"answer": answer}, fail)
        answer = answer if is_finite(answer) else as_written(answer)
    return Path(answer if given else None, text, scores or {}, _shallow(record, fail), given)


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and not isfinite(value)


def _optional(value: Any, kind: type | tuple[type, ...], rule: str, fail: Fail) -> Any:
    if not (value is None or isinstance(value, kind)):
        fail(f"{rule}, got {_shown(value)}")
    return value


def _shallow(fields: dict[str, Any], fail: Fail) -> dict[str, Any]:
    """Fields as they are; raises where one of them is nested so deeply that no later step could write it."""
    for name, value in fields.items():
        if isinstance(value, (dict, list)) and is_deep(value):
            fail(f"the field {name!r:.60} is nested too deeply")
    return fields


def record_of(pool: Pool) -> dict[str, Any]:
    """A pool as its line has it."""
    problem, gold = pool.problem, pool.problem.gold
    record: dict[str, Any] = {"id": problem.id}
    record |= {} if problem.question is None else {"question": problem.question}
    record |= {"gold": gold[0] if len(gold) == 1 else list(gold)} if gold else {}
    record |= {} if problem.cluster is None else {"cluster": problem.cluster}
    record |= {} if problem.group is None else {"group": problem.group}
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
    deep = isinstance(value, (dict, list)) and is_deep(value)
    text = value.strip() if isinstance(value, str) else "something deep" if deep else as_json(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
