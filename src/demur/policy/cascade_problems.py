"""Which problem of one stage is which of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.pools.splits import Texts
from demur.pools.voted_pools import VotedPools


def matched(
    first: VotedPools, other: VotedPools, names: tuple[str, str], *, all_of_them: bool = False
) -> NDArray[np.intp]:
    """For each problem of one stage its row at another, −1 where it is not there; `names` are those of the stages.

    By id, or where problems have none by question, or where neither is known by row. Problems that the first stage does
    not know are an error, and with `all_of_them` so are those that the other one lacks.
    """
    if first is other:
        return np.arange(len(first), dtype=np.intp)
    ours, theirs = _named(first, other)
    if ours is None or theirs is None:
        if len(first) != len(other):
            raise InvalidValue(
                f"stage {names[0]!r} has {len(first)} votes and stage {names[1]!r} {len(other)}, and nothing tells "
                "which is which",
                "vote with {ids}",
            )
        return np.arange(len(first), dtype=np.intp)
    place = {name: row for row, name in enumerate(theirs)}
    rows = np.array([place.get(name, -1) for name in ours], dtype=np.intp)
    known = set(ours)
    _refuse([name for name in theirs if name not in known], names[1], names[0])
    if all_of_them:
        _refuse([name for name, row in zip(ours, rows, strict=True) if row < 0], *names)
    if first.questions is not None and other.questions is not None:
        for row, (name, asked) in enumerate(zip(ours, first.questions, strict=True)):
            there = None if rows[row] < 0 else other.questions[rows[row]]
            if asked is not None and there is not None and asked != there:
                raise InvalidValue(
                    f"problem {name!r} asks one thing at stage {names[0]!r} and another at stage {names[1]!r}",
                    "give all stages pools of the same problems",
                )
    return rows


def _named(first: VotedPools, other: VotedPools) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """What tells problems apart, the same at both stages."""
    if first.votes.ids is not None and other.votes.ids is not None:
        return first.votes.ids, other.votes.ids
    return _all(first.questions), _all(other.questions)


def _all(questions: Texts | None) -> list[str] | None:
    """The questions, where all are known and differ."""
    known = [] if questions is None else [question for question in questions if question is not None]
    return known if questions is not None and len(set(known)) == len(questions) else None


def _refuse(missing: Sequence[str], has: str, lacks: str) -> None:
    if missing:
        such = ", ".join(repr(name) for name in missing[:3])
        raise InvalidValue(
            f"stage {has!r} holds {len(missing)} problem{'s' * (len(missing) != 1)} that stage {lacks!r} does not, "
            f"such as {such:.200}",
            "give all stages pools of the same problems",
        )
