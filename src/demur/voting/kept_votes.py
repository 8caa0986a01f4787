"""Votes that were held before, of which only what is calibrated was kept: keys and sizes, and no paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.voting.cases import as_groups
from demur.voting.codes import CodedAnswers
from demur.voting.recipe import Recipe
from demur.voting.sources import Sources
from demur.voting.votes import Votes


def kept_votes(
    recipe: Recipe,
    upstream: Description,
    *,
    keys: Sequence[Sequence[float]],
    confidence: Sequence[float],
    winners: Sequence[str | None],
    n_paths: Sequence[int],
    ids: Sequence[str],
    questions: Sources,
    groups: Sequence[Any] | None = None,
) -> Votes:
    """Votes as `recipe` made them. A winner is a text, or None where a pool had no answer at all."""
    width = len(recipe.key)
    for name, key in zip(ids, keys, strict=True):
        if len(key) != width:
            raise InvalidValue(f"the vote on {name!r:.80} has a key of {len(key)} numbers, and should have {width}")
    sizes = np.asarray(n_paths, dtype=np.intp)
    column = np.empty(len(ids), dtype=object)
    column[:] = list(winners)
    nothing = CodedAnswers(np.zeros((len(ids), int(sizes.max(initial=1))), dtype=np.int8), sizes, None)
    return Votes(
        column,
        np.asarray(confidence, dtype=np.float64),
        np.zeros(len(ids), dtype=np.bool_),
        np.asarray(keys, dtype=np.float64).reshape(len(ids), width),
        list(ids),
        recipe,
        upstream,
        nothing,
        None,
        questions=questions,
        groups=as_groups(groups, len(ids)),
    )
