"""Checks that stand in the pools: what people said of a random part of them, as a field of paths or of problems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from demur.errors import InvalidValue, PoolFileError
from demur.pools.checks import Checks
from demur.pools.field_names import label_fields, there_is
from demur.pools.label_rule import LabelRule
from demur.pools.labels import read_labels, with_gold_from
from demur.pools.parts import every_problem, without_texts
from demur.pools.voted_pools import VotedPools
from demur.records import Pool, is_nothing


def read_checks(pools: Sequence[Pool], voted: VotedPools, name: str) -> Checks:
    """What people found, by the name of a field: where it is missing or null nobody looked.

    A field of the paths says true or false of their answers. One of the problems holds what people accept as right.
    """
    if any(not is_nothing(problem.extra.get(name)) for problem in every_problem(pools)):
        return _from_problems(pools, voted, name)
    if voted.table is None:
        raise InvalidValue("checks are read from pools, and these votes come from none", "give them as {checked}")
    labels, winners = read_labels(pools, voted.table, name, partly=True), voted.votes.winners.tolist()
    said = [rights.get(winner) for rights, winner in zip(labels.right, winners, strict=True)]
    if not any(labels.right):
        raise PoolFileError(
            f"nothing is checked under {name!r}; {there_is(name, label_fields(pools))}",
            "name the field in which people's labels stand",
        )
    known = np.array([label is not None for label in said], dtype=np.bool_)
    return Checks(known, np.array([bool(label) for label in said], dtype=np.bool_), known, LabelRule(name))


def _from_problems(pools: Sequence[Pool], voted: VotedPools, name: str) -> Checks:
    assert voted.table is not None
    labels = read_labels(with_gold_from(without_texts(pools), name), voted.table, partly=True)
    known = np.ones(len(voted), dtype=np.bool_) if labels.known is None else np.array(labels.known, dtype=np.bool_)
    return Checks(known, labels.of_votes(voted.votes) & known, known, LabelRule())
