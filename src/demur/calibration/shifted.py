"""Marginal control where questions in use are others than in calibration: weighted conformal risk control.

    ω(x)    how much more often x occurs in use than in calibration, up to a factor that all questions share

Calibration errors count by weight, and the new question pays for itself: it is answered where the errors at least as
confident, and it, weigh at most α of all (`evidence.weighted`). With weights that are so, P(answers and is wrong) ≤ α
on questions as they occur in use. Fitted or cut weights keep that approximately, and the promise says so. What is
weighted is which questions are asked: a model that answers the same question otherwise than before is not covered.

Ranks and binomial laws, which other guarantees rest on, mean nothing under weights, so that only `Marginal` is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from demur.calibration.guarantee import CLUSTER, QUESTION, Count, Guarantee, Rule, shown, stored
from demur.calibration.marginal import Marginal
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats, ThresholdKey, above_all
from demur.evidence.laws import ErrorLaw
from demur.evidence.strata import Strata
from demur.evidence.weighted import WeightedErrors
from demur.questions.density_ratio import DensityRatio
from demur.records import Groups
from demur.voting.cases import Cases

GIVEN, FITTED = "given", "fitted"
"""Where weights come from: the caller knows them, or a classifier estimated them."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Shifted:
    """A marginal guarantee about questions as they occur in use, which weights describe.

    `weights` is a fitted `DensityRatio`, or names the field of problems that holds weights which are known.
    """

    guarantee: Guarantee
    weights: DensityRatio | str = "weight"
    name: ClassVar[str] = "shifted"

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Marginal):
            kind = getattr(self.guarantee, "name", repr(self.guarantee)[:60])
            raise InvalidValue(
                f"a {kind} guarantee cannot be weighted: it rests on ranks or on a binomial law of errors, and under "
                "weights there is neither; only Marginal can",
                "leave the shift out, or give Marginal(alpha)",
            )
        if self.guarantee.choices > 1:
            raise InvalidValue(
                f"the rank that pays for a choice among {self.guarantee.choices} ways to vote means nothing under "
                "weights",
                "choose the way to vote on other problems, or leave the shift out",
            )
        if not isinstance(self.weights, DensityRatio) and not (isinstance(self.weights, str) and self.weights.strip()):
            raise InvalidValue(
                "weights must be a ratio from fit_shift, or the name of a field that holds them, got "
                f"{self.weights!r:.60}"
            )

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def level(self) -> Fraction:
        """Alpha, exactly."""
        return self.guarantee.level

    @property
    def ratio(self) -> DensityRatio | None:
        """The fitted ratio; None where weights are given."""
        return self.weights if isinstance(self.weights, DensityRatio) else None

    def settle(self, evidence: Evidence) -> Rule:
        return replace(self.settle_strata(Strata({((), 0): evidence})), sizes=None)

    def settle_sizes(self, evidence: Strata) -> Rule:
        return self.settle_strata(evidence)

    def settle_strata(self, evidence: Strata) -> ShiftedRule:
        """Where pools differ in size, a vote has to pass among all votes and among those of its size, as elsewhere."""
        pooled, sizes = evidence.pooled, tuple(evidence.sizes)
        if not pooled.weighted:
            raise InvalidValue(
                "a promise under shift needs a weight per question, and these votes have none",
                "name their field as {shift_weights}, fit them and give {shift}, or vote with the importance of each",
            )
        if pooled.total_weight == 0:
            raise InvalidValue("weights must not all be 0: then no calibration question counts")
        needed, errors, own = self.n_needed(), WeightedErrors.of(pooled), {}
        known: Any = range(evidence.between[0], evidence.between[1] + 1) if evidence.by_chance else sizes
        if not evidence.by_chance and len(sizes) > 1:
            own = {size: WeightedErrors.of(part) for size, part in evidence.by_size.items()}
            known = tuple(size for size, votes in evidence.sizes.items() if votes >= needed)
        usual = pooled.total_weight / pooled.n
        rule = ShiftedRule(
            self, pooled.n, ErrorLaw(0, pooled.n), errors.threshold(usual, self.level), known,
            errors=errors, own=own, usual_weight=usual, effective=pooled.effective_size,
        )  # fmt: skip
        return replace(rule, law=self._law(rule, evidence)) if pooled.n >= needed else rule

    def _law(self, rule: ShiftedRule, evidence: Strata) -> ErrorLaw:
        """The law that errors are audited by: that of as many questions without weights as these are worth.

        No exact law is known. The number is the smaller of (Σω)²/Σω² and of that by which the weighted error rate in
        calibration varies, which counts where errors weigh more than other votes; and the rank is rounded up, so that
        the mean is no smaller than alpha.
        """
        alpha, pooled = self.alpha, evidence.pooled
        right, wrong, squared = (
            np.zeros(0) if column is None else column
            for column in (pooled.right_weight, pooled.not_right_weight, pooled.squared_weight)
        )
        over = np.asarray(rule.errors.from_here[:-1] <= alpha * pooled.total_weight)
        share = np.divide(wrong, right + wrong, out=np.zeros(len(wrong)), where=right + wrong > 0)
        varied = float(squared @ np.where(over, share * (1 - alpha) ** 2 + (1 - share) * alpha**2, alpha**2))
        by_errors = alpha * (1 - alpha) * pooled.total_weight**2 / varied if varied else math.inf
        worth = max(1, min(pooled.n, int(min(pooled.effective_size, by_errors))))
        return ErrorLaw(min(worth + 1, math.ceil((worth + 1) * self.level)), worth)

    def n_needed(self) -> int:
        """The n from which a question of mean weight can be answered."""
        return self.guarantee.n_needed()

    def parameters(self) -> dict[str, Any]:
        told = {"weights": FITTED} if self.ratio is not None else {"weights": GIVEN, "field": self.weights}
        return {"alpha": stored(self.level), **told}

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        new = "On one question of a new cluster" if unit == CLUSTER else "On a new question"
        promised = (
            f"the probability of answering it wrongly is %sat most {shown(self.level)}, averaged over calibration"
        )
        unsaid = (
            "That is about which questions are asked: nothing is promised once the same question is answered "
            "otherwise, by another model or prompt, or once another answer is right."
        )
        if self.ratio is None:
            so = (
                f"where each occurs as much more often in use than among the {n} calibration {unit}s as its weight says"
            )
            return f"{new}, {so}, {promised % ''} sets. {unsaid}"
        so = "of the traffic that the weights were fitted to"
        fitted = f"sets of {n} {unit}s: the weights are estimates, and cut at {self.ratio.clip:g}"
        return f"{new} {so}, {promised % 'approximately '} {fitted}. {unsaid}"


