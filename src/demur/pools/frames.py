"""Pools from a table of paths, one row each: a DataFrame of pandas or Polars, an Arrow table, or rows as dictionaries.

`id` and `answer` are required; `question`, `gold`, `aliases`, `cluster`, `group`, `text` and `path` (the order of
paths) are known by name, scores are columns `score.NAME`, and other columns are kept as fields of the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from demur.errors import InvalidValue, PoolFileError
from demur.files.strict_json import NotJson, parse
from demur.records import ASKED_WITH, Path, Pool, Problem, is_nothing

SCORE = "score."
PROBLEM = ("id", "question", "gold", "cluster", "group", "problem_extra")
OF_PROBLEM = ("task", "dataset", "model", "temperature", "aliases", *ASKED_WITH)
"""Further columns that tell of the problem; others tell of the path."""
PATH = ("path", "answer", "has_answer", "text", "path_extra")


def pools_of_frame(frame: Any) -> list[Pool]:
    """The pools of a DataFrame, an Arrow table or a sequence of rows."""
    for method, arguments in (("to_pylist", ()), ("to_dicts", ()), ("to_dict", ("records",))):
        if hasattr(frame, method):
            refuse_repeated(getattr(frame, "column_names", None) or frame.columns, "the table")
            return pools_of_rows(getattr(frame, method)(*arguments), "the table")
    rows = list(frame) if isinstance(frame, Iterable) and not isinstance(frame, (str, bytes, Mapping)) else [frame]
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidValue(f"expected a DataFrame, an Arrow table or rows as dictionaries, got {type(frame).__name__}")
    return pools_of_rows(rows, "the table")


def refuse_repeated(names: Iterable[Any], where: str) -> None:
    """Raise if two columns have one name: a row would show the last of them."""
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise PoolFileError(f"{where} has two columns {name!r}; keep one of the two")
        seen.add(name)


def pools_of_rows(rows: Iterable[Mapping[str, Any]], where: str) -> list[Pool]:
    """Pools from one row per path; those of one `id` belong together, wherever they stand."""
    grouped: dict[str, tuple[Problem, list[tuple[int, Path]]]] = {}
    for number, cells in enumerate(rows):
        row: dict[str, Any] = {name: None if is_nothing(value) else value for name, value in cells.items()}
        for name in ("id", "answer"):
            if name not in row:
                raise PoolFileError(f"{where} has no column {name!r}; expected one row per path")
        if row["id"] is None:
            raise PoolFileError(f"{where}, row {number}: a path needs the id of its problem")
        try:
            identity = str(row["id"])
            if identity not in grouped:
                grouped[identity] = (_problem(row, identity), [])
            grouped[identity][1].append((number if row.get("path") is None else int(row["path"]), _path(row)))
        except (ValueError, TypeError, OverflowError) as error:
            raise PoolFileError(f"{where}, row {number}: {error}") from None
    if not grouped:
        raise PoolFileError(f"{where} holds no rows; expected one per path")
    return [
        Pool(problem, tuple(path for _, path in sorted(paths, key=lambda placed: placed[0])))
        for problem, paths in grouped.values()
    ]


def _problem(row: Mapping[str, Any], identity: str) -> Problem:
    cluster, group = (None if row.get(name) is None else str(row[name]) for name in ("cluster", "group"))
    beside = {name: row[name] for name in OF_PROBLEM if row.get(name) is not None}
    if "aliases" in beside:
        beside["aliases"] = _list(beside["aliases"])
    gold, extra = tuple(_list(row.get("gold"))), beside | _object(row, "problem_extra")
    return Problem(identity, _text(row, "question"), gold, cluster, group, extra)


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
