"""Decisions on whole tables, and the sentence that goes with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.calibration import OperatingPoint
from demur.exact_sums import Floats
from demur.records import Decision, Vote
from demur.voting import Votes

NOT_PROMISED = (
    "This is not a promise about this one question, nor that this share of the given answers is right, "
    "nor about questions of another kind."
)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Answer or abstain, one row per vote. `decisions[i]` is one of them as a record."""

    votes: Votes
    point: OperatingPoint
    answered: NDArray[np.bool_]
    p_value: Floats

    def __len__(self) -> int:
        return len(self.votes)

    def __getitem__(self, row: int) -> Decision:
        vote = self.votes[row]
        answered, p_value = bool(self.answered[row]), float(self.p_value[row])
        return Decision(
            answer=vote.answer if answered else None,
            confidence=vote.confidence,
            threshold=self.point.threshold,
            p_value=p_value,
            alpha=self.point.alpha,
            support=vote.support,
            shares={answer: round(tally / vote.total, 12) for answer, tally in vote.tally.items()},
            explanation=explain(vote, self.point, p_value, answered=answered),
            threshold_key=self.point.threshold_key,
            secondary=vote.secondary,
            id=vote.id,
        )

    def __iter__(self) -> Iterator[Decision]:
        return (self[row] for row in range(len(self)))


def explain(vote: Vote, point: OperatingPoint, p_value: float, *, answered: bool) -> str:
    """What was decided, what is promised and what is not."""
    guarantee = point.guarantee
    if not point.feasible:
        return (
            f"Abstained: {point.n} calibration questions are too few for alpha = {point.alpha:g}, which needs "
            f"{guarantee.n_needed()}; until then the policy abstains always."
        )
    if vote.answer is None:
        return f"Abstained: no path has an answer. {guarantee.promise(point.n)}"
    if vote.confidence == 0:
        return f"Abstained: the paths that have an answer have no weight. {guarantee.promise(point.n)}"
    beyond = "above" if answered else "not above"
    head = "Answered" if answered else "Abstained"
    compared = f"confidence {vote.confidence:.4g} is {beyond} the threshold {point.threshold:.4g}"
    if vote.secondary is not None and vote.confidence == point.threshold:
        compared = (
            f"confidence {vote.confidence:.4g} ties with the threshold, and the secondary key {vote.secondary:.4g} "
            f"is {beyond} {point.threshold_key[1]:.4g}"
        )
    aside = ""
    if answered != (p_value <= point.alpha):
        aside = (
            f" The p-value {p_value:.4g} alone would say otherwise: it belongs to the marginal guarantee, "
            f"and this policy holds the {guarantee.name.replace('_', '-')} one."
        )
    return f"{head}: {compared}.{aside} {guarantee.promise(point.n)} {NOT_PROMISED}"
