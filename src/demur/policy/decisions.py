"""Decisions on whole tables, and the sentence that goes with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.guarantee import NOWHERE_FEW_ENOUGH, Rule
from demur.evidence.counts import Floats
from demur.evidence.strata import Strata
from demur.records import Decision, Groups, Vote
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns
from demur.voting.votes import Votes

NOT_PROMISED = (
    "This is not a promise about this one question, nor that this share of the given answers is right, "
    "nor about questions of another kind."
)
NOT_PROMISED_OF_ANSWERS = (
    "This is not a promise about this one answer, nor about any few of them, nor about questions of another kind."
)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Answer or abstain, one row per vote. `decisions[i]` is one of them as a record."""

    votes: Votes
    rule: Rule
    answered: NDArray[np.bool_]
    p_value: Floats
    strata: Strata
    """The calibration votes as counts."""

    def __len__(self) -> int:
        return len(self.votes)

    def __repr__(self) -> str:
        rate = f"{self.answered.mean():.1%}" if len(self) else "none"
        return f"Decisions({len(self):,} pools, {rate} answered at alpha {self.rule.alpha:g})"

    def _repr_html_(self) -> str:
        first = range(min(len(self), MOST_ROWS))
        columns = {name: column[: len(first)] for name, column in self.columns().items()}
        return html_of_columns(repr(self), columns, more=len(self) - len(first), note=self.rule.promise)

    def columns(self) -> dict[str, Any]:
        """One entry per pool, by name; the answer is None where the policy abstains."""
        given, columns = self.votes.answer.astype(object), self.votes.columns()
        given[~self.answered] = None
        columns["answer"] = given
        sizes, groups = self.votes.n_paths.tolist(), self.votes.groups or [()] * len(self)
        thresholds = [self.rule.threshold_of(size, own)[0] for size, own in zip(sizes, groups, strict=True)]
        own = {"answered": self.answered, "p_value": self.p_value, "threshold": np.array(thresholds, dtype=np.float64)}
        return columns | own

    def to_frame(self, library: str | None = None) -> Any:
        """One row per pool, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def __getitem__(self, row: int) -> Decision:
        vote, p_value, answered = self.votes[row], float(self.p_value[row]), bool(self.answered[row])
        groups = () if self.votes.groups is None else self.votes.groups[row]
        return decision_on(vote, self.rule, p_value, answered=answered, groups=groups, seen=self.strata)

    def __iter__(self) -> Iterator[Decision]:
        return (self[row] for row in range(len(self)))

    @property
    def of_rare_size(self) -> NDArray[np.bool_]:
        """Pools that are not answered because calibration saw too few of their size."""
        is_rare, cases = np.zeros(len(self), dtype=np.bool_), self.votes.cases
        for groups, rows in self._kinds().items():
            if self.rule.refusal(groups) is None:
                sizes = cases.n_paths[rows]
                rare = [size for size in np.unique(sizes).tolist() if not self.rule.takes(size, groups)]
                is_rare[rows] = np.isin(sizes, rare)
        return is_rare

    @property
    def of_small_group(self) -> NDArray[np.bool_]:
        """Pools that are not answered because no promise is about a group of theirs."""
        is_small = np.zeros(len(self), dtype=np.bool_)
        for groups, rows in self._kinds().items():
            is_small[rows] = self.rule.refusal(groups) is not None
        return is_small

    def _kinds(self) -> dict[Groups, Any]:
        return self.votes.cases.rows_by_groups() if self.rule.needs_groups else {(): slice(None)}

    @property
    def unscored(self) -> NDArray[np.bool_]:
        """Pools that are not answered because a path of theirs has no score."""
        return np.zeros(len(self), dtype=np.bool_) if self.votes.unscored is None else self.votes.unscored

    def notes(self) -> list[str]:
        """What was not answered for another reason than its confidence, in words."""
        notes, rare = [], self.of_rare_size
        if rare.any():
            sizes = ", ".join(map(str, np.unique(self.votes.n_paths[rare]).tolist()))
            notes.append(
                f"{int(rare.sum())} pools have {sizes} paths, which too few calibration pools have for "
                f"alpha = {self.rule.alpha:g}: not answered; if paths are missing because sampling failed, sample "
                "again to draw the rest"
            )
        if self.of_small_group.any() and self.rule.feasible:
            notes.append(
                f"{int(self.of_small_group.sum())} questions are of no group that enough calibration questions are of "
                f"for alpha = {self.rule.alpha:g}: not answered"
            )
        if self.unscored.any():
            notes.append(f"{int(self.unscored.sum())} pools have a path without a score: not answered")
        return notes


def decision_on(
    vote: Vote, rule: Rule, p_value: float, *, answered: bool, seen: Strata, groups: Groups = ()
) -> Decision:
    """The decision on one vote, as a record; `seen` are the calibration votes."""
    threshold = rule.threshold_of(vote.n_paths, groups)
    return Decision(
        answer=vote.answer if answered else None,
        confidence=vote.confidence,
        threshold=threshold[0],
        p_value=p_value,
        alpha=rule.alpha,
        support=vote.support,
        shares={answer: round(tally / vote.total, 12) for answer, tally in vote.tally.items()},
        explanation=explain(vote, rule, p_value, answered=answered, seen=seen, groups=groups),
        threshold_key=threshold,
        secondary=vote.secondary,
        id=vote.id,
        n_paths=vote.n_paths,
        groups=groups if rule.needs_groups else (),
    )


def without_vote(vote: Vote) -> str | None:
    """Why there is nothing to be answered, whatever the threshold; None where there is something."""
    if vote.unscored:
        return "a path of this pool has no score"
    if vote.answer is None:
        return "no path has an answer"
    return "the paths that have an answer have no weight" if vote.confidence == 0 else None


def explain(vote: Vote, rule: Rule, p_value: float, *, answered: bool, seen: Strata, groups: Groups = ()) -> str:
    """What was decided, what is promised and what is not."""
    if not rule.feasible:
        return f"Abstained: {rule.too_few}; until then the policy abstains always."
    if rule.among_answers and rule.never_answers:
        return f"Abstained: {NOWHERE_FEW_ENOUGH} {rule.promise}"
    if (nothing := without_vote(vote)) is not None:
        return f"Abstained: {nothing}. {rule.promise}"
    if (refusal := rule.refusal(groups)) is not None:
        return f"Abstained: {refusal}. {rule.promise}"
    threshold = rule.threshold_of(vote.n_paths, groups)
    if not rule.takes(vote.n_paths, groups):
        alike = seen.of_group(groups[0]) if rule.needs_groups and groups else seen
        of_group = f" of the group {groups[0]!r:.60}" if rule.needs_groups and groups else ""
        return (
            f"Abstained: this pool has {vote.n_paths} paths, and {alike.sizes.get(vote.n_paths, 0)} calibration pools"
            f"{of_group} had as many, where alpha = {rule.alpha:g} needs {rule.needed_per_size}; if paths are missing "
            f"because sampling failed, sample again to draw the rest. {rule.promise}"
        )
    beyond = "above" if answered else "not above"
    head = "Answered" if answered else "Abstained"
    compared = f"confidence {vote.confidence:.4g} is {beyond} the threshold {threshold[0]:.4g}"
    if answered and threshold[0] == 0:
        compared = f"confidence {vote.confidence:.4g}, and at this alpha the policy always answers"
    if vote.secondary is not None and vote.confidence == threshold[0]:
        compared = (
            f"confidence {vote.confidence:.4g} ties with the threshold, and the secondary key {vote.secondary:.4g} "
            f"is {beyond} {threshold[1]:.4g}"
        )
    aside = f" {told}" if (told := rule.stand_in(groups)) else ""
    if answered != (p_value <= rule.alpha):
        aside += (
            f" The p-value {p_value:.4g} alone would say otherwise: it belongs to the marginal guarantee, "
            f"and this policy holds the {rule.guarantee.name.replace('_', '-')} one."
        )
    not_promised = NOT_PROMISED_OF_ANSWERS if rule.among_answers else NOT_PROMISED
    return f"{head}: {compared}.{aside} {rule.promise} {not_promised}"
