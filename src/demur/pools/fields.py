"""Which fields of pools hold what, and the columns they make. Never looks at gold."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from demur.answers.relations import Relation, as_written, relation_named
from demur.descriptions import Description
from demur.errors import InvalidValue, PoolFileError
from demur.records import Path, Pool, Problem, names_labels
from demur.tasks import BY_TASK, task_of

_SUSPECT = re.compile(r"(?i)none|null|nan|n/?a|no[ _-]?answer[.!]?|unknown|\?+|_+|-+|\[?invalid\]?")
_ABSENT: Any = object()


@dataclass(frozen=True)
class FieldChoice:
    """Which fields of a pool file are the answer and the score, and how answers are compared."""

    answer_field: str = "answer"
    score: str | None = None
    missing: tuple[str, ...] = ()
    """Spellings of "no answer", besides blank ones."""
    relation: str | None = None
    """The name of the relation that says when two answers are the same; None: by each problem's task."""

    def relation_of(self, problem: Problem) -> Relation:
        """When two answers to this problem are the same."""
        return task_of(problem).relation if self.relation is None else relation_named(self.relation)

    def describe(self) -> dict[str, Any]:
        """Its part of the stage `answers` of a description; `of` reads it back."""
        relation = BY_TASK if self.relation is None else relation_named(self.relation).spec
        return {"field": self.answer_field, "missing": sorted(self.missing), "relation": relation}

    @classmethod
    def of(cls, description: Description) -> FieldChoice:
        """The choice that a description tells of."""
        stage, score = description.answers, description.score.get("name")
        if not all(isinstance(stage.get(name), (str, list)) for name in ("field", "missing", "relation")):
            raise InvalidValue(
                "this policy was calibrated on a table in Python, not on a pool file; decide in Python, or calibrate a "
                "file"
            )
        relation = None if stage["relation"].startswith("by-task") else stage["relation"].partition("@")[0]
        choice = cls(stage["field"], score, tuple(stage["missing"]), relation)
        if choice.describe()["relation"] != stage["relation"]:
            raise InvalidValue(
                f"this policy compares answers by {stage['relation']}, and this demur by "
                f"{choice.describe()['relation']}; calibrate again"
            )
        return choice


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
    fields: FieldChoice = field(default_factory=FieldChoice)
    suspects: dict[str, int] = field(default_factory=dict)
    """Spellings that look like "no answer" but were not named as such, and how many paths have them."""
    unused_missing: tuple[str, ...] = ()
    """Named spellings of "no answer" that no path has."""


def read_table(pools: Sequence[Pool], fields: FieldChoice) -> PoolTable:
    """Answers as keys and one score per path."""
    surfaces = _read_surfaces(pools, fields)
    counts = Counter(surface for pool in surfaces for surface in pool if surface is not None)
    named = {spelling.strip() for spelling in fields.missing}
    keys, written = [], []
    for pool, row in zip(pools, surfaces, strict=True):
        relation, times = fields.relation_of(pool.problem), Counter(row)
        key_of = {text: None if text is None or text in named else relation.key(text) for text in times}
        keys.append([key_of[surface] for surface in row])
        written.append(_spellings(key_of, times))
    scores = None if fields.score is None else read_scores(pools, fields.score)
    suspects = {text: n for text, n in counts.items() if _SUSPECT.fullmatch(text) and text not in named}
    unused = tuple(spelling for spelling in fields.missing if spelling.strip() not in counts)
    columns = ([getattr(pool.problem, name) for pool in pools] for name in ("id", "question", "cluster", "group"))
    ids, questions, clusters, groups = columns
    return PoolTable(ids, questions, clusters, groups, keys, written, scores, fields, suspects, unused)


def named_sampling(pools: Sequence[Pool]) -> dict[str, Any]:
    """Model and temperature, as far as the file names them."""
    known = {}
    for name in ("model", "temperature"):
        values = {repr(pool.problem.extra.get(name)): pool.problem.extra.get(name) for pool in pools}
        named = sorted(text for text, value in values.items() if isinstance(value, (str, int, float)))
        if len(values) == 1 and named:
            known[name] = next(iter(values.values()))
        elif len(named) > 1:
            known[name] = named[:20]  # a mixture is a pipeline of its own
    return known


def read_column(pools: Sequence[Pool], name: str) -> list[float]:
    """A number per problem, from a field of the problem."""
    _refuse_label_name(name)
    column = []
    for pool in pools:
        value = pool.problem.extra.get(name, _ABSENT)
        if not _is_number(value):
            shown = "nothing" if value is _ABSENT else repr(value)
            raise PoolFileError(
                f"problem {pool.problem.id!r} has {shown} in the field {name!r}; expected a finite number"
            )
        column.append(float(value))
    return column


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


def _read_surfaces(pools: Sequence[Pool], choice: FieldChoice) -> list[list[str | None]]:
    """Every answer as it is written, stripped; None where there is none."""
    name = choice.answer_field
    _refuse_label_name(name)
    own = name == "answer"
    paths = [path for pool in pools for path in pool.paths]
    if not any(path.has_answer_field if own else field_of(path, [name]) not in (_ABSENT, None) for path in paths):
        paths = [path for pool in pools[:100] for path in pool.paths]
        fields = sorted({f for path in paths for f in path.extra if f.startswith("answer")})
        hint = f"the file has {', '.join(map(repr, fields))}: name one as {{answer_field}}" if fields else ""
        raise PoolFileError(f"no path in the file has an answer in the field {name!r}", hint)
    table = []
    for pool in pools:
        row: list[str | None] = []
        for position, path in enumerate(pool.paths):
            raw = path.answer if own else field_of(path, [name])
            if isinstance(raw, (dict, list)) or (isinstance(raw, float) and math.isinf(raw)):
                raise PoolFileError(
                    f"problem {pool.problem.id!r}, path {position}: an answer must be a string or a number, got {raw!r}"
                )
            row.append(None if raw is _ABSENT else (as_written(raw) or "").strip() or None)
        table.append(row)
    return table


def _spellings(key_of: Mapping[str | None, str | None], times: Mapping[str | None, int]) -> dict[str, str]:
    """How each key is written: as most paths have it, then the shortest way."""
    best: dict[str, tuple[int, int, str]] = {}
    for text, key in key_of.items():
        if key is not None and text is not None:
            rank = (-times[text], len(text), text)
            best[key] = min(best.get(key, rank), rank)
    return {key: text for key, (_, _, text) in best.items()}


def _no_score(pools: Sequence[Pool], lacking: Sequence[str], name: str) -> str:
    """Which pools lack a score, and what there is instead."""
    if len(lacking) < len(pools):
        few = ", ".join(repr(problem) for problem in lacking[:5]) + (", …" if len(lacking) > 5 else "")
        return (
            f"{len(lacking)} of {len(pools)} pools lack the score {name!r} in some path: {few}; score them with the "
            "`demur score` that scored the others, or leave them out"
        )
    paths = [path for pool in pools[:100] for path in pool.paths]
    names = sorted({score for path in paths for score in path.scores})
    fields = sorted({f".{f}" for path in paths for f, v in path.extra.items() if _is_number(v)})
    return f"no pool has the score {name!r} in all its paths; there is: {', '.join(names + fields) or 'none'}"


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False
