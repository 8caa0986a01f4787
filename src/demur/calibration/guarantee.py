"""What a guarantee is, and the rule it settles on.

    Guarantee.settle(evidence) → Rule      given labelled votes, which keys are answered, and what is promised of it
    Rule.answers(keys)                     answered means key > threshold, strictly
    Rule.law                               which law its errors follow on new votes: what an audit asks
    Rule.promise                           the guarantee in one sentence, with its scope

The guarantees here are one order statistic each: the k-th largest wrong key is the threshold, so that at most k − 1
calibration errors lie above it. They need to know n and nothing else of the data to know k.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats, ThresholdKey, exceeds
from demur.evidence.laws import ErrorLaw
from demur.evidence.split_law import SplitLaw


@runtime_checkable
class Guarantee(Protocol):
    """A promise about confident errors at level alpha."""

    @property
    def name(self) -> str: ...

    @property
    def alpha(self) -> float: ...

    def settle(self, evidence: Evidence) -> Rule:
        """The rule that keeps the promise, given these labelled votes."""

    def settle_many(self, wrong: NDArray[np.int32], highest: int) -> NDArray[Any]:
        """Thresholds of many calibration sets at once, as ranks.

        A row is one set: the ranks of its wrong votes, ascending, and 0 for the right ones. Votes whose rank exceeds
        the threshold are answered; `highest` is the largest rank there is.
        """

    def law(self, n: int) -> ErrorLaw:
        """The law of its errors after a calibration on n votes."""

    def law_over_splits(self, evidence: Evidence, n_cal: int) -> SplitLaw:
        """The exact law of its errors over random splits of one file, `n_cal` of whose votes calibrate."""

    def n_needed(self) -> int:
        """The smallest n from which it can answer at all."""

    def parameters(self) -> dict[str, Any]:
        """What a policy file stores, besides the name, to make this object again."""

    def promise(self, n: int) -> str:
        """The guarantee in one sentence, with its scope."""


@dataclass(frozen=True)
class Rule:
    """A guarantee met on calibration data: which keys are answered, under which law, with which promise."""

    guarantee: Guarantee
    n: int
    law: ErrorLaw
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
        return self.law.answers

    @property
    def promise(self) -> str:
        return self.guarantee.promise(self.n)

    @property
    def too_few(self) -> str:
        """Why it abstains always, where it does."""
        return (
            f"{self.n} calibration questions are too few for alpha = {self.alpha:g} ({self.guarantee.name}), "
            f"which needs {self.guarantee.n_needed()}"
        )

    def answers(self, keys: Floats) -> NDArray[np.bool_]:
        """Which keys are answered."""
        return exceeds(keys, self.threshold_key)

    def answered(self, evidence: Evidence) -> tuple[int, int]:
        """How many right and wrong votes are answered."""
        return evidence.above(self.threshold_key)

    def document(self) -> dict[str, Any]:
        """As plain values: what a policy file stores, and checks against its own evidence."""
        settled = {"k": self.law.k, "threshold": without_infinity(self.threshold_key)}
        return {"guarantee": self.guarantee.name, **self.guarantee.parameters(), **settled}


@dataclass(frozen=True)
class RankGuarantee:
    """A guarantee whose threshold is the k-th largest wrong key, k depending on n alone."""

    alpha: float
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", float(exact_alpha(self.alpha)))

    @abstractmethod
    def rank(self, n: int) -> int:
        """k for n calibration votes; 0 means abstain always."""

    def settle(self, evidence: Evidence) -> Rule:
        law = self.law(evidence.n)
        return Rule(self, evidence.n, law, evidence.threshold(law.k))  # type: ignore[arg-type]

    def settle_many(self, wrong: NDArray[np.int32], highest: int) -> NDArray[Any]:
        splits, n = wrong.shape
        k = self.rank(n)
        if k == 0:
            return np.full(splits, highest)
        return wrong[:, n - k] if k <= n else np.zeros(splits, np.int32)

    def law(self, n: int) -> ErrorLaw:
        return ErrorLaw(self.rank(n), n)

    def law_over_splits(self, evidence: Evidence, n_cal: int) -> SplitLaw:
        return SplitLaw.of(evidence, self.rank(n_cal), n_cal)

    def parameters(self) -> dict[str, Any]:
        return {"alpha": self.alpha}


def without_infinity(key: Iterable[float]) -> list[float | None]:
    """A key as JSON can hold it."""
    return [bound if math.isfinite(bound) else None for bound in key]


def exact_alpha(value: Any, name: str = "alpha") -> Fraction:
    """A level as the decimal it prints as: Fraction(0.1) exceeds 1/10 and would cost a rank."""
    try:
        level = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"{name} must be a number strictly between 0 and 1, got {value!r}") from None
    if not 0 < level < 1:
        raise InvalidValue(f"{name} must lie strictly between 0 and 1, got {value}")
    return level
