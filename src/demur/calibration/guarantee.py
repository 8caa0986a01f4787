"""What a guarantee is, and the rule it settles on.

    Guarantee.settle(evidence) → Rule      given labelled votes, which keys are answered, and what is promised of it
    Rule.answers(cases)                    answered means key > threshold, strictly
    Rule.law                               which law its errors follow on new votes: what an audit asks
    Rule.promise                           the guarantee in one sentence, with its scope

Most guarantees are one order statistic each (`RankGuarantee`): the k-th largest wrong key is the threshold, so that at
most k − 1 calibration errors lie above it. They need to know n and nothing else of the data to know k. Their promise is
about all questions. One about the answers given alone (`selective`) has a law of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from demur.calibration.choices import as_choices
from demur.calibration.smallest_n import smallest_n
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats, ThresholdKey, above_all, exceeds
from demur.evidence.laws import AnswerLaw, BoundLaw, ErrorLaw, LawPerGroup
from demur.evidence.split_law import SplitLaw
from demur.evidence.strata import Strata
from demur.records import Groups
from demur.voting.cases import Cases

Level = float | Fraction
"""An alpha: the decimal that a number prints as, or a fraction as it is."""
Count = int | str
"""A number of votes, or the letter that stands for one."""
_FINEST = 10**40
QUESTION, CLUSTER = "question", "cluster"
"""What a promise counts: questions, or clusters of them of which one question each counts."""
NOWHERE_FEW_ENOUGH = (
    "at no threshold are calibration errors few enough for such a promise about the answers, so the policy abstains "
    "always."
)

_WITHOUT_GATE = "Errors are compared with those of the threshold alone, and abstaining on outliers makes them no more."


@runtime_checkable
class Guarantee(Protocol):
    """A promise about confident errors at level alpha."""

    @property
    def name(self) -> str: ...

    @property
    def alpha(self) -> float: ...

    @property
    def level(self) -> Fraction:
        """Alpha, exactly."""

    def settle(self, evidence: Evidence) -> Rule:
        """The rule that keeps the promise, given these labelled votes."""

    def settle_sizes(self, evidence: Strata) -> Rule:
        """The rule that keeps it for each of several pool sizes by itself, however often they occur in use."""

    def n_needed(self) -> int:
        """The smallest n from which it can answer at all."""

    def parameters(self) -> dict[str, Any]:
        """What a policy file stores, besides the name, to make this object again."""

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        """The guarantee in one sentence, with its scope; `unit` is what n counts."""


@runtime_checkable
class OnStrata(Protocol):
    """A guarantee that needs more than the counts of all votes together: what groups they are of, or their weights."""

    def settle_strata(self, evidence: Strata) -> Rule:
        """The rule that keeps the promise, for pools of every size that the evidence knows."""


@dataclass(frozen=True)
class Rule:
    """A guarantee met on calibration data: which keys are answered, under which law, with which promise."""

    guarantee: Guarantee
    n: int
    law: ErrorLaw | AnswerLaw | BoundLaw | LawPerGroup
    threshold_key: ThresholdKey
    sizes: Collection[int] | None = None
    """The pool sizes that calibration saw often enough; others are not answered. None: any size."""
    by_size: Mapping[int, ThresholdKey] = field(default_factory=dict)
    """Of the sizes that have a threshold of their own."""
    needs: int | None = None
    """How many votes of its own a size needs, where that is not what the guarantee needs in all."""
    unit: str = QUESTION
    wrong: str = ""
    """What "wrong" means, in a sentence; blank where it is "not the same as gold"."""
    unlabelled: int = 0
    """How many of the n have no label, and count as wrong."""
    outlier_level: float | None = None
    """Where questions that are unlike the calibration ones are abstained on as well: the gate's level."""
    needs_groups: ClassVar[bool] = False
    """Whether it cannot decide without knowing the groups of a question."""

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def threshold(self) -> float:
        """λ̂, the confidence that must be exceeded."""
        return self.threshold_key[0]

    @property
    def among_answers(self) -> bool:
        """Whether the promise is about the answers given, rather than about all questions."""
        return isinstance(self.law, AnswerLaw)

    def judged(self, answered: int, n: int) -> int:
        """Of n questions of which so many are answered, how many its law is about."""
        return answered if self.among_answers else n

    @property
    def feasible(self) -> bool:
        """False where n is too small for the promise, for pools of any size, so that the policy abstains always."""
        return self.law.answers and (self.sizes is None or len(self.sizes) > 0)

    @cached_property
    def promise(self) -> str:
        labels = f"{self.n - self.unlabelled} of the {self.n} were labelled, and the others count as wrong."
        parts = (self.guarantee.promise(self.n, self.unit), self.wrong, labels if self.unlabelled else "")
        return " ".join(part for part in (*parts, self.outlier_note) if part)

    @property
    def outlier_note(self) -> str:
        """That outliers are abstained on as well, in a sentence; blank where they are not."""
        if self.outlier_level is None:
            return ""
        return (
            "Besides, it abstains on questions whose text is unlike that of the calibration questions, or missing: on "
            f"a new one that is exchangeable with them with a probability of at most {self.outlier_level}, averaged "
            "over calibration sets."
        )

    @property
    def law_note(self) -> str:
        """What an audit compares errors with, where that is not their exact law; blank where it is."""
        return "" if self.outlier_level is None else _WITHOUT_GATE

    @property
    def too_few(self) -> str:
        """Why it abstains always, where it does."""
        apart = " of each number of paths" if self.law.answers else ""
        needed = self.needed_per_size if self.law.answers else self.guarantee.n_needed()
        return (
            f"{self.n} calibration {self.unit}s are too few for alpha = {self.alpha:g} ({self.guarantee.name}), "
            f"which needs {needed}{apart}"
        )

    @property
    def needed_per_size(self) -> int:
        """How many calibration votes a size needs to be answered."""
        return self.guarantee.n_needed() if self.needs is None else self.needs

    @property
    def never_answers(self) -> bool:
        """Too few votes, or a threshold that no confidence exceeds."""
        keys = [self.threshold_key] if self.sizes is None else [self.threshold_of(size) for size in self.sizes]
        return not self.feasible or all(key >= above_all(len(key)) for key in keys)

    @property
    def lowest(self) -> ThresholdKey:
        """The key that a pool of any size must exceed."""
        if self.sizes is None:
            return self.threshold_key
        return min((self.threshold_of(size) for size in self.sizes), default=above_all(len(self.threshold_key)))

    @property
    def n_thresholds(self) -> int:
        """How many keys calibration data has set."""
        return 1 + len(self.by_size)

    @property
    def told(self) -> str:
        """What is answered, in words."""
        if self.never_answers:
            return "never answers"
        if self.threshold == 0 and not self.by_size:
            return "always answers"
        return f"answers above {self.threshold:.4g}"

    def threshold_of(self, size: int, groups: Groups = (), weight: float | None = None) -> ThresholdKey:
        """The key that a pool of this size must exceed; its groups and its weight matter to some rules only."""
        return self.by_size.get(size, self.threshold_key) if self.takes(size) else above_all(len(self.threshold_key))

    def takes(self, size: int, groups: Groups = ()) -> bool:
        """Whether calibration saw enough pools of this size, on questions of these groups, for any to be answered."""
        return self.sizes is None or size in self.sizes

    def of_kind(self, groups: Groups) -> Rule:
        """The rule for questions of these groups."""
        return self

    def refused_weight(self, weight: float | None) -> str | None:
        """Why no question of this weight is answered, whatever its confidence; None where some may be."""
        return None

    def weight_note(self, weight: float | None) -> str:
        """What a question's weight has to do with its threshold; blank where it has nothing."""
        return ""

    def refusal(self, groups: Groups) -> str | None:
        """Why no question of these groups is answered, whatever its confidence; None where some may be."""
        return None

    def stand_in(self, groups: Groups) -> str:
        """That another threshold than that of their groups decides on such questions, in a sentence; blank if not."""
        return ""

    def answers(self, cases: Cases) -> NDArray[np.bool_]:
        """Which votes are answered."""
        answered = np.zeros(len(cases), dtype=np.bool_)
        for size, rows in cases.rows_by_size().items():
            answered[rows] = exceeds(cases.keys[rows], self.threshold_of(size))
        return answered

    def p_value(self, evidence: Strata, cases: Cases) -> Floats:
        """The conformal p-value of each vote among those that it is compared with."""
        return evidence.p_value(cases)

    def p_value_of(
        self, evidence: Strata, key: ThresholdKey, size: int, groups: Groups = (), weight: float | None = None
    ) -> float:
        """The same of one vote, without arrays."""
        return evidence.p_value_of(key, size)

    def answered(self, evidence: Evidence | Strata) -> tuple[int, int]:
        """How many right and wrong votes are answered, unlabelled ones as wrong; plain evidence knows no sizes."""
        if isinstance(evidence, Evidence):
            return evidence.above(self.threshold_key)
        counts = [part.above(self.threshold_of(size, groups)) for (groups, size), part in evidence.parts.items()]
        return sum(right for right, _ in counts), sum(wrong for _, wrong in counts)

    def answered_unlabelled(self, evidence: Evidence | Strata) -> int:
        """How many of the answered votes have no label."""
        if isinstance(evidence, Evidence):
            return evidence.unlabelled_above(self.threshold_key)
        parts = evidence.parts.items()
        return sum(part.unlabelled_above(self.threshold_of(size, groups)) for (groups, size), part in parts)

    def document(self) -> dict[str, Any]:
        """As plain values: what a policy file stores, and checks against its own evidence."""
        settled: dict[str, Any] = {"k": self.law.k} if isinstance(self.law, ErrorLaw) else {}
        settled["threshold"] = without_infinity(self.threshold_key)
        if self.by_size:
            settled["by_size"] = {str(size): without_infinity(key) for size, key in self.by_size.items()}
        return {"guarantee": self.guarantee.name, **self.guarantee.parameters(), **settled}


