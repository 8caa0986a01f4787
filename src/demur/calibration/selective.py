"""Selective error: with probability 1 − δ over calibration sets, of the answers given at most a share α are wrong.

P(wrong given answered) need not fall as the threshold rises, so no single order statistic keeps it. Here the boundary c
(`boundary`) says how many errors the j most confident calibration votes may hold, for every j at once, and the policy
answers as many as it allows. Whatever the law of confidences and errors, P(any threshold whose true rate exceeds α is
within the boundary) ≤ P(S_j ≤ c_j for any j) ≤ δ, S being a walk with chance α (docs/theory.md has the proof). So no
grid has to be fixed beforehand, nothing is lost where the first few votes hold an error, and ties do no harm. Votes
without a label count as wrong: that takes thresholds out of the boundary and brings none in, whichever they are. It
needs independent calibration questions, not merely exchangeable ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from demur.calibration.boundary import boundary, fewest_votes
from demur.calibration.choices import as_choices, whichever
from demur.calibration.guarantee import CLUSTER, QUESTION, Count, Rule, exact_alpha, shown, stored
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, above_all, answer_all, or_above
from demur.evidence.laws import AnswerLaw
from demur.evidence.strata import Strata

_CHUNK = 1 << 16
"""Levels that are looked at together: a million votes may have as many."""


@dataclass(frozen=True)
class Selective:
    """Of the answers given at most a share alpha is wrong, for all but a share delta of calibration sets."""

    alpha: float
    delta: float
    level: Fraction = field(init=False, repr=False)
    """Alpha, exactly."""
    delta_level: Fraction = field(init=False, repr=False)
    """Delta, exactly."""
    choices: int = field(default=1, kw_only=True)
    """J: the way to vote was chosen from so many by the labels that calibrate; each has its part of delta."""
    name: ClassVar[str] = "selective"

    def __post_init__(self) -> None:
        as_choices(self.choices)
        for name, exact in (("alpha", "level"), ("delta", "delta_level")):
            object.__setattr__(self, exact, exact_alpha(getattr(self, name), name))
            object.__setattr__(self, name, float(getattr(self, exact)))
        if self.alpha in (0.0, 1.0):
            raise InvalidValue(f"alpha is too close to {self.alpha:g} for a promise about answers, got {self.level}")

    def settle(self, evidence: Evidence) -> Rule:
        """The smallest threshold above which calibration has no more errors than the boundary allows."""
        width, law = evidence.levels.shape[1], AnswerLaw(self.alpha, answers=evidence.n >= self.n_needed())
        lowest = self._lowest_level(evidence)
        if lowest is None:
            return Rule(self, evidence.n, law, above_all(width))
        if lowest == 0 or evidence.levels[lowest - 1, 0] == 0:
            return Rule(self, evidence.n, law, answer_all(width))
        return Rule(self, evidence.n, law, tuple(evidence.levels[lowest - 1].tolist()))

    def _lowest_level(self, evidence: Evidence) -> int | None:
        """The lowest level with confidence from which on errors are within the boundary; None where there is none."""
        limit = boundary(evidence.n, self.alpha, self._delta_of_each)
        wrong, votes = or_above(evidence.not_right), or_above(evidence.right)
        votes += wrong
        for start in range(0, len(evidence.levels), _CHUNK):  # the first that passes is near the bottom, or nowhere
            part = slice(start, min(start + _CHUNK, len(evidence.levels)))
            within = (wrong[part] <= limit.allowed(votes[part])) & (evidence.levels[part, 0] > 0)
            if within.any():
                return start + int(within.argmax())
        return None

    def settle_sizes(self, evidence: Strata) -> Rule:
        """A threshold for each size, from the votes of that size alone, which share delta among them.

        A larger threshold need not have a smaller rate, so that of all votes together would not do for each size.
        """
        each = replace(self, delta=str(self.delta_level / len(evidence.by_size)))  # type: ignore[arg-type]
        needed = each.n_needed()
        own = {size: each.settle(part).threshold_key for size, part in evidence.by_size.items() if part.n >= needed}
        usual = own.get(evidence.usual_size, above_all(evidence.pooled.levels.shape[1]))
        law = AnswerLaw(self.alpha, answers=evidence.n >= self.n_needed())
        return Rule(self, evidence.n, law, usual, sizes=tuple(own), by_size=own, needs=needed)

    def n_needed(self) -> int:
        return fewest_votes(self.alpha, self._delta_of_each)

    @property
    def _delta_of_each(self) -> float:
        return float(self.delta_level / self.choices)

    def parameters(self) -> dict[str, Any]:
        chosen = {} if self.choices == 1 else {"choices": self.choices}
        return {"alpha": stored(self.level), "delta": stored(self.delta_level), **chosen}

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        new = "to one question of each new cluster" if unit == CLUSTER else "to new questions"
        return (
            f"For all but a share {shown(self.delta_level)} of calibration sets of {n} independent {unit}s, of the "
            f"answers given {new} like them at most a share {shown(self.level)} is wrong in the long run"
            f"{whichever(self.choices)}; which sets those are cannot be known."
        )
