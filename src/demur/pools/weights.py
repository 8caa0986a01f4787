"""How much each problem of a file counts: by a field that holds its weight, or by a ratio fitted to question texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from demur.errors import InvalidValue, PoolFileError
from demur.pools.groups import field_of_problem
from demur.pools.parts import with_field
from demur.questions.density_ratio import DensityRatio
from demur.questions.features import Floats
from demur.records import Pool, is_nothing, names_labels, question_digest

Weighing = DensityRatio | str
"""A fitted ratio, or the name of the field that holds weights."""


def describe_weights(weights: Weighing) -> str:
    """What a description says of them."""
    return f"ratio:{weights.fingerprint}" if isinstance(weights, DensityRatio) else f"field:{weights}"


def weight_field(described: Any) -> str | None:
    """The field that a description names; None where weights come from a ratio, or there are none."""
    return described.removeprefix("field:") if isinstance(described, str) and described.startswith("field:") else None


def read_weights(
    pools: Sequence[Pool], questions: Sequence[str | None], weights: Weighing, *, in_use: bool = False
) -> Floats:
    """The weight of each problem.

    A ratio needs the text of the question: in use (`in_use`), one without weighs 0 and is not answered.
    """
    if isinstance(weights, DensityRatio):
        known = np.array([question_digest(question) is not None for question in questions], dtype=np.bool_)
        if not in_use and not known.all():
            row = int(np.argmin(known))
            raise PoolFileError(
                f"problem {pools[row].problem.id!r} has no question text, and its weight is found by that",
                "give questions, or the field that holds weights as {shift_weights}",
            )
        texts = [str(question) if there else "" for question, there in zip(questions, known, strict=True)]
        return np.where(known, weights.weights(texts), 0.0)
    if names_labels(weights):
        raise InvalidValue(f"{weights!r} names labels, and weights must not be made of labels", "name another field")
    every = with_field(pools, weights)
    return np.array([_weight(field_of_problem(pool, weights), pool.problem.id, weights) for pool in every])


def _weight(value: Any, problem: str, name: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_nothing(value) or not number or not math.isfinite(value) or value < 0:
        told = "none" if is_nothing(value) else f"{value!r:.40}"
        raise PoolFileError(
            f"problem {problem!r}: its {name} must be a number that is finite and not negative, got {told}"
        )
    return float(value)
