"""Guarantees on labels by a judge, where people checked a random part of them.

    seen      answered, and wrong as the judge says         counted on all n votes
    missed    answered, and wrong though it says "right"    counted on the n_c checked ones

A wrong answer is of one kind or the other. A checked vote that the judge calls wrong and people right counts as right,
and a vote without a label as wrong: neither can lower a threshold below that of full labels (theory, "Labels by a
judge"). The promise is about what people call wrong.

The checked votes alone, with their true labels and all of alpha, keep the same promises: `calibrate(…, checked=…)` does
that unless one of these is asked for. `JudgeHighProbability` answers more where the judge is good; `JudgeMarginal`
hardly ever does.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from demur.calibration.guarantee import CLUSTER, QUESTION, RankGuarantee, Rule, exact_alpha, new_one, shown, stored
from demur.calibration.high_probability import HighProbability
from demur.calibration.marginal import Marginal
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, answer_all, or_above
from demur.evidence.laws import TwoPartLaw
from demur.evidence.region import RegionLaw, region
from demur.evidence.strata import Strata

_MISSED = Fraction(1, 10)
"""Of the errors that would be answered, how many a judge is expected to miss: what the share is chosen for."""


@dataclass(frozen=True)
class JudgedRule(Rule):
    """A threshold from errors that a judge saw and errors that it missed."""

    checked: int = 0
    """How many of the n votes people checked, or were to check."""

    @cached_property
    def promise(self) -> str:
        unlabelled = f"{self.unlabelled} of the {self.n} have no label, and count as wrong." if self.unlabelled else ""
        told = (
            f"A judge labelled the {self.n} calibration {self.unit}s, and people checked {self.checked} of them, which "
            "must have been drawn at random."
        )
        parts = told, self.guarantee.promise(self.n, self.unit), self.wrong, unlabelled, self.outlier_note
        return " ".join(part for part in parts if part)

    @property
    def too_few(self) -> str:
        assert isinstance(self.guarantee, JudgedGuarantee)
        return (
            f"{self.n} calibration {self.unit}s, {self.checked} of them checked, are too few for alpha = "
            f"{self.alpha:g} ({self.guarantee.name}), which needs {self.guarantee.needed()}"
        )


@dataclass(frozen=True)
class JudgedGuarantee:
    """A guarantee that takes labels by a judge and what people found of them."""

    alpha: float
    level: Fraction = field(init=False, repr=False)
    """Alpha, exactly."""
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", exact_alpha(self.alpha))
        object.__setattr__(self, "alpha", float(self.level))

    def settle(self, evidence: Evidence) -> Rule:
        if evidence.missed is None:
            raise InvalidValue(
                f"the guarantee {self.name} needs labels by a judge of which people checked a random part",
                "give what they found as {checked}",
            )
        return self.settle_judged(evidence, evidence.missed)

    def settle_sizes(self, evidence: Strata) -> Rule:
        raise InvalidValue(
            f"the guarantee {self.name} has one threshold for pools of all sizes, and these have {len(evidence.sizes)}",
            "calibrate on the checked votes alone, without it, or say {sizes_by_chance=True} if sizes vary by chance",
        )

    @abstractmethod
    def settle_judged(self, evidence: Evidence, missed: Evidence) -> JudgedRule:
        """The rule, of labels by a judge and the errors it missed among checked votes."""

    @property
    @abstractmethod
    def plain(self) -> RankGuarantee:
        """The same promise by labels that are what they say."""

    @abstractmethod
    def needed(self) -> str:
        """How many votes it needs to answer at all, in words."""

    @abstractmethod
    def n_needed(self) -> int:
        """The smallest n from which it can answer at all, if all are checked."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]: ...

    @abstractmethod
    def promise(self, n: int | str, unit: str = QUESTION) -> str: ...


