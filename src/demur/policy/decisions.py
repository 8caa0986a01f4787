"""Decisions on whole tables, and the sentence that goes with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.calibration.guarantee import Rule
from demur.evidence.counts import Floats
from demur.records import Decision, Vote
from demur.voting.votes import Votes

NOT_PROMISED = (
    "This is not a promise about this one question, nor that this share of the given answers is right, "
    "nor about questions of another kind."
)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Answer or abstain, one row per vote. `decisions[i]` is one of them as a record."""

    votes: Votes
    rule: Rule
    answered: NDArray[np.bool_]
    p_value: Floats

    def __len__(self) -> int:
        return len(self.votes)

    def __getitem__(self, row: int) -> Decision:
        return decision_on(self.votes[row], self.rule, float(self.p_value[row]), answered=bool(self.answered[row]))

    def __iter__(self) -> Iterator[Decision]:
        return (self[row] for row in range(len(self)))


def decision_on(vote: Vote, rule: Rule, p_value: float, *, answered: bool) -> Decision:
    """The decision on one vote, as a record."""
    return Decision(
        answer=vote.answer if answered else None,
        confidence=vote.confidence,
        threshold=rule.threshold,
        p_value=p_value,
        alpha=rule.alpha,
        support=vote.support,
        shares={answer: round(tally / vote.total, 12) for answer, tally in vote.tally.items()},
        explanation=explain(vote, rule, p_value, answered=answered),
        threshold_key=rule.threshold_key,
        secondary=vote.secondary,
        id=vote.id,
    )


def explain(vote: Vote, rule: Rule, p_value: float, *, answered: bool) -> str:
    """What was decided, what is promised and what is not."""
    if not rule.feasible:
        return f"Abstained: {rule.too_few}; until then the policy abstains always."
    if vote.answer is None:
        return f"Abstained: no path has an answer. {rule.promise}"
    if vote.confidence == 0:
        return f"Abstained: the paths that have an answer have no weight. {rule.promise}"
    beyond = "above" if answered else "not above"
    head = "Answered" if answered else "Abstained"
    compared = f"confidence {vote.confidence:.4g} is {beyond} the threshold {rule.threshold:.4g}"
    if vote.secondary is not None and vote.confidence == rule.threshold:
        compared = (
            f"confidence {vote.confidence:.4g} ties with the threshold, and the secondary key {vote.secondary:.4g} "
            f"is {beyond} {rule.threshold_key[1]:.4g}"
        )
    aside = ""
    if answered != (p_value <= rule.alpha):
        aside = (
            f" The p-value {p_value:.4g} alone would say otherwise: it belongs to the marginal guarantee, "
            f"and this policy holds the {rule.guarantee.name.replace('_', '-')} one."
        )
    return f"{head}: {compared}.{aside} {rule.promise} {NOT_PROMISED}"
