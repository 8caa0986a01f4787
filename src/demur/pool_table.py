"""From the pools of a file to columns that can be voted on. Never looks at gold."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from demur.answers.relations import BY_TASK, Relation, as_written, relation_for, relation_named
from demur.errors import InvalidValue, PoolFileError
from demur.records import Path, Pool, Problem, names_labels

_SUSPECT = re.compile(r"(?i)none|null|nan|n/?a|no[ _-]?answer[.!]?|unknown|\?+|_+|-+|\[?invalid\]?")
_ABSENT: Any = object()


@dataclass(frozen=True)
class Reading:
    """Which fields of a pool file are the answer and the score."""

    answer_field: str = "answer"
    score: str | None = None
    missing: tuple[str, ...] = ()
    """Spellings of "no answer", besides blank ones."""
    relation: str | None = None
    """The name of the relation that says when two answers are the same; None: by each problem's task."""

    def relation_of(self, problem: Problem) -> Relation:
        """When two answers to this problem are the same."""
        return relation_for(problem.extra.get("task")) if self.relation is None else relation_named(self.relation)

    def describe(self) -> dict[str, Any]:
        """The part of a pipeline's description that reading decides (the score has a field of its own)."""
        return {
            "answer_field": self.answer_field,
            "missing": sorted(self.missing),
            "relation": BY_TASK if self.relation is None else relation_named(self.relation).describe(),
        }


@dataclass(frozen=True)
class PoolTable:
    """The columns of a file: one entry per problem, one per path within."""

    ids: list[str]
    questions: list[str | None]
    clusters: list[str | None]
    groups: list[str | None]
    answers: list[list[str | None]]
    """Keys: equal for equal answers."""
    written: list[dict[str, str]]
    """For each pool, how the answer behind a key is written: as most paths have it, then the shortest way."""
    scores: list[list[float]] | None
    reading: Reading = field(default_factory=Reading)
    suspects: dict[str, int] = field(default_factory=dict)
    """Spellings that look like "no answer" but were not named as such, and how many paths have them."""
    unused_missing: tuple[str, ...] = ()
    """Named spellings of "no answer" that no path has."""


def read_table(pools: Sequence[Pool], reading: Reading) -> PoolTable:
    """Answers as keys and one score per path."""
    problems = [pool.problem for pool in pools]
    surfaces = _read_surfaces(pools, reading)
    counts = Counter(surface for pool in surfaces for surface in pool if surface is not None)
    named = {spelling.strip() for spelling in reading.missing}
    keys, written = [], []
    for pool, row in zip(pools, surfaces, strict=True):
        relation = reading.relation_of(pool.problem)
        pool_keys = [None if surface is None or surface in named else relation.key(surface) for surface in row]
        keys.append(pool_keys)
        written.append(_spellings(pool_keys, row))
    return PoolTable(
        ids=[problem.id for problem in problems],
        questions=[problem.question for problem in problems],
        clusters=[problem.cluster for problem in problems],
        groups=[problem.group for problem in problems],
        answers=keys,
        written=written,
        scores=None if reading.score is None else read_scores(pools, reading.score),
        reading=reading,
        suspects={each: n for each, n in counts.items() if _SUSPECT.fullmatch(each) and each not in named},
        unused_missing=tuple(spelling for spelling in reading.missing if spelling.strip() not in counts),
    )


def named_pipeline(pools: Sequence[Pool]) -> dict[str, Any]:
    """Model and temperature, as far as the file names them."""
    found = {}
    for name in ("model", "temperature"):
        values = {repr(pool.problem.extra.get(name)): pool.problem.extra.get(name) for pool in pools}
        named = sorted(text for text, value in values.items() if isinstance(value, (str, int, float)))
        if len(values) == 1 and named:
            found[name] = next(iter(values.values()))
        elif len(named) > 1:
            found[name] = named[:20]  # a mixture is a pipeline of its own
    return found


def read_column(pools: Sequence[Pool], name: str) -> list[float]:
    """A number per problem, from a field of the problem."""
    _refuse_label_name(name)
    values: list[Any] = [pool.problem.extra.get(name, _ABSENT) for pool in pools]
    for pool, value in zip(pools, values, strict=True):
        if not _is_number(value):
            shown = "nothing" if value is _ABSENT else repr(value)
            raise PoolFileError(
                f"problem {pool.problem.id!r} has {shown} in the field {name!r}; expected a finite number"
            )
    return [float(value) for value in values]


