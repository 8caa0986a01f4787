"""Pools as a table of paths, one row each, in Parquet: for data frames and other tools."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from demur.errors import MissingExtra, PoolFileError
from demur.records import Path, Pool, Problem
from demur.whole_files import whole_file

_PROBLEM = ("id", "question", "gold", "cluster", "group", "problem_extra")
_PATH = ("path", "answer", "has_answer", "text", "path_extra")
_SCORE = "score."


def write_parquet(pools: Sequence[Pool], target: str | os.PathLike[str]) -> None:
    """One row per path; problem fields repeat, scores are columns `score.NAME`."""
    arrow, parquet = _libraries()
    names = sorted({name for pool in pools for path in pool.paths for name in path.scores})
    columns: dict[str, list[Any]] = {name: [] for name in (*_PROBLEM, *_PATH, *(_SCORE + name for name in names))}
    for pool in pools:
        problem = pool.problem
        for position, path in enumerate(pool.paths):
            row = {
                "id": problem.id, "question": problem.question, "gold": json.dumps(list(problem.gold)),
                "cluster": problem.cluster, "group": problem.group, "problem_extra": json.dumps(dict(problem.extra)),
                "path": position, "answer": None if path.answer is None else str(path.answer),
                "has_answer": path.has_answer_field, "text": path.text, "path_extra": json.dumps(dict(path.extra)),
                **{_SCORE + name: path.scores.get(name) for name in names},
            }  # fmt: skip
            for name, value in row.items():
                columns[name].append(value.encode("utf-8", "replace").decode() if isinstance(value, str) else value)
    types = {"path": arrow.int32(), "has_answer": arrow.bool_(), **{_SCORE + name: arrow.float64() for name in names}}
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in columns])
    try:
        with whole_file(target) as unfinished:
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
    lacking = {"id", "answer"} - set(table.column_names)
    if lacking:
        raise PoolFileError(f"{source} has no column {sorted(lacking)[0]!r}; expected one row per path")
    scores = [name for name in table.column_names if name.startswith(_SCORE)]
    grouped: dict[str, tuple[Problem, list[tuple[int, Path]]]] = {}
    for number, row in enumerate(table.to_pylist()):
        identity = str(row["id"])
        if identity not in grouped:
            grouped[identity] = (_problem(row, identity), [])
        held = {name.removeprefix(_SCORE): row[name] for name in scores if row[name] is not None}
        path = Path(
            answer=row["answer"], text=row.get("text"), scores=held, extra=_object(row.get("path_extra")),
            has_answer_field=row.get("has_answer") is not False,
        )  # fmt: skip
        place = row.get("path")
        grouped[identity][1].append((number if place is None else int(place), path))
    return [
        Pool(problem, tuple(path for _, path in sorted(paths, key=lambda each: each[0])))
        for problem, paths in grouped.values()
    ]


def _problem(row: dict[str, Any], identity: str) -> Problem:
    return Problem(
        identity, row.get("question"), tuple(_list(row.get("gold"))), row.get("cluster"), row.get("group"),
        _object(row.get("problem_extra")),
    )  # fmt: skip


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}


def _list(held: Any) -> list[Any]:
    """Gold as we write it (a JSON list), or as others do: a bare value or a list."""
    if held is None or isinstance(held, list):
        return held or []
    try:
        value = json.loads(held)
    except (ValueError, TypeError):
        value = None
    return value if isinstance(value, list) else [held]


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow; install it with: pip install 'demur[parquet]'") from None
    return pyarrow, pyarrow.parquet