@dataclass(frozen=True)
class JudgeMarginal(JudgedGuarantee):
    """Confident-error rate at most alpha in expectation: a share s of alpha for missed errors, the rest for seen ones.

    Each kind has its threshold, and the larger of the two is in use: P(answered and wrong) ≤ (1 − s)α + sα.
    """

    share: Any = None
    """s, a decimal or fraction, fixed before anybody looks at labels; None: by n_c and alpha alone (`settled`)."""
    name: ClassVar[str] = "judge_marginal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None:
            object.__setattr__(self, "share", exact_alpha(self.share, "share"))

    def parts(self) -> tuple[Marginal, Marginal]:
        """The guarantees of seen and of missed errors."""
        if self.share is None:
            raise InvalidValue(
                "the share of alpha for missed errors is chosen by the number of checked votes", "settle"
            )
        missed = self.share * self.level
        return Marginal(self.level - missed), Marginal(missed)

    def settled(self, checked: int) -> JudgeMarginal:
        """With a share: the one given, or else one for so many checked votes.

        It pays for the rank ⌈m + √m⌉ among checked votes, to the last bit, m being the missed errors to be expected
        there if the judge misses one in ten, but for no more than half of what alpha would pay for, where that is a
        rank.
        """
        if self.share is not None:
            return self
        allowed, expected = self.plain.rank(checked), float(_MISSED * (checked + 1) * self.level)
        rank = max(1, min(math.ceil(expected + math.sqrt(expected)), allowed // 2))
        share = Fraction(rank, checked + 1) / self.level
        # Where not even one rank can be paid for nothing is answered, whatever the share.
        return replace(self, alpha=self.level, share=share if share < 1 else Fraction(1, 2))  # type: ignore[arg-type]

    def settle_judged(self, evidence: Evidence, missed: Evidence) -> JudgedRule:
        settled = self.settled(missed.n)
        first, second = settled.parts()
        seen, other = first.settle(evidence), second.settle(missed)
        law = TwoPartLaw(first.law(evidence.n), second.law(missed.n))
        threshold = max(seen.threshold_key, other.threshold_key)
        return JudgedRule(settled, evidence.n, law, threshold, checked=missed.n)

    @property
    def plain(self) -> Marginal:
        return Marginal(self.level)  # type: ignore[arg-type]

    def needed(self) -> str:
        seen, missed = (part.n_needed() for part in self.parts())
        return f"{seen} in all and {missed} of them checked"

    def n_needed(self) -> int:
        if self.share is None:
            return self.plain.n_needed()
        return max(part.n_needed() for part in self.parts())

    def parameters(self) -> dict[str, Any]:
        return {"alpha": stored(self.level)} | ({} if self.share is None else {"share": stored(self.share)})

    def promise(self, n: int | str, unit: str = QUESTION) -> str:
        promised = f"the probability of answering it wrongly is at most {shown(self.level)}"
        return f"{new_one(n, unit)}, {promised}, averaged over calibration sets."


@dataclass(frozen=True)
class JudgeHighProbability(JudgedGuarantee):
    """Confident-error rate at most alpha, for all but a share delta of calibration sets: see `evidence.region`."""

    delta: float
    delta_level: Fraction = field(init=False, repr=False)
    """Delta, exactly."""
    name: ClassVar[str] = "judge_high_probability"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta_level", exact_alpha(self.delta, "delta"))
        object.__setattr__(self, "delta", float(self.delta_level))

    def settle_judged(self, evidence: Evidence, missed: Evidence) -> JudgedRule:
        """Answer down to where errors of both kinds leave the region."""
        allowed = region(evidence.n, missed.n, self.alpha, self.delta)
        seen, unseen = or_above(evidence.not_right)[:-1], missed.wrong_at_least(evidence.levels)
        beyond = ~allowed.allows(seen, unseen)
        width = evidence.levels.shape[1]
        law = RegionLaw(evidence.n, missed.n, self.alpha, self.delta)
        threshold = answer_all(width)
        if beyond.any():
            highest = len(beyond) - 1 - int(beyond[::-1].argmax())
            if evidence.levels[highest, 0] > 0:  # what has no confidence is never answered
                threshold = tuple(evidence.levels[highest].tolist())
        return JudgedRule(self, evidence.n, law, threshold, checked=missed.n)

    @property
    def plain(self) -> HighProbability:
        return HighProbability(self.level, self.delta_level)  # type: ignore[arg-type]

    def needed(self) -> str:
        return f"{self.n_needed()} of them checked"

    def n_needed(self) -> int:
        n = self.plain.n_needed()
        while not len(region(n, n, self.alpha, self.delta).most):
            n += 1
        return n

    def parameters(self) -> dict[str, Any]:
        return {"alpha": stored(self.level), "delta": stored(self.delta_level)}

    def promise(self, n: int | str, unit: str = QUESTION) -> str:
        new = "on new questions like them" if unit == QUESTION else f"on one question of each new {CLUSTER} like them"
        return (
            f"For all but a share {shown(self.delta_level)} of calibration sets of {n} independent {unit}s, the rate "
            f"of wrong answers {new} is at most {shown(self.level)}; which sets those are cannot be known."
        )