def read_scores(pools: Sequence[Pool], name: str) -> list[list[float]]:
    """The score of every path: `scores[NAME]`, or for a dotted name a field of the path (`.logprob`, `meta.judge`)."""
    in_scores = any(name in path.scores for pool in pools for path in pool.paths)
    steps = [] if in_scores or "." not in name else name.removeprefix(".").split(".")
    _refuse_label_name(steps[-1] if steps else name)
    table, lacking = [], []
    for pool in pools:
        row = []
        for position, path in enumerate(pool.paths):
            value = field_of(path, steps) if steps else path.scores.get(name, _ABSENT)
            if value is _ABSENT or value is None:
                lacking.append(pool.problem.id)
                break
            if isinstance(value, bool):
                raise InvalidValue(f"{name!r} holds true and false: that is a label, and labels cannot be a score")
            if not _is_number(value):
                raise PoolFileError(
                    f"problem {pool.problem.id!r}, path {position}: the score {name!r} must be a finite number, "
                    f"got {value!r:.40}"
                )
            row.append(float(value))
        table.append(row)
    if lacking:
        raise PoolFileError(_no_score(pools, lacking, name))
    return table


def _refuse_label_name(name: str) -> None:
    if names_labels(name):
        raise InvalidValue(
            f"{name!r} names labels, and labels cannot be a score: the vote must not see them; "
            "if it holds something else, give the field another name"
        )


def field_of(path: Path, steps: Sequence[str]) -> Any:
    """A (nested) field of a path that has no name of its own."""
    value: Any = {"answer": path.answer, "text": path.text, "scores": path.scores, **path.extra}
    for step in steps:
        value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _read_surfaces(pools: Sequence[Pool], reading: Reading) -> list[list[str | None]]:
    """Every answer as it is written, stripped; None where there is none."""
    name = reading.answer_field
    _refuse_label_name(name)
    own = name == "answer"
    if not any(
        path.has_answer_field if own else field_of(path, [name]) not in (_ABSENT, None)
        for pool in pools
        for path in pool.paths
    ):
        fields = sorted(
            {f for pool in pools[:100] for path in pool.paths for f in path.extra if f.startswith("answer")}
        )
        hint = f"; the file has {', '.join(map(repr, fields))}: name one with --answer-field" if fields else ""
        raise PoolFileError(f"no path in the file has an answer in the field {name!r}{hint}")
    table = []
    for pool in pools:
        row: list[str | None] = []
        for position, path in enumerate(pool.paths):
            raw = path.answer if own else _present(field_of(path, [name]))
            if isinstance(raw, (dict, list)) or (isinstance(raw, float) and math.isinf(raw)):
                raise PoolFileError(
                    f"problem {pool.problem.id!r}, path {position}: an answer must be a string or a number, got {raw!r}"
                )
            row.append((as_written(raw) or "").strip() or None)
        table.append(row)
    return table


def _spellings(keys: list[str | None], surfaces: list[str | None]) -> dict[str, str]:
    by_key: dict[str, Counter[str]] = {}
    for key, surface in zip(keys, surfaces, strict=True):
        if key is not None and surface is not None:
            by_key.setdefault(key, Counter())[surface] += 1
    return {key: min(each, key=lambda s: (-each[s], len(s), s)) for key, each in by_key.items()}


def _present(value: Any) -> Any:
    return None if value is _ABSENT else value


def _no_score(pools: Sequence[Pool], lacking: Sequence[str], name: str) -> str:
    """Which pools lack a score, and what there is instead."""
    if len(lacking) < len(pools):
        few = ", ".join(repr(problem) for problem in lacking[:5]) + (", …" if len(lacking) > 5 else "")
        return (
            f"{len(lacking)} of {len(pools)} pools lack the score {name!r} in some path: {few}; score them with the "
            "`demur score` that scored the others, or leave them out"
        )
    names = sorted({score for pool in pools[:100] for path in pool.paths for score in path.scores})
    fields = sorted(
        {f".{f}" for pool in pools[:100] for path in pool.paths for f, v in path.extra.items() if _is_number(v)}
    )
    offered = ", ".join(names + fields) or "none"
    return f"no pool has the score {name!r} in all its paths; there is: {offered}"


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False
