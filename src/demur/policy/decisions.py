"""Decisions on whole tables, and the sentence that goes with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.answer_sets import SetRule
from demur.calibration.choices import choices_of
from demur.calibration.guarantee import NOWHERE_FEW_ENOUGH, Rule
from demur.evidence.counts import Floats
from demur.records import OTHER, Decision, Vote
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns
from demur.voting.gate import GATED
from demur.voting.votes import Votes

NOT_PROMISED = (
    "This is not a promise about this one question, nor that this share of the given answers is right, "
    "nor about questions of another kind."
)
NOT_PROMISED_OF_ANSWERS = (
    "This is not a promise about this one answer, nor about any few of them, nor about questions of another kind."
)
UNLIKE = "this question is unlike the reference questions of the policy's gate, or has no text to tell by"


@dataclass(frozen=True, eq=False)
class Decisions:
    """Answer or abstain, one row per vote. `decisions[i]` is one of them as a record."""

    votes: Votes
    rule: Rule
    answered: NDArray[np.bool_]
    p_value: Floats
    sizes: Mapping[int, int]
    """How many of the calibration pools have how many paths."""
    sets: SetRule | None = field(default=None, kw_only=True)
    """Which answers to offer on abstaining, where the policy says that."""

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
        sizes, weights = self.votes.n_paths.tolist(), map(self._weight, range(len(self)))
        thresholds = [self.rule.threshold_of(size, (), weight)[0] for size, weight in zip(sizes, weights, strict=True)]
        own = {"answered": self.answered, "p_value": self.p_value, "threshold": np.array(thresholds, dtype=np.float64)}
        return columns | own | self._set_columns()

    @property
    def answer_sets(self) -> list[tuple[Any, ...] | None]:
        """The answer set of each pool that is abstained from; None for the others, and where none is promised."""
        sets, answered = self.sets, self.answered.tolist()
        return [None if sets is None or answered[row] else sets.of(self.votes[row]) for row in range(len(self))]

    def _set_columns(self) -> dict[str, Any]:
        """The answers of each set, and whether it holds OTHER too: libraries of tables want one type per column."""
        if self.sets is None:
            return {}
        found = self.answer_sets
        return {
            "answer_set": [None if held is None else [one for one in held if one is not OTHER] for held in found],
            "or_other": np.array([held is not None and OTHER in held for held in found], dtype=np.bool_),
        }

    def to_frame(self, library: str | None = None) -> Any:
        """One row per pool, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def __getitem__(self, row: int) -> Decision:
        vote, p_value, answered = self.votes[row], float(self.p_value[row]), bool(self.answered[row])
        seen, names, weight = self.sizes.get(vote.n_paths, 0), self.votes.recipe.names, self._weight(row)
        how: dict[str, Any] = {"seen": seen, "names": names, "weight": weight, "sets": self.sets}
        return decision_on(vote, self.rule, p_value, answered=answered, **how)

    def _weight(self, row: int) -> float | None:
        """How much a question counts, where that matters."""
        return None if self.votes.importance is None else float(self.votes.importance[row])

    def __iter__(self) -> Iterator[Decision]:
        return (self[row] for row in range(len(self)))

    @property
    def of_rare_size(self) -> NDArray[np.bool_]:
        """Pools that are not answered because calibration saw too few of their size."""
        rare = [size for size in np.unique(self.votes.n_paths).tolist() if not self.rule.takes(size)]
        return np.isin(self.votes.n_paths, rare)

    @property
    def unscored(self) -> NDArray[np.bool_]:
        """Pools that are not answered because a path of theirs has no score."""
        return np.zeros(len(self), dtype=np.bool_) if self.votes.unscored is None else self.votes.unscored

    @property
    def gated(self) -> NDArray[np.bool_]:
        """Pools that are not answered because their question is unlike the reference questions of a gate."""
        if self.votes.recipe.gate is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray((self.votes.key[:, 0] == 0) & (self.votes.confidence > 0))

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
        if self.gated.any():
            notes.append(
                f"{int(self.gated.sum())} questions are unlike the reference questions of the gate: not answered"
            )
        if self.unscored.any():
            notes.append(f"{int(self.unscored.sum())} pools have a path without a score: not answered")
        return notes

    def set_note(self) -> str:
        """How large the answer sets are, in words; blank where there are none."""
        if self.sets is None:
            return ""
        found = [held for held in self.answer_sets if held is not None]
        return self.sets.told(found, int((~self.answered).sum()))


