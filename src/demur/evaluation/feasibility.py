"""Whether an alpha can be kept with answers left, seen from labelled votes, and what to change where it cannot."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from demur.evidence.counts import Evidence
from demur.evidence.frontier import auroc
from demur.evidence.predictor import Interval
from demur.evidence.yield_law import YieldLaw

_MUCH_UNSPENT = 0.1
_LITTLE = 0.5


@dataclass(frozen=True)
class Feasibility:
    """What one alpha allows, however many labels there are."""

    alpha: float
    feasible: bool
    """False where no threshold can answer, because too many of the most confident votes are wrong alike."""
    vote_accuracy: Interval
    """p_v, with its exact interval for 95 %."""
    unanimous_wrong: Interval
    """P(ν = 1, wrong): unanimous, and wrong. Confidence alone cannot tell these from right ones."""
    answered_at_most: float
    """min(1, p_v + alpha): no confidence, however good, answers more."""
    answered: float
    """The yield that this confidence would have, if labels had no end."""
    confident_error: float
    """The share of wrong answers then: less than alpha where votes tie, or where all are answered."""
    auroc: float
    """P(a right vote is more confident than a wrong one), ties counted half."""
    changes: tuple[str, ...]
    """What would allow more."""

    @classmethod
    def of(cls, evidence: Evidence, law: YieldLaw, alpha: float) -> Feasibility:
        n, top, most = evidence.n, evidence.by_confidence, min(1.0, evidence.vote_accuracy + alpha)
        unanimous = int(top.wrong[-1]) if top.levels[-1, 0] == 1 else 0
        error, answered = law.in_the_limit(alpha)
        return cls(
            alpha,
            answered > 0,
            Interval.exact(evidence.n_right, n),
            Interval.exact(unanimous, n),
            most,
            answered,
            error,
            auroc(evidence),
            tuple(_changes(alpha, law, error, answered, most)),
        )

    @property
    def sentence(self) -> str:
        """The finding in words."""
        right, wrong = self.vote_accuracy.estimate, self.unanimous_wrong.estimate
        known = f"alpha = {self.alpha:g}: {right:.1%} of the votes are right, {wrong:.1%} unanimous and wrong"
        if not self.feasible:
            return f"{known}; too many of the most confident votes are wrong alike, and no threshold can answer."
        bound = f"at most {self.answered_at_most:.1%} could be answered"
        return f"{known}; {bound}, and by this confidence {self.answered:.1%} if labels had no end."

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "changes": list(self.changes), "sentence": self.sentence}


def _changes(alpha: float, law: YieldLaw, error: float, answered: float, most: float) -> list[str]:
    if answered == 0:
        return [
            "break ties, by the mean score of the winning paths or by jitter",
            "vote by a score, or by another one, which orders votes that are unanimous",
            "sample more paths, so that fewer votes are unanimous",
            f"allow alpha above {law.tied_at_the_top:.3g}, the share of votes that tie at the top and are wrong",
        ]
    if law.wrong <= alpha:
        return [f"ask for less: only {law.wrong:.1%} can be answered wrongly at all, so that a smaller alpha is kept"]
    changes = []
    if alpha - error > _MUCH_UNSPENT * alpha:
        changes.append(f"break ties, which leave {alpha - error:.2g} of alpha unspent")
    if answered < _LITTLE * most:
        changes.append(
            "a better score or more paths, to tell right votes from wrong ones: more labels alone do not help; or a "
            "larger alpha"
        )
    return changes