def settle_by_size(
    guarantee: Guarantee,
    evidence: Strata,
    unit: str = QUESTION,
    wrong: str = "",
    outlier_level: float | None = None,
) -> Rule:
    """The rule for pools of every size that calibration knows.

    A size that was seen too seldom to bear the promise by itself is not answered.
    """
    known = tuple(evidence.sizes)
    if isinstance(guarantee, OnStrata):
        rule = guarantee.settle_strata(evidence)
    elif evidence.by_chance or len(known) == 1:
        sizes = range(evidence.between[0], evidence.between[1] + 1) if evidence.by_chance else known
        rule = replace(guarantee.settle(evidence.pooled), sizes=sizes)
    else:
        rule = guarantee.settle_sizes(evidence)
    rule = replace(rule, unit=unit, wrong=wrong, unlabelled=evidence.n_unlabelled)
    return replace(rule, outlier_level=outlier_level)


@dataclass(frozen=True)
class RankGuarantee:
    """A guarantee whose threshold is the k-th largest wrong key, k depending on n alone."""

    alpha: float
    level: Fraction = field(init=False, repr=False)
    """Alpha, exactly."""
    choices: int = field(default=1, kw_only=True)
    """J: the way to vote was chosen from so many by the labels that calibrate; see `calibration.choices`."""
    name: ClassVar[str]

    def __post_init__(self) -> None:
        as_choices(self.choices)
        object.__setattr__(self, "level", exact_alpha(self.alpha))
        object.__setattr__(self, "alpha", float(self.level))

    @abstractmethod
    def rank(self, n: int) -> int:
        """k for n calibration votes; 0 means abstain always."""

    @abstractmethod
    def n_needed(self) -> int:
        """The smallest n from which it can answer at all."""

    @abstractmethod
    def promise(self, n: Count, unit: str = QUESTION) -> str:
        """The guarantee in one sentence, with its scope."""

    def reaches(self, k: int, n: int) -> bool:
        """Whether n votes have a rank of at least k."""
        return self.rank(n) >= k

    def n_of_rank(self, k: int, near: int) -> int:
        """The smallest n with a rank of at least k; `near` is where to look first."""
        return smallest_n(lambda n: self.reaches(k, n), near)

    def settle(self, evidence: Evidence) -> Rule:
        law = self.law(evidence.n)
        return Rule(self, evidence.n, law, evidence.threshold(law.k))

    def settle_sizes(self, evidence: Strata) -> Rule:
        """For each size the larger of two thresholds: that of all votes, and its own."""
        rule, needed = self.settle(evidence.pooled), self.n_needed()
        own = {size: self.settle(part).threshold_key for size, part in evidence.by_size.items() if part.n >= needed}
        larger = {size: key for size, key in own.items() if key > rule.threshold_key}
        return replace(rule, sizes=tuple(own), by_size=larger)

    def settle_many(self, wrong: NDArray[np.int32], highest: int) -> NDArray[Any]:
        """Thresholds of many calibration sets at once, as ranks.

        A row is one set: the ranks of its wrong votes, ascending, and 0 for the right ones. Votes whose rank exceeds
        the threshold are answered; `highest` is the largest rank there is.
        """
        splits, n = wrong.shape
        k = self.rank(n)
        if k == 0:
            return np.full(splits, highest)
        return wrong[:, n - k] if k <= n else np.zeros(splits, np.int32)

    def law(self, n: int) -> ErrorLaw:
        """The law of its errors after a calibration on n votes."""
        return ErrorLaw(self.rank(n), n, self.choices)

    def law_over_splits(self, evidence: Evidence, n_cal: int) -> SplitLaw:
        """The exact law of its errors over random splits of one file, `n_cal` of whose votes calibrate."""
        return SplitLaw.of(evidence, self.rank(n_cal), n_cal)

    def parameters(self) -> dict[str, Any]:
        return {"alpha": stored(self.level), **({} if self.choices == 1 else {"choices": self.choices})}


