"""Decisions on whole tables, and the sentence that goes with each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration import QUESTION
from demur.calibration.answer_sets import SetRule
from demur.calibration.guarantee import Rule
from demur.evidence.counts import Floats
from demur.evidence.strata import SIZE_LEVEL, Strata
from demur.policy.explanations import About, explain
from demur.questions.outliers import Likeness
from demur.records import OTHER, Decision, Early, Groups, Vote
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns
from demur.voting.votes import Votes


@dataclass(frozen=True, eq=False)
class Decisions:
    """Answer or abstain, one row per vote. `decisions[i]` is one of them as a record."""

    votes: Votes
    rule: Rule
    answered: NDArray[np.bool_]
    p_value: Floats
    strata: Strata
    """The calibration votes as counts."""
    sets: SetRule | None = field(default=None, kw_only=True)
    """Which answers to offer on abstaining, where the policy says that."""
    likeness: Likeness | None = field(default=None, kw_only=True)
    """How much questions are like the calibration ones, where the policy abstains on outliers as well."""

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
        sizes = self.votes.n_paths.tolist()
        thresholds = [
            self.rule.threshold_of(size, about.groups, about.weight)[0]
            for size, about in zip(sizes, map(self._about, range(len(self))), strict=True)
        ]
        own = {"answered": self.answered, "p_value": self.p_value, "threshold": np.array(thresholds, dtype=np.float64)}
        if self.likeness is not None:
            own["outlier_p_value"] = self.likeness.p_value
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
        return self._on(row, self.votes[row])

    def _on(self, row: int, vote: Vote) -> Decision:
        """The decision on a row's vote."""
        how: dict[str, Any] = {"seen": self.strata, "about": self._alike or self._about(row), "sets": self.sets}
        return decision_on(vote, self.rule, float(self.p_value[row]), answered=bool(self.answered[row]), **how)

    @cached_property
    def _alike(self) -> About | None:
        """What is known of every question, if the same is known of all."""
        alike = self.votes.groups is None and self.votes.importance is None and self.likeness is None
        return self._about(0) if alike else None

    def _about(self, row: int) -> About:
        """What is known of a question besides its vote."""
        groups = () if self.votes.groups is None else self.votes.groups[row]
        weight = None if self.votes.importance is None else float(self.votes.importance[row])
        return about_question(self.votes.recipe.names, groups, weight, self.likeness, row)

    def __iter__(self) -> Iterator[Decision]:
        return (self._on(row, vote) for row, vote in enumerate(self.votes))

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

    @property
    def gated(self) -> NDArray[np.bool_]:
        """Pools that are not answered because their question is unlike the reference questions of a gate."""
        if self.votes.recipe.gate is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray((self.votes.key[:, 0] == 0) & (self.votes.confidence > 0))

    @property
    def outliers(self) -> NDArray[np.bool_]:
        """Pools that are not answered because their question is unlike the calibration ones, or has no text."""
        return np.zeros(len(self), dtype=np.bool_) if self.likeness is None else self.likeness.unlike

    def notes(self) -> list[str]:
        """What was not answered for another reason than its confidence, and that sizes differ, in words."""
        notes, rare = [self.size_shift] if self.size_shift else [], self.of_rare_size
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
        if self.outliers.any():
            unlike = f"{int(self.outliers.sum())} questions are unlike the calibration questions"
            notes.append(f"{unlike}, or have no text to tell by: not answered")
        if self.of_small_group.any() and self.rule.feasible:
            notes.append(
                f"{int(self.of_small_group.sum())} questions are of no group that enough calibration questions are of "
                f"for alpha = {self.rule.alpha:g}: not answered"
            )
        if self.unscored.any():
            notes.append(f"{int(self.unscored.sum())} pools have a path without a score: not answered")
        return notes

    @cached_property
    def size_shift(self) -> str:
        """That these pools have other sizes than calibration's, though sizes vary by chance; blank if they have not."""
        if self.rule.unit != QUESTION:  # pools of one cluster may well have one size
            return ""
        return size_shift_note(self.strata, Counter(self.votes.n_paths.tolist()))

    def set_note(self) -> str:
        """How large the answer sets are, in words; blank where there are none."""
        if self.sets is None:
            return ""
        found = [held for held in self.answer_sets if held is not None]
        return self.sets.told(found, int((~self.answered).sum()))


def size_shift_note(strata: Strata, sizes: Mapping[int, int], level: float = SIZE_LEVEL) -> str:
    """That pools in use (size: pools) have other sizes than calibration's, if sizes vary by chance; else blank.

    No label is needed: see `Strata.size_p_value`. `level` is the probability of a warning without a difference.
    """
    n, known = sum(sizes.values()), strata.sizes
    if not strata.by_chance or not n or (p_value := strata.size_p_value(sizes, level)) > level:
        return ""
    shares = {size: (sizes.get(size, 0) / n, known.get(size, 0) / strata.n) for size in {*sizes, *known}}
    size = max(shares, key=lambda size: (shares[size][0] - shares[size][1], -size))
    here, there = shares[size]
    return (
        f"pool sizes differ from calibration's (p = {p_value:.1g}, level {level:.2g}): {here:.1%} of these {n} pools "
        f"have {size} paths, {there:.1%} in calibration; the promise needs sizes that vary as there: calibrate on "
        "pools like these"
    )


def decision_on(
    vote: Vote,
    rule: Rule,
    p_value: float,
    *,
    answered: bool,
    seen: Strata,
    about: About,
    sets: SetRule | None = None,
    early: Early | None = None,
) -> Decision:
    """The decision on one vote, as a record; `seen` are the calibration votes, and `sets` says which answers to offer
    on abstaining, where the policy does. Where it was certain `early`, the vote has the size of the whole pool.
    """
    threshold = rule.threshold_of(vote.n_paths, about.groups, about.weight)
    explanation = explain(vote, rule, p_value, answered=answered, seen=seen, about=about, early=early)
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
        n_paths=vote.n_paths if early is None else early.n_paths,
        answer_set=offered,
        groups=about.groups if rule.needs_groups else (),
        outlier_p_value=about.likeness,
    )


def about_question(
    names: Sequence[str], groups: Groups, weight: float | None, likeness: Likeness | None, row: int = 0
) -> About:
    """What is known of a question besides its vote; `likeness` may be that of many, of which it is one."""
    if likeness is None:
        return About(names, groups, weight)
    return About(names, groups, weight, float(likeness.p_value[row]), bool(likeness.unlike[row]))