@dataclass(frozen=True)
class ShiftedRule(Rule):
    """Answers by key and weight: the heavier a question, the higher its threshold.

    `threshold_key` is that of a question of mean weight, for display.
    """

    errors: WeightedErrors = field(kw_only=True, repr=False)
    own: Mapping[int, WeightedErrors] = field(kw_only=True, repr=False)
    """By size, where pools differ in size."""
    usual_weight: float = field(kw_only=True)
    """The mean weight of calibration."""
    effective: float = field(kw_only=True)
    """ESS: about so many questions without weights would say as much."""

    @property
    def law_note(self) -> str:
        weighed = (
            "No exact law is known under weights: errors are compared with those of a calibration on "
            f"{self.law.n} questions without weights, as many as these are worth."  # type: ignore[union-attr]
        )
        return f"{weighed} {super().law_note}".rstrip()

    def threshold_of(self, size: int, groups: Groups = (), weight: float | None = None) -> ThresholdKey:
        if not self.takes(size):
            return above_all(len(self.threshold_key))
        heavy, level = self.usual_weight if weight is None else weight, self.guarantee.level
        return max(part.threshold(heavy, level) for part in self._among(size))

    def refused_weight(self, weight: float | None) -> str | None:
        if weight is None or self.errors.threshold(weight, self.guarantee.level) < above_all(len(self.threshold_key)):
            return None
        if weight <= 0:
            return "the weight of this question is 0 or not known, and such questions are said not to occur"
        return (
            f"its weight {weight:.4g} alone exceeds alpha = {self.alpha:g} of what it and all calibration questions "
            "weigh: questions like it are too rare among them"
        )

    def weight_note(self, weight: float | None) -> str:
        if weight is None:
            return ""
        return f" The threshold is that of its weight {weight:.4g}, where the mean weight is {self.usual_weight:.4g}."

    def answers(self, cases: Cases) -> Flags:
        weights, answered = self.weights_of(cases), np.zeros(len(cases), dtype=np.bool_)
        for size, rows in cases.rows_by_size().items():
            if self.takes(size):
                passed = [
                    part.answers(cases.keys[rows], weights[rows], self.guarantee.level) for part in self._among(size)
                ]
                answered[rows] = np.logical_and.reduce(passed)
        return answered

    def p_value(self, evidence: Strata, cases: Cases) -> Floats:
        weights, p_value = self.weights_of(cases), np.ones(len(cases))
        for size, rows in cases.rows_by_size().items():
            if evidence.knows(size):
                among = [part.p_value(cases.keys[rows], weights[rows]) for part in self._among(size)]
                p_value[rows] = np.maximum.reduce(among)
        return p_value

    def p_value_of(
        self, evidence: Strata, key: ThresholdKey, size: int, groups: Groups = (), weight: float | None = None
    ) -> float:
        one = Cases(
            np.array([key]), np.array([size]), None, np.array([self.usual_weight if weight is None else weight])
        )
        return float(self.p_value(evidence, one)[0])

    def answered(self, evidence: Evidence | Strata) -> tuple[int, int]:
        """How many votes of calibration are answered; those of one level are taken to weigh alike."""
        parts = self._answered_levels(evidence)
        return (
            sum(int(right @ part.right) for part, right, _ in parts),
            sum(int(wrong @ part.not_right) for part, _, wrong in parts),
        )

    def answered_unlabelled(self, evidence: Evidence | Strata) -> int:
        parts = self._answered_levels(evidence)
        return sum(int(wrong @ part.unlabelled) for part, _, wrong in parts if part.unlabelled is not None)

    def answered_weight(self, evidence: Evidence | Strata) -> tuple[float, float]:
        """What the right and the other votes that are answered weigh, as a share of all: what to expect in use."""
        parts = self._answered_levels(evidence)
        total = sum(part.total_weight for part, _, _ in parts)
        right = sum(float(over @ part.right_weight) for part, over, _ in parts if part.right_weight is not None)
        wrong = sum(float(over @ part.not_right_weight) for part, _, over in parts if part.not_right_weight is not None)
        return right / total, wrong / total

    def _answered_levels(self, evidence: Evidence | Strata) -> list[tuple[Evidence, Flags, Flags]]:
        """For each size, whether the right and the other votes of each level are answered, by their mean weight."""
        apart = {0: evidence} if isinstance(evidence, Evidence) else evidence.by_size
        return [
            (part, self._passes(size, part, "right"), self._passes(size, part, "not_right"))
            for size, part in apart.items()
        ]

    def _passes(self, size: int, part: Evidence, which: str) -> Flags:
        votes, weights = getattr(part, which), getattr(part, f"{which}_weight")
        mean = np.divide(weights, votes, out=np.zeros(len(votes)), where=votes > 0)
        return self.answers(Cases(part.levels, np.full(len(votes), size, dtype=np.intp), None, mean))

    def weights_of(self, cases: Cases) -> Floats:
        """The weights of new questions; an error where they have none."""
        if cases.weights is None:
            raise InvalidValue(
                "this policy promises about questions by their weights, and these votes have none",
                "vote with the importance of each question, as the policy finds it",
            )
        return cases.weights

    def _among(self, size: int) -> list[WeightedErrors]:
        """What a pool of this size is compared with."""
        return [self.errors, self.own[size]] if size in self.own else [self.errors]
