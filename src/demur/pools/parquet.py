"""Pools as a table of paths, one row each, in Parquet: for data frames and other tools."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from demur.atomic_files import atomic_file
from demur.errors import MissingExtra, PoolFileError
from demur.records import Path, Pool, Problem

_PROBLEM = ("id", "question", "gold", "cluster", "group", "problem_extra")
_PATH = ("path", "answer", "has_answer", "text", "path_extra")
_SCORE = "score."


def write_parquet(pools: Sequence[Pool], target: str | os.PathLike[str]) -> None:
    """One row per path; problem fields repeat, scores are columns `score.NAME`."""
    arrow, parquet = _libraries()
    names = sorted({name for pool in pools for path in pool.paths for name in path.scores})
    columns: dict[str, list[Any]] = {name: [] for name in (*_PROBLEM, *_PATH, *(_SCORE + name for name in names))}
    for pool in pools:
        problem, gold, extra = pool.problem, json.dumps(list(pool.problem.gold)), json.dumps(dict(pool.problem.extra))
        shared = (problem.id, problem.question, gold, problem.cluster, problem.group, extra)
        for position, path in enumerate(pool.paths):
            answer = None if path.answer is None else str(path.answer)
            own = (position, answer, path.has_answer_field, path.text, json.dumps(dict(path.extra)))
            row = (*shared, *own, *map(path.scores.get, names))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value.encode("utf-8", "replace").decode() if isinstance(value, str) else value)
    types = {"path": arrow.int32(), "has_answer": arrow.bool_(), **{_SCORE + name: arrow.float64() for name in names}}
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in columns])
    try:
        with atomic_file(target) as unfinished:
            parquet.write_table(arrow.table(columns, schema=schema), unfinished, compression="zstd")
    except (OSError, arrow.ArrowException) as error:
        raise PoolFileError(f"cannot write {target}: {error}") from None


def read_parquet(source: str | os.PathLike[str]) -> list[Pool]:
    """Pools from a table of paths; `id` and `answer` are required, the rest may be missing."""
    arrow, parquet = _libraries()
    try:
        table = parquet.read_table(source)
    except (OSError, arrow.ArrowException) as error:
        raise PoolFileError(f"{source} cannot be read as Parquet: {error}") from None
    for name in sorted({"id", "answer"} - set(table.column_names)):
        raise PoolFileError(f"{source} has no column {name!r}; expected one row per path")
    scores = [name for name in table.column_names if name.startswith(_SCORE)]
    grouped: dict[str, tuple[Problem, list[tuple[int, Path]]]] = {}
    for number, row in enumerate(table.to_pylist()):
        identity = str(row["id"])
        if identity not in grouped:
            gold, extra = tuple(_list(row.get("gold"))), _object(row.get("problem_extra"))
            labels = row.get("cluster"), row.get("group")
            grouped[identity] = (Problem(identity, row.get("question"), gold, *labels, extra), [])
        known = {name.removeprefix(_SCORE): row[name] for name in scores if row[name] is not None}
        extra, has_answer = _object(row.get("path_extra")), row.get("has_answer") is not False
        path = Path(row["answer"], row.get("text"), known, extra, has_answer)
        place = row.get("path")
        grouped[identity][1].append((number if place is None else int(place), path))
    return [
        Pool(problem, tuple(path for _, path in sorted(paths, key=lambda placed: placed[0])))
        for problem, paths in grouped.values()
    ]


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}


def _list(gold: Any) -> list[Any]:
    """Gold as we write it (a JSON list), or as others do: a bare value or a list."""
    if gold is None or isinstance(gold, list):
        return gold or []
    try:
        value = json.loads(gold)
    except (ValueError, TypeError):
        value = None
    return value if isinstance(value, list) else [gold]


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow", "parquet") from None
    return pyarrow, pyarrow.parquet
