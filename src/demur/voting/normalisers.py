"""Score normalisers: named, versioned maps from raw scores to the scale the weight function expects.

exp(q) of a raw reward is best-of-m in disguise, and exp(q) of a mean log-probability is nearly a majority vote
(theory, departure F). A normaliser puts the spread within a pool on one scale. Those named `pool_…` and `rank` use
one pool at a time, so exchangeability is untouched. `fixed_…` use constants, which must be chosen beforehand or
fitted on a tune split: `fit` remembers the problems it saw, and `calibrate` refuses them.

The version is part of a normaliser's spec: change a formula or a default, change the version.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import InvalidValue
from demur.voting._exact_sums import row_sums

Floats = NDArray[np.float64]


@runtime_checkable
class Normaliser(Protocol):
    """Scores of whole pools (one row each) in, scores of the same shape out."""

    @property
    def name(self) -> str: ...

    @property
    def fitted_on(self) -> frozenset[str]:
        """Ids of the problems its constants were fitted on; empty where nothing was fitted."""

    @property
    def spec(self) -> str:
        """Name, version and constants, as a policy stores them; `parse_normaliser` reads it back."""

    def __call__(self, scores: Floats) -> Floats: ...


@dataclass(frozen=True)
class _PerPool:
    """Shared by the normalisers that look at one pool at a time."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    fitted_on: ClassVar[frozenset[str]] = frozenset()

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.version}"


class NoNormaliser(_PerPool):
    """Scores as they are."""

    name = "none"

    def __call__(self, scores: Floats) -> Floats:
        return scores


class PoolZ(_PerPool):
    """(q − mean) / max(std, 0.01) within the pool.

    The floor is about a tenth of the spread seen within pools of real rewards and mean log-probabilities: below it,
    differences are noise and must not be blown up to full range. It is pinned in the version.
    """

    name = "pool_z"
    floor = 0.01

    def __call__(self, scores: Floats) -> Floats:
        width = scores.shape[1]
        centred = scores - row_sums(scores) / width
        spread = np.sqrt(row_sums(centred * centred) / width)
        spread[np.isinf(spread)] = np.nan  # squares overflow: say so, rather than call all scores equal
        return np.asarray(centred / np.maximum(spread, self.floor))


class PoolMinMax(_PerPool):
    """(q − min) / max(max − min, 0.03) within the pool: in [0, 1], 0 for a pool of equal scores."""

    name = "pool_minmax"
    floor = 0.03

    def __call__(self, scores: Floats) -> Floats:
        lowest = scores.min(axis=1, keepdims=True)
        spread = scores.max(axis=1, keepdims=True) - lowest
        return np.asarray((scores - lowest) / np.maximum(spread, self.floor))


class Rank(_PerPool):
    """Average rank within the pool over its size: in (0, 1], equal scores share one rank."""

    name = "rank"

    def __call__(self, scores: Floats) -> Floats:
        ranks = np.empty_like(scores)
        for j in range(scores.shape[1]):
            below = (scores < scores[:, j : j + 1]).sum(axis=1)
            level = (scores == scores[:, j : j + 1]).sum(axis=1)
            ranks[:, j] = below + (level + 1) / 2
        return np.asarray(ranks / scores.shape[1])


@dataclass(frozen=True)
class _Fixed:
    """Shared by the normalisers with two constants, a centre and a scale."""

    center: float
    scale: float
    fitted_on: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    name: ClassVar[str]
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.center) and math.isfinite(self.scale) and self.scale > 0):
            raise InvalidValue(
                f"{self.name} needs a finite center and a finite scale > 0, got {self.center}, {self.scale}"
            )

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.version}:{self.center!r},{self.scale!r}"

    @classmethod
    def fit(cls, scores: ArrayLike, ids: Iterable[str]) -> Self:
        """Mean and standard deviation of a tune split's scores; `ids` are its problems, kept to refuse them later."""
        values = np.asarray(scores, dtype=np.float64)
        seen = frozenset(map(str, ids))
        if not values.size or not np.isfinite(values).all():
            raise InvalidValue(f"{cls.name}.fit needs at least one score, all of them finite")
        if not seen:
            raise InvalidValue(
                f"{cls.name}.fit needs the ids of the tune problems, so that calibration can refuse them"
            )
        return cls(float(values.mean()), float(values.std()) or 1.0, seen)


class FixedAffine(_Fixed):
    """(q − center) / scale."""

    name = "fixed_affine"

    def __call__(self, scores: Floats) -> Floats:
        return (scores - self.center) / self.scale


class FixedSigmoid(_Fixed):
    """1 / (1 + exp(−(q − center) / scale)): in [0, 1]."""

    name = "fixed_sigmoid"

    def __call__(self, scores: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return 1.0 / (1.0 + np.exp((self.center - scores) / self.scale))


none, pool_z, pool_minmax, rank = NoNormaliser(), PoolZ(), PoolMinMax(), Rank()
fixed_affine, fixed_sigmoid = FixedAffine, FixedSigmoid

_CONSTANT_FREE: dict[str, Normaliser] = {n.name: n for n in (none, pool_z, pool_minmax, rank)}
_WITH_CONSTANTS: dict[str, type[FixedAffine] | type[FixedSigmoid]] = {
    kind.name: kind for kind in (FixedAffine, FixedSigmoid)
}


def parse_normaliser(text: str) -> Normaliser:
    """`pool_z`, `fixed_affine:CENTER,SCALE` and so on, with or without `@VERSION` behind the name."""
    head, _, arguments = text.partition(":")
    name, _, version = head.partition("@")
    known: Any = _CONSTANT_FREE.get(name) or _WITH_CONSTANTS.get(name)
    if known is None:
        names = ", ".join([*_CONSTANT_FREE, *(f"{n}:CENTER,SCALE" for n in _WITH_CONSTANTS)])
        raise InvalidValue(f"unknown normaliser {text!r}; expected one of {names}")
    if version and version != str(known.version):
        raise InvalidValue(
            f"normaliser {text!r}: this demur has version {known.version} of {name}; "
            "install the demur that wrote it, or calibrate again"
        )
    if name in _CONSTANT_FREE:
        if arguments:
            raise InvalidValue(f"normaliser {name} takes no constants, got {text!r}")
        return _CONSTANT_FREE[name]
    try:
        center, scale = map(float, arguments.split(","))
    except ValueError:
        raise InvalidValue(f"normaliser {name} needs two numbers, {name}:CENTER,SCALE, got {text!r}") from None
    return _WITH_CONSTANTS[name](center, scale)
