"""Answers to a whole batch at once, few of which are wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration import Level, exact_alpha
from demur.calibration.batch import BatchSelection, cut_off
from demur.calibration.choices import choices_of
from demur.calibration.shifted import ShiftedRule
from demur.errors import CalibrationLeak, InvalidValue
from demur.policy.decisions import Decisions
from demur.policy.explanations import UNLIKE, is_gated, without_vote
from demur.policy.outliers import refuse_batch
from demur.pools.fitted_questions import refuse_fitted_tests
from demur.pools.voted_pools import VotedPools
from demur.records import Decision, Vote
from demur.voting.votes import Votes

if TYPE_CHECKING:
    from demur.policy.policy import Policy

_SHARED = "this problem shares a cluster or question with another of the batch, and one of each counts"

_NO_SETS = (
    "a batch gives no answer sets: they are calibrated on what the policy abstains from question by question, and a "
    "batch abstains from others"
)


@dataclass(frozen=True, eq=False)
class Selection(Decisions):
    """Which votes of a batch are answered; the threshold is that of this batch, and no other's."""

    counted: NDArray[np.bool_]
    """Votes that were selected from: one of each cluster or question. Others are not answered."""
    without_sets: bool = False
    """Whether the policy has answer sets, which do not go with a batch."""

    @property
    def fdr(self) -> float:
        """The expected share of wrong ones among the answers that is not exceeded."""
        return self.rule.alpha

    @property
    def cut_off(self) -> float:
        """The largest p-value that is answered; 0 where nothing is."""
        return float(self._guarantee.cut_off)

    @property
    def promise(self) -> str:
        return self.rule.promise

    def __repr__(self) -> str:
        return f"Selection({len(self):,} pools, {int(self.answered.sum()):,} answered at fdr {self.fdr:g})"

    def columns(self) -> dict[str, Any]:
        return super().columns() | ({} if self.counted.all() else {"counted": self.counted})

    def _on(self, row: int, vote: Vote) -> Decision:
        without = f" No answer set: {_NO_SETS}." if self.without_sets and not self.answered[row] else ""
        return replace(super()._on(row, vote), explanation=f"{self._why(row)} {self.promise}{without}")

    def notes(self) -> list[str]:
        again, notes = int((~self.counted).sum()), super().notes()
        if self._too_few:
            notes.append(f"{self._too_few}: nothing is answered")
        if again:
            notes.append(f"{again} problems share a cluster or question with another of the batch: not answered")
        if self.without_sets:
            notes.append(_NO_SETS)
        return notes

    @property
    def _too_few(self) -> str:
        """That no batch could be answered at this level with so few calibration votes; blank where one could."""
        n, needed = self.rule.n, self.rule.guarantee.n_needed()
        if n >= needed:
            return ""
        return f"{n} calibration {self.rule.unit}s are too few for an fdr of {self.fdr:g}, which needs {needed}"

    @property
    def _guarantee(self) -> BatchSelection:
        assert isinstance(self.rule.guarantee, BatchSelection)
        return self.rule.guarantee

    def _why(self, row: int) -> str:
        """What decided on this vote."""
        vote, p_value = self.votes[row], f"{self.p_value[row]:.4g}"
        if (nothing := without_vote(vote)) is not None:
            return f"Abstained: {nothing}."
        if is_gated(vote, self.votes.recipe.names):
            return f"Abstained: {UNLIKE}."
        if not self.counted[row]:
            return f"Abstained: {_SHARED}."
        if self._too_few:
            return f"Abstained: {self._too_few}."
        if self.answered[row]:
            return f"Answered: its p-value {p_value} is at most {self.cut_off:.4g}, the cut-off of this batch."
        if self.cut_off:
            return f"Abstained: its p-value {p_value} is above {self.cut_off:.4g}, the cut-off of this batch."
        return f"Abstained: its p-value is {p_value}, and no vote of this batch has one that is small enough."


def select(policy: Policy, votes: Votes | VotedPools, fdr: Level, *, drop_seen: bool = False) -> Selection:
    """Select from votes by their p-values; see `Policy.select`."""
    level, voted = exact_alpha(fdr, "fdr"), VotedPools.of(votes)
    refuse_batch(policy)
    if policy.strata.missed is not None:
        raise InvalidValue(
            "a judge labelled the votes that calibrated this policy, and a batch needs people's labels of all",
            "calibrate on the checked votes alone",
        )
    _refuse_labels_by_labels(policy)
    chosen = max(choices_of(rule.guarantee) for rule in policy.points)
    if chosen > 1:
        raise InvalidValue(
            f"this policy's way to vote was chosen from {chosen} by the labels that calibrated it, and a promise about "
            "a batch knows no correction for that",
            "choose it on other problems, and calibrate again",
        )
    if all(isinstance(rule, ShiftedRule) for rule in policy.points):
        raise InvalidValue(
            "this policy promises about questions by their weights, and a batch needs questions that are exchangeable "
            "with the calibration ones",
            "calibrate without the shift",
        )
    if not len(voted):
        raise InvalidValue("a batch needs at least one vote, got none")
    seen = voted.seen_by(policy.seen) if drop_seen else np.zeros(len(voted), dtype=np.bool_)
    if seen.all():
        raise CalibrationLeak(f"all {len(voted)} problems calibrated this policy", "give other problems")
    voted = voted.take(~seen) if seen.any() else voted
    p_value, votes = policy.p_value(voted.votes), voted.votes
    if leaked := policy.seen.rows(voted.names, voted.questions, voted.clusters):
        raise CalibrationLeak(
            f"{len(leaked)} of {len(voted)} problems calibrated this policy (the first is {voted.names[leaked[0]]!r}), "
            "and a batch with them is not exchangeable with calibration",
            "leave them out with {drop_seen=True}, or give other problems",
        )
    refuse_fitted_tests(voted, policy.recipe.gate, None, np.arange(len(voted)))
    counted = np.zeros(len(votes), dtype=np.bool_)
    counted[voted.counted] = True
    # A vote without confidence is never answered, however few the wrong ones are.
    possible = np.where(votes.key[:, 0] > 0, p_value, 1.0)[counted]
    cut = cut_off(possible, level, policy.n)
    guarantee = BatchSelection(level, cut, len(possible), policy.down_to is not None)  # type: ignore[arg-type]
    rule = policy.settled(guarantee)
    answered = counted & rule.answers(votes.cases)
    return Selection(votes, rule, answered, p_value, policy.strata, counted, without_sets=bool(policy.sets))


def _refuse_labels_by_labels(policy: Policy) -> None:
    """Raise unless all votes have labels, or all above a key that was fixed before the first of them."""
    unlabelled, key = policy.evidence.n_unlabelled, policy.down_to
    if not unlabelled:
        return
    if key is None:
        raise InvalidValue(
            f"{unlabelled} of the {policy.n} votes that calibrated this policy have no label, and a batch needs all, "
            "or all above a key that was fixed before the first label",
            "label the rest, or begin labels with {down_to}",
        )
    if lacking := policy.evidence.unlabelled_above(key):
        raise InvalidValue(
            f"{lacking} of the votes above {key[0]:.4g}, where labelling was to end, have no label, and a batch needs "
            "all of these",
            "label them and calibrate again",
        )
