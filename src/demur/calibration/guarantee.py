"""What every guarantee shares: a rank k from n, and the threshold that the rank picks.

    k            the k-th largest wrong confidence is the threshold; at most k − 1 calibration errors lie above it
    threshold λ̂  answered means confidence > λ̂, strictly

So a guarantee needs to know n and nothing else of the data; the data are one order statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from demur.errors import InvalidValue
from demur.evidence import Evidence, ThresholdKey


@runtime_checkable
class Guarantee(Protocol):
    """A promise about confident errors at level alpha."""

    @property
    def name(self) -> str: ...

    @property
    def alpha(self) -> float: ...

    def rank(self, n: int) -> int:
        """k for n calibration votes; 0 means abstain always."""
        ...

    def n_needed(self) -> int:
        """The smallest n whose rank is at least 1."""
        ...

    def parameters(self) -> dict[str, Any]:
        """What a policy file stores, besides the name, to make this object again."""
        ...

    def promise(self, n: int) -> str:
        """The guarantee in one sentence, with its scope."""
        ...


@dataclass(frozen=True)
class OperatingPoint:
    """A guarantee met on calibration data: the rank and the threshold it picked."""

    guarantee: Guarantee
    n: int
    k: int
    threshold_key: ThresholdKey

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def threshold(self) -> float:
        """λ̂, the confidence that must be exceeded."""
        return self.threshold_key[0]

    @property
    def feasible(self) -> bool:
        """False where n is too small for the promise, so that the policy abstains always."""
        return self.k > 0


def exact_alpha(value: Any, name: str = "alpha") -> Fraction:
    """A level as the decimal it prints as: Fraction(0.1) exceeds 1/10 and would cost a rank."""
    try:
        level = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"{name} must be a number strictly between 0 and 1, got {value!r}") from None
    if not 0 < level < 1:
        raise InvalidValue(f"{name} must lie strictly between 0 and 1, got {value}")
    return level


def set_point(guarantee: Guarantee, evidence: Evidence) -> OperatingPoint:
    """Pick the threshold that a guarantee asks for."""
    k = guarantee.rank(evidence.n)
    return OperatingPoint(guarantee, evidence.n, k, evidence.threshold(k))
