"""Weight functions w(q): from a path's (normalised) score to its say in the vote.

Only ratios of weights within a pool matter, so each pool's weights are given relative to its largest.
A weight function is non-decreasing in the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue

Floats = NDArray[np.float64]


@runtime_checkable
class Weight(Protocol):
    """Scores of whole pools (one row each) in, weights in [0, 1] out, the largest of each pool being 1."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> str:
        """The text that `parse_weight` turns back into this object."""

    def __call__(self, scores: Floats) -> Floats: ...


@dataclass(frozen=True)
class Uniform:
    """w ≡ 1: the majority vote."""

    name: ClassVar[str] = "uniform"
    spec: ClassVar[str] = "uniform"

    def __call__(self, scores: Floats) -> Floats:
        return np.ones_like(scores)


@dataclass(frozen=True)
class Linear:
    """w = q, for scores that are never negative. A pool of zeros votes uniformly, like any pool of equal scores."""

    name: ClassVar[str] = "linear"
    spec: ClassVar[str] = "linear"

    def __call__(self, scores: Floats) -> Floats:
        if (scores < 0).any():
            raise InvalidValue(
                f"linear weights need scores >= 0, got {scores.min():g}; "
                "use the normaliser pool_minmax or rank, or exponential weights"
            )
        weights, largest = np.ones_like(scores), scores.max(axis=1, keepdims=True)
        np.divide(scores, largest, out=weights, where=largest > 0)
        return weights


@dataclass(frozen=True)
class Exponential:
    """w = exp(βq), the paper's choice with β = 1."""

    beta: float = 1.0
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.beta) and self.beta > 0):
            raise InvalidValue(f"beta must be a finite number > 0, got {self.beta}")

    @property
    def spec(self) -> str:
        return f"{self.name}:{self.beta!r}"

    def __call__(self, scores: Floats) -> Floats:
        # Only ratios of weights reach ν, so shifting by the pool's maximum changes nothing
        # but keeps exp() from overflowing on raw reward scores.
        with np.errstate(over="ignore", under="ignore"):
            shifted: Floats = scores - scores.max(axis=1, keepdims=True)
            if self.beta != 1.0:
                shifted *= self.beta
            return np.exp(shifted, out=shifted)


def uniform() -> Uniform:
    """w ≡ 1: the majority vote."""
    return Uniform()


def linear() -> Linear:
    """w = q; needs q ≥ 0."""
    return Linear()


def exponential(beta: float = 1.0) -> Exponential:
    """w = exp(βq)."""
    return Exponential(float(beta))


def parse_weight(text: str) -> Weight:
    """`uniform`, `linear`, `exponential` or `exponential:BETA`."""
    name, _, argument = text.partition(":")
    if name == "exponential":
        try:
            return exponential(float(argument or 1.0))
        except ValueError as error:
            raise InvalidValue(f"weight {text!r}: {error}") from None
    if text in ("uniform", "linear"):
        return Uniform() if text == "uniform" else Linear()
    raise InvalidValue(f"unknown weight {text!r}; expected uniform, linear or exponential:BETA")
