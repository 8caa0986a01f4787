"""What a file of a cascade says, and whether its thresholds follow from its own votes.

Its evidence are the votes of all stages on the same questions, one row each: for every stage in order the key, whether
the vote is right (1) or not (0), and how many paths it has. Rows are sorted, so that they tell of no order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from demur.calibration import CLUSTER, QUESTION, RankGuarantee
from demur.calibration.cascade import JointVotes, as_shares
from demur.calibration.guarantee import without_infinity
from demur.policy.cascade import Cascade, StageParts, cascade_of
from demur.policy.cascade_calibration import check_names
from demur.policy.document import description_of, guarantee_of
from demur.policy.file import Document
from demur.policy.seen_document import seen_document, seen_of
from demur.pools.label_rule import LabelRule
from demur.version import __version__
from demur.voting.recipe import Recipe

_MOST_PATHS = 1 << 20


def to_document(cascade: Cascade) -> Document:
    """The cascade as plain values."""
    return {
        "demur": __version__,
        **_settled(cascade),
        "n": cascade.n,
        "unit": cascade.unit,
        "sizes_by_chance": cascade.sizes_by_chance,
        **({} if cascade.person_cost is None else {"person_cost": cascade.person_cost}),
        **({} if cascade.labels.is_plain and not cascade.labels.dropped else {"labels": cascade.labels.describe()}),
        "stages": [
            {
                "name": stage.name,
                "cost": stage.cost,
                "pipeline": stage.policy.description.document(),
                "fingerprint": stage.policy.description.fingerprint,
            }
            for stage in cascade.stages
        ],
        "rows": _rows(cascade.votes),
        "calibration": seen_document(cascade.seen),
    }


def _settled(cascade: Cascade) -> Document:
    """What was promised, and what follows from it and the votes."""
    stages = cascade.stages
    return {
        "guarantee": {"guarantee": cascade.guarantee.name, **cascade.guarantee.parameters()},
        "shares": [str(share) for share in cascade.shares],
        "ranks": [stage.rank for stage in stages],
        "thresholds": [without_infinity(stage.rule.threshold_key) for stage in stages],
    }


def from_document(document: Document) -> Cascade:
    """The cascade that a document describes; ValueError where it does not hold together."""
    stages = document.get("stages")
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        raise ValueError(f"`stages` must be a list of objects, got {stages!r:.60}")
    check_names([stage.get("name") for stage in stages])
    by_chance, unit = document.get("sizes_by_chance"), document.get("unit")
    if not isinstance(by_chance, bool) or unit not in (QUESTION, CLUSTER):
        raise ValueError(f"it needs sizes_by_chance and a unit, got {by_chance!r} and {unit!r:.60}")
    guarantee = guarantee_of(document.get("guarantee"))
    if not isinstance(guarantee, RankGuarantee):
        raise ValueError(f"a cascade cannot hold the guarantee {guarantee.name}")
    descriptions = [description_of(stage) for stage in stages]
    recipes = [Recipe.of(description.vote) for description in descriptions]
    votes = _votes(document.get("rows"), [len(recipe.key) for recipe in recipes])
    if document.get("n") != votes.n:
        raise ValueError(f"its rows are {votes.n}, and it says n = {document.get('n')!r:.60}")
    shares = document.get("shares")
    if not isinstance(shares, list):
        raise ValueError(f"`shares` must be a list, got {shares!r:.60}")
    for stage in stages:
        if stage.get("cost") is None:
            raise ValueError(f"stage {stage['name']!r} has no cost")
    cascade = cascade_of(
        [
            StageParts(stage["name"], stage["cost"], recipe, description)
            for stage, recipe, description in zip(stages, recipes, descriptions, strict=True)
        ],
        votes,
        guarantee,
        as_shares(shares, len(stages)),
        seen=seen_of(document),
        unit=unit,
        labels=LabelRule.of(document.get("labels")),
        sizes_by_chance=by_chance,
        person_cost=document.get("person_cost"),
    )
    for name, value in _settled(cascade).items():
        if document.get(name) != value:
            raise ValueError(f"its {name} do not follow from its votes")
    return cascade


def _rows(votes: JointVotes) -> list[list[Any]]:
    columns = []
    for key, right, n_paths in zip(votes.keys, votes.right, votes.n_paths, strict=True):
        columns += [*key.T, right.astype(np.float64), n_paths.astype(np.float64)]
    order = np.lexsort(columns[::-1])
    listed = []
    for key, right, n_paths in zip(votes.keys, votes.right, votes.n_paths, strict=True):
        parts = [without_infinity(column.tolist()) for column in key[order].T]
        listed += [*parts, right[order].astype(int).tolist(), n_paths[order].tolist()]
    return [list(row) for row in zip(*listed, strict=True)]


def _votes(rows: Any, widths: list[int]) -> JointVotes:
    """The votes of a document's rows, every value of them checked."""
    length = sum(widths) + 2 * len(widths)
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"`rows` must be a list of at least one row, got {rows!r:.60}")
    keys, right, sizes, at = [], [], [], 0
    for row in rows:
        if not isinstance(row, list) or len(row) != length:
            raise ValueError(f"each of its rows must hold {length} numbers, got {row!r:.60}")
    for width in widths:
        confidence, *others, labels, n_paths = ([row[at + part] for row in rows] for part in range(width + 2))
        if not all(_is_number(value) and 0 <= value <= 1 for value in confidence):
            raise ValueError("confidences of its rows must lie in [0, 1]")
        if not all(value is None or _is_number(value) for column in others for value in column):
            raise ValueError("secondary keys of its rows must be numbers")
        if not all(type(value) is int and value in (0, 1) for value in labels):
            raise ValueError("labels of its rows must be 0 or 1")
        if not all(type(value) is int and 1 <= value <= _MOST_PATHS for value in n_paths):
            raise ValueError("numbers of paths of its rows must be whole numbers from 1")
        numbers = [[-math.inf if value is None else float(value) for value in column] for column in others]
        keys.append(np.array([confidence, *numbers], dtype=np.float64).T.copy())
        right.append(np.array(labels, dtype=np.bool_))
        sizes.append(np.array(n_paths, dtype=np.intp))
        at += width + 2
    return JointVotes(tuple(keys), tuple(right), tuple(sizes))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300
