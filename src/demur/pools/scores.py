"""The scores of paths, and numbers of problems: from which fields, and what becomes of pools that lack some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from demur.errors import InvalidValue, PoolFileError
from demur.files.strict_json import is_finite
from demur.pools.field_names import number_fields, score_fields, there_is
from demur.pools.frame_table import score_column, scores_of
from demur.pools.frames import FramePools
from demur.pools.parts import with_field
from demur.records import Path, Pool, names_labels
from demur.voting.recipe import DROP, Unscored

ABSENT: Any = object()


def read_column(pools: Sequence[Pool], name: str) -> list[float]:
    """A number per problem, from a field of the problem."""
    refuse_label_name(name)
    column = []
    for pool in with_field(pools, name):
        value = pool.problem.extra.get(name, ABSENT)
        of_paths = {repr(path.extra.get(name)): path.extra.get(name) for path in pool.paths}
        if value is ABSENT and len(of_paths) == 1:  # tables have one row per path, which all say it
            value = next(iter(of_paths.values())) if name in pool.paths[0].extra else ABSENT
        if not is_number(value):
            shown = "nothing" if value is ABSENT else f"{value!r:.60}"
            known = f"; {there_is(name, number_fields(pools, is_number))}" if value is ABSENT else ""
            raise PoolFileError(
                f"problem {pool.problem.id!r} has {shown} in the field {name!r}; expected a finite number{known}"
            )
        column.append(float(value))
    return column


def read_scores(pools: Sequence[Pool], name: str) -> Sequence[list[float]]:
    """The score of every path: `scores[NAME]`, or for a dotted name a field of the path (`.logprob`, `meta.judge`)."""
    return scores_or_dropped(pools, name, None)[0]


def scores_or_dropped(
    pools: Sequence[Pool], name: str, unscored: Unscored, *, in_use: bool = False
) -> tuple[Sequence[list[float]], list[int]]:
    """The score of every path, and the rows of pools that are left out for want of one, whose scores are all 0.

    Unless a policy is `in_use`, some path must have the score: a misspelt name is no gap.
    """
    if isinstance(pools, FramePools) and (columns := scores_of(pools, name, unscored)) is not None:
        return columns
    table = with_gaps(pools, name)
    lacking = [row for row, scores in enumerate(table) if None in scores]
    unknown = not in_use and all(score is None for scores in table for score in scores)
    if (lacking and unscored is None) or unknown:
        raise _no_score(pools, [pools[row].problem.id for row in lacking], name)
    if unscored == DROP:
        for row in lacking:
            table[row] = [0.0] * len(table[row])
        return table, lacking  # type: ignore[return-value]
    return [[unscored if score is None else score for score in row] for row in table], []  # type: ignore[misc]


def count_gaps(pools: Sequence[Pool], name: str) -> int:
    """How many paths have no score of that name."""
    if isinstance(pools, FramePools) and (values := score_column(pools, name)) is not None:
        return int(np.isnan(values).sum())
    return sum(score is None for scores in with_gaps(pools, name) for score in scores)


def as_unscored(value: Any) -> Unscored:
    """What a description or a caller says of pools without a score; ValueError where it is none of the three."""
    if value is None or value == DROP or is_number(value):
        return value  # type: ignore[no-any-return]
    raise InvalidValue(f"unscored must be None, {DROP!r} or a finite number, got {value!r:.60}")


def refuse_label_name(name: str) -> None:
    """Raise if a field's name says that it holds labels."""
    if names_labels(name):
        raise InvalidValue(
            f"{name!r} names labels, and labels cannot be a score: the vote must not see them; "
            "if it holds something else, give the field another name"
        )


def field_of(path: Path, steps: Sequence[str]) -> Any:
    """A (nested) field of a path that has no name of its own; ABSENT where there is none."""
    value: Any = {"answer": path.answer, "text": path.text, "scores": path.scores, **path.extra}
    for step in steps:
        value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def with_gaps(pools: Sequence[Pool], name: str) -> list[list[float | None]]:
    """The score of every path; None where it has none."""
    pools = with_field(pools, name)
    if isinstance(pools, FramePools):
        in_scores = name in pools.score_names
    else:
        in_scores = any(name in path.scores for pool in pools for path in pool.paths)
    steps = [] if in_scores or "." not in name else name.removeprefix(".").split(".")
    refuse_label_name(name)
    table: list[list[float | None]] = []
    for pool in pools:
        row: list[float | None] = []
        for position, path in enumerate(pool.paths):
            value = field_of(path, steps) if steps else path.scores.get(name, ABSENT)
            if value is ABSENT or value is None or not is_finite(value):
                row.append(None)
                continue
            if isinstance(value, bool):
                raise InvalidValue(f"{name!r} holds true and false: that is a label, and labels cannot be a score")
            if not is_number(value):
                raise PoolFileError(
                    f"problem {pool.problem.id!r}, path {position}: the score {name!r} must be a finite number, "
                    f"got {value!r:.40}"
                )
            row.append(float(value))
        table.append(row)
    return table


def _no_score(pools: Sequence[Pool], lacking: Sequence[str], name: str) -> PoolFileError:
    """Which pools lack a score, and what there is instead."""
    if len(lacking) < len(pools):
        few = ", ".join(repr(problem) for problem in lacking[:5]) + (", …" if len(lacking) > 5 else "")
        return PoolFileError(
            f"{len(lacking)} of {len(pools)} pools lack the score {name!r} in some path: {few}; null, NaN and "
            "infinite numbers are no score",
            "score them with the `demur score` that scored the others; or calibrate with {unscored=drop}, which leaves "
            "such pools out and abstains on them in use, or with {unscored=VALUE}, which stands in for the score",
        )
    known = there_is(name, score_fields(pools, is_number))
    return PoolFileError(f"no pool has the score {name!r} in all its paths; {known}")


def is_number(value: Any) -> bool:
    """Whether a value may be a score."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False
