"""A learned key: the confidence of a vote as a logistic function of what can be seen of its pool.

    learned confidence = 1 / (1 + exp(−η)),   η = intercept + Σ weight · feature + Σ weight · agreement of a source

The weights were fitted on problems that calibrate nothing (`fit_learned`), so to calibration it is a fixed function and
every promise holds as it does for ν. It lies in (0, 1], and is 0 where a pool has nothing to answer. As a document it
is plain numbers by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from demur.descriptions import digest
from demur.errors import InvalidValue
from demur.voting._exact_sums import Floats
from demur.voting.features import agreement, columns_of, features_of, is_feature, looks_at_scores
from demur.voting.key import READERS, Component, Counted
from demur.voting.problems import Problems

VERSION = 1
_LARGEST = 1e9
_MOST_FEATURES = 200
_MOST_SOURCES = 5_000
_LONGEST_NAME = 500
_MOST_PROBLEMS = 1_000_000
_FURTHEST = 30.0
"""Beyond it a probability differs from 0 or 1 by less than the twelfth decimal."""
_DECIMALS = 12
_FITTED_ON = ("ids", "questions", "clusters")


class Learned(Component):
    """The weights of features, by name, and of the sources of paths.

    `weights` are those of features (see `voting.features`). `sources` are those of the agreement of each source of
    paths with the winner, where `origin` names the field of paths that says where they come from; paths from others
    have no say. `fitted_on` are the problems whose labels it was fitted on.
    """

    name = "learned"

    def __init__(
        self,
        intercept: float,
        weights: Mapping[str, float],
        origin: str | None = None,
        sources: Mapping[str, float] | None = None,
        fitted_on: Problems = Problems(),  # noqa: B008 - frozen
    ) -> None:
        self.intercept, self.weights = float(intercept), dict(weights)
        self.origin, self.sources, self.fitted_on = origin, dict(sources or {}), fitted_on
        for name in self.weights:
            if not is_feature(name):
                raise InvalidValue(f"a learned key knows no feature {name!r:.60}")
        if not self.weights and not self.sources:
            raise InvalidValue("a learned key needs the weight of at least one feature")
        if bool(self.sources) != (origin is not None):
            raise InvalidValue("a learned key that weighs sources names the field that says where paths come from")
        self.needs = columns_of(self.weights)
        self.looks_at_scores = looks_at_scores(self.weights)
        self.spec = f"learned@{VERSION}:{digest(self.document()).removeprefix('sha256:')[:16]}"

    def of(self, counted: Counted) -> Floats:
        """The learned confidence of each pool."""
        columns = zip(self.weights.values(), features_of(counted, list(self.weights)).T, strict=True)
        # Number by number, in one order: a product of matrices depends on their size in the last bit.
        total = np.full(len(counted.table), self.intercept)
        for weight, column in columns:
            total += weight * column
        if self.sources:
            agreeing = agreement(counted, list(self.sources))
            for weight, column in zip(self.sources.values(), agreeing.T, strict=True):
                total += weight * column
        confidence = 1.0 / (1.0 + np.exp(-np.clip(total, -_FURTHEST, _FURTHEST)))
        rounded = np.maximum(np.round(confidence, _DECIMALS), 10.0**-_DECIMALS)
        return np.where((counted.winner >= 0) & (counted.confidence > 0), rounded, 0.0)

    def document(self) -> dict[str, Any]:
        """As plain values; `read_learned` reads it back."""
        named = {"origin": self.origin, "sources": dict(self.sources)} if self.sources else {}
        fitted = {kind: sorted(getattr(self.fitted_on, kind)) for kind in _FITTED_ON}
        return {
            "component": self.name,
            "version": VERSION,
            "intercept": self.intercept,
            "weights": dict(self.weights),
            **named,
            "fitted_on": {kind: names for kind, names in fitted.items() if names},
        }


def read_learned(document: Mapping[str, Any]) -> Learned:
    """The learned key that a document tells of; ValueError where it is none."""
    if document.get("version") != VERSION or isinstance(document.get("version"), bool):
        raise InvalidValue(
            f"its learned key is of version {document.get('version')!r:.60}, and this demur knows {VERSION}",
            "calibrate again",
        )
    known = {"component", "version", "intercept", "weights", "origin", "sources", "fitted_on"}
    if unknown := sorted(map(str, set(document) - known)):
        raise InvalidValue(f"a learned key has no {unknown[0]!r:.60}")
    origin, fitted = document.get("origin"), document.get("fitted_on", {})
    if not (origin is None or (isinstance(origin, str) and 0 < len(origin) <= _LONGEST_NAME)):
        raise InvalidValue(f"origin of a learned key must name a field, got {origin!r:.60}")
    if not isinstance(fitted, Mapping) or not set(fitted) <= set(_FITTED_ON):
        raise InvalidValue(f"fitted_on of a learned key must hold lists of problems, got {fitted!r:.60}")
    return Learned(
        _number(document.get("intercept"), "intercept"),
        _numbers(document.get("weights"), "weights", _MOST_FEATURES),
        origin,
        _numbers(document.get("sources", {}), "sources", _MOST_SOURCES),
        Problems(**{kind: _names(names, kind) for kind, names in fitted.items()}),
    )


def _numbers(values: Any, name: str, most: int) -> dict[str, float]:
    if not isinstance(values, Mapping) or len(values) > most:
        raise InvalidValue(f"{name} of a learned key must be at most {most} numbers by name, got {values!r:.60}")
    if not all(isinstance(key, str) and 0 < len(key) <= _LONGEST_NAME for key in values):
        raise InvalidValue(f"{name} of a learned key must have names of at most {_LONGEST_NAME} letters")
    return {key: _number(value, f"the weight of {key!r:.60}") for key, value in values.items()}


def _number(value: Any, name: str) -> float:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fine or not math.isfinite(value) or abs(value) > _LARGEST:
        raise InvalidValue(f"{name} of a learned key must be a number of at most {_LARGEST:g}, got {value!r:.60}")
    return float(value)


def _names(values: Any, name: str) -> frozenset[str]:
    if not isinstance(values, list) or len(values) > _MOST_PROBLEMS or not all(isinstance(one, str) for one in values):
        raise InvalidValue(f"fitted_on.{name} of a learned key must be a list of strings, got {values!r:.60}")
    return frozenset(values)


READERS[Learned.name] = read_learned
