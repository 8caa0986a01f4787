"""Errors of two kinds, where a judge labelled all votes and people checked a random part of them.

    seen      answered, and wrong as the judge says         α₁ = (1 − s)α    on all n votes
    missed    answered, and wrong though it says "right"    α₂ = sα          on the n_c checked ones
    s         the share of α that missed errors may use

A wrong answer is of one kind or the other, so a threshold for each, and the larger of the two in use, keep
P(answered and wrong) ≤ α₁ + α₂ = α; with δ, each keeps its part for all but δ/2 of calibration sets. A checked vote
that the judge calls wrong and people right counts as right, and a vote without a label as wrong: neither can lower a
threshold below that of full labels (theory, "Labels by a judge").

The share is fixed before anybody looks at labels. The checked votes alone, with their true labels and all of α, keep
the same promise and mostly answer more: `calibrate(…, checked=…)` does that unless this guarantee is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from scipy.special import betaincinv

from demur.calibration.guarantee import CLUSTER, QUESTION, RankGuarantee, Rule, exact_alpha, new_one, shown, stored
from demur.calibration.high_probability import HighProbability
from demur.calibration.marginal import Marginal
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.laws import TwoPartLaw
from demur.evidence.strata import Strata

_MISSED = Fraction(1, 10)
"""Of the errors that would be answered, how many a judge is expected to miss: what the share is chosen for."""
_FINE = 10**9


@dataclass(frozen=True)
class JudgedRule(Rule):
    """The larger of two thresholds: one for the errors that the judge sees, one for those it misses."""

    checked: int = 0
    """How many of the n votes people checked, or were to check."""

    @property
    def promise(self) -> str:
        unlabelled = f"{self.unlabelled} of the {self.n} have no label, and count as wrong." if self.unlabelled else ""
        assert isinstance(self.guarantee, JudgeChecked)
        parts = self.guarantee.promise_of(self.n, self.checked, self.unit), self.wrong, unlabelled
        return " ".join(part for part in parts if part)

    @property
    def too_few(self) -> str:
        assert isinstance(self.guarantee, JudgeChecked)
        needed = " and ".join(map(str, self.guarantee.needed()))
        return (
            f"{self.n} calibration {self.unit}s, {self.checked} of them checked, are too few for alpha = "
            f"{self.alpha:g} ({self.guarantee.name}), which needs {needed}"
        )


@dataclass(frozen=True)
class JudgeChecked:
    """Confident-error rate at most alpha by the people, where a judge labelled all votes and they a random part."""

    alpha: float
    share: Any = None
    """s, as a decimal or fraction; None: chosen by n_c and alpha alone when votes are there (`settled`)."""
    delta: float | None = None
    """None: in expectation over calibration sets."""
    level: Fraction = field(init=False, repr=False)
    """Alpha, exactly."""
    delta_level: Fraction | None = field(init=False, repr=False, default=None)
    """Delta, exactly."""
    name: ClassVar[str] = "judge_checked"

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", exact_alpha(self.alpha))
        object.__setattr__(self, "alpha", float(self.level))
        if self.share is not None:
            object.__setattr__(self, "share", exact_alpha(self.share, "share"))
        if self.delta is not None:
            object.__setattr__(self, "delta_level", exact_alpha(self.delta, "delta"))
            object.__setattr__(self, "delta", float(self.delta_level))  # type: ignore[arg-type]

    @property
    def missed_level(self) -> Fraction:
        """α₂, exactly."""
        assert self.share is not None
        return self.share * self.level  # type: ignore[no-any-return]

    def parts(self) -> tuple[RankGuarantee, RankGuarantee]:
        """The guarantees of seen and of missed errors; those of no share have all of alpha."""
        missed = self.level if self.share is None else self.missed_level
        levels: tuple[Any, Any] = (self.level if self.share is None else self.level - missed, missed)
        if self.delta_level is None:
            return Marginal(levels[0]), Marginal(levels[1])
        half: Any = self.delta_level / 2
        return HighProbability(levels[0], half), HighProbability(levels[1], half)

    def settled(self, checked: int) -> JudgeChecked:
        """With a share: the one given, or else one for so many checked votes.

        It is that of the rank ⌈m + √m⌉ among checked votes, m being the missed errors to be expected there if the judge
        misses one in ten, but at most half of alpha where that leaves a rank.
        """
        if self.share is not None:
            return self
        allowed = self.parts()[1].rank(checked)
        expected = float(_MISSED * (checked + 1) * self.level)
        rank = max(1, min(math.ceil(expected + math.sqrt(expected)), allowed // 2))
        if self.delta is None:
            missed = Fraction(rank, checked + 1)
        else:
            # Clopper and Pearson's limit is the level at which δ/2 allows this rank, rounded up.
            limit = float(betaincinv(rank, checked + 1 - rank, 1 - self.delta / 2)) if rank <= checked else 1.0
            missed = Fraction(math.ceil(limit * _FINE) + 1, _FINE)
        share = missed / self.level if missed < self.level else Fraction(1, 2)  # where nothing can be answered anyway
        return replace(self, alpha=self.level, share=share, delta=self.delta_level)  # type: ignore[arg-type]

    def settle(self, evidence: Evidence) -> JudgedRule:
        if evidence.missed is None:
            raise InvalidValue(
                f"the guarantee {self.name} needs labels by a judge of which people checked a random part",
                "give what they found as {checked}",
            )
        settled, checked = self.settled(evidence.missed.n), evidence.missed.n
        seen, missed = (
            part.settle(votes) for part, votes in zip(settled.parts(), (evidence, evidence.missed), strict=True)
        )
        law = TwoPartLaw(seen.law, missed.law)  # type: ignore[arg-type]
        return JudgedRule(settled, evidence.n, law, max(seen.threshold_key, missed.threshold_key), checked=checked)

    def settle_sizes(self, evidence: Strata) -> Rule:
        raise InvalidValue(
            f"the guarantee {self.name} has one threshold for pools of all sizes, and these have {len(evidence.sizes)}",
            "calibrate on the checked votes alone, without it, or say {sizes_by_chance=True} if sizes vary by chance",
        )

    def needed(self) -> tuple[str, str]:
        """How many votes each part needs, in words."""
        seen, missed = (part.n_needed() for part in self.parts())
        return f"{seen} in all", f"{missed} of them checked"

    def n_needed(self) -> int:
        """The smallest n from which it can answer at all, if all are checked."""
        return max(part.n_needed() for part in self.parts())

    def parameters(self) -> dict[str, Any]:
        known: dict[str, Any] = {"alpha": stored(self.level)}
        known |= {} if self.share is None else {"share": stored(self.share)}
        return known if self.delta_level is None else {**known, "delta": stored(self.delta_level)}

    def promise(self, n: int | str, unit: str = QUESTION) -> str:
        return self.promise_of(n, None, unit)

    def promise_of(self, n: int | str, checked: int | None, unit: str) -> str:
        """The guarantee in one sentence, with its scope."""
        counted = "a part" if checked is None else str(checked)
        part = "if those were drawn at random"
        told = f"A judge labelled the {n} calibration {unit}s, and people checked {counted} of them."
        if self.delta_level is None:
            promised = f"the probability of answering it wrongly is at most {shown(self.level)}"
            return f"{told} {new_one(n, unit)}, {promised}, averaged over calibration sets, {part}."
        new = "on new questions like them" if unit == QUESTION else f"on one question of each new {CLUSTER} like them"
        return (
            f"{told} For all but a share {shown(self.delta_level)} of calibration sets of independent {unit}s, the "
            f"rate of wrong answers {new} is at most {shown(self.level)}, {part}; which sets those are cannot be known."
        )