def decision_on(
    vote: Vote,
    rule: Rule,
    p_value: float,
    *,
    answered: bool,
    seen: int,
    names: Sequence[str],
    weight: float | None = None,
    sets: SetRule | None = None,
) -> Decision:
    """The decision on one vote, as a record; `seen` is how many calibration pools have its size, `names` what the
    numbers of its key are, and `sets` says which answers to offer on abstaining, where the policy does.
    """
    threshold = rule.threshold_of(vote.n_paths, (), weight)
    explanation = explain(vote, rule, p_value, answered=answered, seen=seen, names=names, weight=weight)
    offered = None
    if sets is not None and not answered and not vote.unscored:
        explanation, offered = f"{explanation} {sets.promise(vote.n_paths)}", sets.of(vote)
    return Decision(
        answer=vote.answer if answered else None,
        confidence=vote.confidence,
        threshold=threshold[0],
        p_value=p_value,
        alpha=rule.alpha,
        support=vote.support,
        shares={answer: round(tally / vote.total, 12) for answer, tally in vote.tally.items()},
        explanation=explanation,
        threshold_key=threshold,
        key=vote.key,
        id=vote.id,
        n_paths=vote.n_paths,
        answer_set=offered,
    )


def _holds(rule: Rule) -> str:
    if (choices := choices_of(rule.guarantee)) > 1:
        return f"was chosen from {choices} ways to vote by the labels that calibrated it"
    return f"holds the {rule.guarantee.name.replace('_', '-')} one"


def _confidence(vote: Vote, names: Sequence[str]) -> str:
    """What leads its key: the confidence, or one that is not the winner's share."""
    if names[0].removeprefix(GATED) == "share":
        return f"confidence {vote.confidence:.4g}"
    return f"{names[0].replace('_', ' ')} confidence {vote.key[0]:.4g} (share of the vote {vote.confidence:.4g})"


def without_vote(vote: Vote) -> str | None:
    """Why there is nothing to be answered, whatever the threshold; None where there is something."""
    if vote.unscored:
        return "a path of this pool has no score"
    if vote.answer is None:
        return "no path has an answer"
    return "the paths that have an answer have no weight" if vote.confidence == 0 else None


def is_gated(vote: Vote, names: Sequence[str]) -> bool:
    """Whether a vote has lost its confidence to a gate."""
    return names[0].startswith(GATED) and vote.key[0] == 0 < vote.confidence


def explain(
    vote: Vote,
    rule: Rule,
    p_value: float,
    *,
    answered: bool,
    seen: int,
    names: Sequence[str],
    weight: float | None = None,
) -> str:
    """What was decided, what is promised and what is not."""
    if not rule.feasible:
        return f"Abstained: {rule.too_few}; until then the policy abstains always."
    if rule.among_answers and rule.never_answers:
        return f"Abstained: {NOWHERE_FEW_ENOUGH} {rule.promise}"
    if (nothing := without_vote(vote)) is not None:
        return f"Abstained: {nothing}. {rule.promise}"
    if is_gated(vote, names):
        return f"Abstained: {UNLIKE}. {rule.promise}"
    if (refusal := rule.refused_weight(weight)) is not None:
        return f"Abstained: {refusal}. {rule.promise}"
    threshold = rule.threshold_of(vote.n_paths, (), weight)
    if not rule.takes(vote.n_paths):
        return (
            f"Abstained: this pool has {vote.n_paths} paths, and {seen} calibration pools had as many, where "
            f"alpha = {rule.alpha:g} needs {rule.needed_per_size}; if paths are missing because sampling "
            f"failed, sample again to draw the rest. {rule.promise}"
        )
    beyond = "above" if answered else "not above"
    head = "Answered" if answered else "Abstained"
    first = _confidence(vote, names)
    compared = f"{first} is {beyond} the threshold {threshold[0]:.4g}"
    if answered and threshold[0] == 0:
        compared = f"{first}, and at this alpha the policy always answers"
    elif vote.key[0] == threshold[0] and len(vote.key) > 1:
        at = next((at for at, bound in enumerate(threshold) if vote.key[at] != bound), len(threshold) - 1)
        tie = f"its {names[at].replace('_', ' ')} {vote.key[at]:.4g} is {beyond} {threshold[at]:.4g}"
        compared = f"{first} ties with the threshold, and {tie}"
    aside = rule.weight_note(weight)
    if answered != (p_value <= rule.alpha):
        aside += (
            f" The p-value {p_value:.4g} alone would say otherwise: it belongs to the marginal guarantee, "
            f"and this policy {_holds(rule)}."
        )
    not_promised = NOT_PROMISED_OF_ANSWERS if rule.among_answers else NOT_PROMISED
    return f"{head}: {compared}.{aside} {rule.promise} {not_promised}"
