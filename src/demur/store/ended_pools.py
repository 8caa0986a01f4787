"""Runs under a stopping rule: which pools the rule has ended, and where, read off their answers.

Nothing of it is noted anywhere: a pool is whole as soon as its paths are there, whoever drew them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, select

from demur.stopping import Stopping
from demur.store._tables import paths, problems
from demur.store.rows import problem_of
from demur.tasks import keys_by_task

Keys = dict[int, dict[int, Any]]
"""The key of each path that is there, by the number of its problem and its own."""


def keys_of_paths(
    connection: Connection, run: int, answers: Mapping[str, Any], numbers: Collection[int] | None = None
) -> Keys:
    """Of the paths of a run, or of some problems; `answers` is the stage of its description that says how it reads."""
    labels, query = answers.get("labels", ()), select(paths.c.number, paths.c.path, paths.c.answer)
    query = query.where(paths.c.run == run, *_among(paths.c.number, numbers))
    saved: dict[int, list[tuple[int, Any]]] = {}
    for number, path, answer in connection.execute(query.order_by(paths.c.number, paths.c.path)):
        saved.setdefault(number, []).append((path, answer))
    keys: Keys = {}
    asked = select(problems).where(problems.c.run == run, *_among(problems.c.number, numbers))
    for row in connection.execute(asked):
        if row.number in saved:
            places, given = zip(*saved[row.number], strict=True)
            keys[row.number] = dict(zip(places, keys_by_task(problem_of(row), given, labels), strict=True))
    return keys


def _among(column: Column[int], numbers: Collection[int] | None) -> list[ColumnElement[bool]]:
    """That a column holds one of some numbers; nothing where any will do."""
    if numbers is None:
        return []
    if isinstance(numbers, range):  # of which there may be more than a query may name
        return [column.between(numbers.start, numbers.stop - 1)]
    return [column.in_(numbers)]


def ends_of(keys: Keys, stopping: Stopping) -> dict[int, int]:
    """How many paths the rule wants of each pool that has them, by the number of its problem."""
    ends = {}
    for number, known in keys.items():
        in_order: list[Any] = []
        while len(in_order) in known:
            in_order.append(known[len(in_order)])
        if (size := stopping.size(in_order)) is not None:
            ends[number] = size
    return ends