def new_one(n: Count, unit: str) -> str:
    """What a promise is about."""
    if unit == CLUSTER:
        return f"On one question of a new cluster, exchangeable with the {n} calibration clusters"
    return f"On a new question exchangeable with the {n} calibration questions"


def without_infinity(key: Iterable[float]) -> list[float | None]:
    """A key as JSON can hold it."""
    return [bound if math.isfinite(bound) else None for bound in key]


def stored(level: Fraction) -> float | str:
    """A level as a policy file holds it: the number that prints as it, or the fraction where there is none."""
    number = float(level)
    return number if Fraction(str(number)) == level else str(level)


def shown(level: Fraction) -> str:
    """A level as people read it, to the last digit: a promise of a rounded one would be another promise."""
    return str(stored(level))


def exact_alpha(value: Any, name: str = "alpha") -> Fraction:
    """A level as the decimal it prints as: Fraction(0.1) exceeds 1/10 and would cost a rank. Fractions stay exact."""
    try:
        level = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"{name} must be a number strictly between 0 and 1, got {value!r}") from None
    if not 0 < level < 1:
        raise InvalidValue(f"{name} must lie strictly between 0 and 1, got {value}")
    if level.denominator > _FINEST:
        raise InvalidValue(f"{name} must be a decimal or a fraction of moderate size, got {value}")
    return level
