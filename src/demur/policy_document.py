"""What a policy file says, and whether its numbers follow from its own evidence.

A file is data from outside: every value is checked for type and range before it is used, and thresholds are computed
again from the evidence rather than believed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from demur.calibration import GUARANTEES, OperatingPoint, set_point
from demur.evidence import Evidence
from demur.normalisers import parse_normaliser
from demur.policy_file import Document, digest
from demur.seen import Seen
from demur.tallies import TIE_RULE
from demur.tie_breaks import parse_tie_break
from demur.version import __version__
from demur.voting import Recipe
from demur.weights import parse_weight

_VOTE_FIELDS = ("answers", "score", "normaliser", "weight", "tie_rule", "tie_break", "n_paths")
_MOST_VOTES = 10**15


@dataclass(frozen=True, eq=False)
class PolicyParts:
    """What a policy is made of."""

    points: tuple[OperatingPoint, ...]
    evidence: Evidence
    recipe: Recipe
    n_paths: tuple[int, int]
    seen: Seen

    @property
    def pipeline(self) -> dict[str, Any]:
        """How votes must be made to be decided by this policy."""
        return {**self.recipe.describe(), "n_paths": list(self.n_paths)}


def to_document(parts: PolicyParts) -> Document:
    """The policy as plain values."""
    evidence, seen = parts.evidence, parts.seen
    counts = zip(evidence.levels.tolist(), evidence.right.tolist(), evidence.wrong.tolist(), strict=True)
    return {
        "demur": __version__,
        "points": [
            {
                "guarantee": point.guarantee.name,
                **point.guarantee.parameters(),
                "k": point.k,
                "threshold": _without_infinity(point.threshold_key),
            }
            for point in parts.points
        ],
        "n": evidence.n,
        "evidence": [[*_without_infinity(level), right, wrong] for level, right, wrong in counts],
        "pipeline": parts.pipeline,
        "fingerprint": digest(parts.pipeline),
        "calibration": {
            "ids": sorted(seen.ids),
            "questions": sorted(seen.questions),
            "clusters": sorted(seen.clusters),
            "hold_out": seen.hold_out,
        },
    }


def from_document(document: Document) -> PolicyParts:
    """The policy that a document describes; ValueError where it does not hold together."""
    pipeline = _dictionary(document, "pipeline")
    recipe = _recipe(pipeline)
    evidence = _evidence(document, width=1 if recipe.tie_break is None else 2)
    if document.get("n") != evidence.n:
        raise ValueError(f"its evidence counts {evidence.n} votes, and it says n = {document.get('n')!r}")
    points = tuple(_point(stored, evidence) for stored in _list(document, "points"))
    alphas = [point.alpha for point in points]
    if not points or alphas != sorted(set(alphas)):
        raise ValueError("it needs at least one operating point, each alpha once and in order")
    calibration = _dictionary(document, "calibration")
    hold_out = calibration.get("hold_out")
    if not (hold_out is None or (_is_number(hold_out) and 0 < hold_out < 1)):
        raise ValueError(f"hold_out must be a share, got {hold_out!r}")
    ids, questions, clusters = (frozenset(_strings(calibration, field)) for field in ("ids", "questions", "clusters"))
    parts = PolicyParts(points, evidence, recipe, _n_paths(pipeline), Seen(ids, questions, clusters, hold_out))
    if digest(parts.pipeline) != document.get("fingerprint"):
        raise ValueError("its fingerprint does not match its pipeline")
    return parts


def _recipe(pipeline: Document) -> Recipe:
    for field in ("weight", "normaliser", "tie_rule", "answers"):
        if not isinstance(pipeline.get(field), str):
            raise ValueError(f"pipeline.{field} must be a string, got {pipeline.get(field)!r}")
    for field in ("score", "tie_break"):
        if not (field in pipeline and isinstance(pipeline[field], (str, type(None)))):
            raise ValueError(f"pipeline.{field} must be a string or null, got {pipeline.get(field)!r}")
    if pipeline["tie_rule"] != TIE_RULE:
        raise ValueError(f"its tie rule is {pipeline['tie_rule']}, and this demur has {TIE_RULE}; calibrate again")
    if pipeline["answers"] not in ("codes", "keys"):
        raise ValueError(f"pipeline.answers must be codes or keys, got {pipeline['answers']!r}")
    return Recipe(
        weight=parse_weight(pipeline["weight"]),
        normaliser=parse_normaliser(pipeline["normaliser"]),
        tie_break=None if pipeline["tie_break"] is None else parse_tie_break(pipeline["tie_break"]),
        score=pipeline["score"],
        coded=pipeline["answers"] == "codes",
        upstream={name: value for name, value in pipeline.items() if name not in _VOTE_FIELDS},
    )


def _evidence(document: Document, *, width: int) -> Evidence:
    rows = _list(document, "evidence")
    for row in rows:
        if not isinstance(row, list) or len(row) != width + 2:
            raise ValueError(f"each row of its evidence must hold {width + 2} numbers, got {row!r:.60}")
        counts = row[-2:]
        if not all(_is_count(count) for count in counts) or sum(counts) == 0:
            raise ValueError(f"counts of its evidence must be whole numbers >= 0, not both 0, got {row!r:.60}")
        if not (_is_number(row[0]) and 0 <= row[0] <= 1):
            raise ValueError(f"confidences of its evidence must lie in [0, 1], got {row!r:.60}")
        if not all(entry is None or _is_number(entry) for entry in row[1:-2]):
            raise ValueError(f"secondary keys of its evidence must be numbers, got {row!r:.60}")
    levels = [tuple(-math.inf if entry is None else float(entry) for entry in row[:-2]) for row in rows]
    if not rows or any(low >= high for low, high in pairwise(levels)):
        raise ValueError("its evidence must be at least one row, each level once and in order")
    return Evidence(
        np.array(levels, dtype=np.float64),
        np.array([row[-2] for row in rows], dtype=np.int64),
        np.array([row[-1] for row in rows], dtype=np.int64),
    )


def _point(stored: Any, evidence: Evidence) -> OperatingPoint:
    if not isinstance(stored, dict) or stored.get("guarantee") not in GUARANTEES:
        raise ValueError(f"an operating point must name one of {', '.join(GUARANTEES)}, got {stored!r:.60}")
    parameters = {name: value for name, value in stored.items() if name not in ("guarantee", "k", "threshold")}
    if not all(_is_number(value) for value in parameters.values()):
        raise ValueError(f"the parameters of a guarantee must be numbers, got {parameters!r:.60}")
    try:
        point = set_point(GUARANTEES[stored["guarantee"]](**parameters), evidence)
    except TypeError:
        raise ValueError(f"a {stored['guarantee']} guarantee does not take {sorted(parameters)}") from None
    if point.k != stored.get("k") or _without_infinity(point.threshold_key) != stored.get("threshold"):
        raise ValueError(f"the threshold of alpha = {point.alpha:g} does not follow from its evidence")
    return point


def _n_paths(pipeline: Document) -> tuple[int, int]:
    sizes = pipeline.get("n_paths")
    if not (isinstance(sizes, list) and len(sizes) == 2 and all(map(_is_count, sizes)) and 1 <= sizes[0] <= sizes[1]):
        raise ValueError(f"pipeline.n_paths must be the smallest and the largest number of paths, got {sizes!r:.60}")
    return sizes[0], sizes[1]


def _dictionary(document: Document, field: str) -> Document:
    value = document.get(field)
    if not isinstance(value, dict):
        raise ValueError(f"`{field}` must be an object, got {value!r:.60}")
    return value


def _list(document: Document, field: str) -> list[Any]:
    value = document.get(field)
    if not isinstance(value, list):
        raise ValueError(f"`{field}` must be a list, got {value!r:.60}")
    return value


def _strings(document: Document, field: str) -> list[str]:
    values = _list(document, field)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"`{field}` must hold strings")
    return values


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_VOTES


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300


def _without_infinity(key: Any) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in key]
