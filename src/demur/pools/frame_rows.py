"""Rows of a table of paths: the columns that are known by name, pools as such rows, and problems and paths of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from demur.answers.relations import as_written
from demur.files.strict_json import NotJson, as_json, is_finite, parse
from demur.prompts.conversations import known_transcript
from demur.records import ASKED_WITH, Groups, Path, Pool, Problem, group_as_text, group_in_file, group_of_text

SCORE = "score."
PROBLEM = ("id", "question", "gold", "cluster", "group", "problem_extra")
DIGEST = "question_digest"
"""What is asked, as Parquet files have it beside the text: see `records.question_digest`."""
OF_PROBLEM = ("task", "dataset", "model", "temperature", "aliases", *ASKED_WITH)
"""Further columns that tell of the problem; others tell of the path."""
PATH = ("path", "answer", "has_answer", "text", "path_extra")


def table_of(pools: Iterable[Pool], names: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Pools as columns, one row per path: problem fields repeat, and what has no column of its own is JSON.

    `names` are those of the scores, where they are known.
    """
    if names is None:
        pools = list(pools)
        names = score_names(pools)
    columns: dict[str, list[Any]] = {name: [] for name in (*PROBLEM, *PATH, *(SCORE + name for name in names))}
    problem_columns, path_columns = ([columns[name] for name in some] for some in (PROBLEM, [*columns][len(PROBLEM) :]))
    for pool in pools:
        problem, gold, extra = pool.problem, as_json(list(pool.problem.gold)), _as_object(pool.problem.extra)
        shared = (problem.id, problem.question, gold, problem.cluster, group_as_text(problem.group), extra)
        for column, value in zip(problem_columns, shared, strict=True):
            column.extend([writable(value)] * len(pool.paths))
        for position, path in enumerate(pool.paths):
            own = (position, writable(as_written(path.answer)), path.has_answer_field, writable(path.text))
            row = (*own, writable(_as_object(path.extra)), *map(path.scores.get, names))
            for column, cell in zip(path_columns, row, strict=True):
                column.append(cell)
    return columns


def score_names(pools: Iterable[Pool]) -> list[str]:
    """The scores that some path has, in order."""
    return sorted({name for pool in pools for path in pool.paths for name in path.scores})


def _as_object(fields: Mapping[str, Any]) -> str:
    return as_json(dict(fields)) if fields else "{}"


def writable(text: str | None) -> str | None:
    """A text as every table can hold it: half a surrogate pair, as models sometimes leave, has no place in one."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


def name_of(value: Any) -> str:
    """An id as text: whole numbers stay whole, as tables that lack some of them do not have it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_whole(value: Any) -> bool:
    """Whether a value can be read as a whole number."""
    try:
        return int(value) is not None
    except (ValueError, TypeError, OverflowError):
        return False


def problem_of(row: Mapping[str, Any], identity: str) -> Problem:
    """The problem of a row."""
    cluster = None if row.get("cluster") is None else str(row["cluster"])
    group = group_of_cell(row.get("group"), identity)
    beside = {name: row[name] for name in OF_PROBLEM if row.get(name) is not None}
    if "aliases" in beside:
        beside["aliases"] = listed(beside["aliases"])
    gold, extra = tuple(listed(row.get("gold"))), beside | _object(row, "problem_extra")
    return known_transcript(Problem(identity, _text(row, "question"), gold, cluster, group, extra))


def group_of_cell(cell: Any, identity: str) -> str | Groups | None:
    """A problem's group as tables have it: a name, a list of them, or a list as we write it."""
    if isinstance(cell, str):
        return group_of_text(cell)
    return group_in_file(name_of(cell) if isinstance(cell, float) else cell, f"problem {identity!r:.60}")


def path_of(row: Mapping[str, Any]) -> Path:
    """The path of a row."""
    scores = {name.removeprefix(SCORE): row[name] for name in row if name.startswith(SCORE) and row[name] is not None}
    known = (*PROBLEM, *PATH, *OF_PROBLEM, DIGEST)
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


def listed(gold: Any) -> list[Any]:
    """Gold as we write it (a JSON list), or as others do: a bare value or a list."""
    if gold is None or isinstance(gold, list):
        return gold or []
    try:
        value = parse(gold) if isinstance(gold, str) else None
    except NotJson:
        value = None
    several = value if isinstance(value, list) else [gold]
    return [entry if is_finite(entry) else as_written(entry) for entry in several]
