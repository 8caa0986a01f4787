"""Which votes and paths are right. The only module, besides the file readers, that looks at gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue, PoolFileError
from demur.pools.fields import PoolTable
from demur.pools.scores import field_of
from demur.records import Pool
from demur.voting.votes import Votes

_ENOUGH_PATHS = 20


@dataclass(frozen=True)
class Labels:
    """For each problem, which of its answers are right."""

    right: list[dict[str, bool]]
    """Answer key → right or wrong, for the answers the labels speak of."""
    gold: list[frozenset[str]] | None
    conflicts: int = 0
    """Problems in which one answer carries both labels; such an answer counts as wrong."""

    def take(self, rows: Sequence[int]) -> Labels:
        """Those of some problems, in that order."""
        right, gold = ([column[row] for row in rows] if column else column for column in (self.right, self.gold))
        return Labels(right or [], gold, self.conflicts)  # type: ignore[arg-type]

    def of_answers(self, chosen: Sequence[Any]) -> NDArray[np.bool_]:
        """Whether each problem's chosen answer is right; no answer is wrong."""
        return np.array([self._is_right(row, answer) for row, answer in enumerate(chosen)], dtype=np.bool_)

    def of_votes(self, votes: Votes) -> NDArray[np.bool_]:
        """Whether each vote's winner is right."""
        return self.of_answers(votes.answer.tolist())

    def of_paths(self, table: PoolTable) -> list[list[bool]]:
        """Whether each path's answer is right."""
        return [[self._is_right(row, key) for key in pool] for row, pool in enumerate(table.answers)]

    def _is_right(self, row: int, answer: str | None) -> bool:
        if answer is None:
            return False
        return answer in self.gold[row] if self.gold is not None else self.right[row].get(answer, False)


def read_labels(pools: Sequence[Pool], table: PoolTable, correct_field: str | None = None) -> Labels:
    """Labels from gold by the relation of `answers`, or ready-made from a boolean field of the paths."""
    return _from_gold(pools, table) if correct_field is None else _from_field(pools, table, correct_field)


def labelled_rows(pools: Sequence[Pool]) -> list[int]:
    """The rows whose problems have a gold answer."""
    return [row for row, pool in enumerate(pools) if any(str(entry).strip() for entry in pool.problem.gold)]


def refuse_labels_as_score(table: PoolTable, labels: Labels) -> None:
    """Raise if the score takes two values only and they are the labels: the vote would see what it must not.

    A handful of paths may fall that way by chance, so small files are let through.
    """
    if table.scores is None or sum(map(len, table.scores)) < _ENOUGH_PATHS:
        return
    by_label: dict[bool, set[float]] = {True: set(), False: set()}
    rows = enumerate(zip(table.scores, labels.of_paths(table), strict=True))
    for scores, rights in (row for at, row in rows if at not in table.unscored):
        for score, right in zip(scores, rights, strict=True):
            by_label[right].add(score)
            if len(by_label[right]) > 1:
                return
    if by_label[True] and by_label[False] and by_label[True].isdisjoint(by_label[False]):
        raise InvalidValue(
            f"the score {table.fields.score!r} is the label itself: one value on every right path, another on every "
            "wrong one; labels cannot be a score"
        )


def _from_gold(pools: Sequence[Pool], table: PoolTable) -> Labels:
    gold = []
    for pool in pools:
        key_of = table.fields.key_of(pool.problem)
        accepted = table.fields.relation_of(pool.problem).accepted(pool.problem.gold)
        keys = frozenset(key for entry in accepted if (key := key_of(entry)) is not None)
        if not keys:
            unlabelled = len(pools) - len(labelled_rows(pools))
            raise PoolFileError(
                f"problem {pool.problem.id!r} has no gold answer ({unlabelled} of {len(pools)} have none); labels are "
                "needed here",
                "add gold, name ready-made labels as {correct}, or leave those problems out",
            )
        gold.append(keys)
    return Labels(right=[], gold=gold)


def _from_field(pools: Sequence[Pool], table: PoolTable, name: str) -> Labels:
    steps = name.removeprefix(".").split(".")
    right, conflicts = [], 0
    for pool, keys in zip(pools, table.answers, strict=True):
        verdicts: dict[str, bool] = {}
        conflict = False
        for position, (path, key) in enumerate(zip(pool.paths, keys, strict=True)):
            if key is None:
                continue
            label = field_of(path, steps)
            if not isinstance(label, bool):
                raise PoolFileError(
                    f"problem {pool.problem.id!r}, path {position}: the label {name!r} must be true or false, "
                    f"got {'nothing' if type(label) is object else repr(label)}"
                )
            conflict |= verdicts.setdefault(key, label) != label
            verdicts[key] &= label
        conflicts += conflict
        right.append(verdicts)
    return Labels(right=right, gold=None, conflicts=conflicts)
