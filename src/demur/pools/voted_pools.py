"""Pools that have been voted on and, where asked for, labelled: what is calibrated, evaluated, audited and reported.

    vote_pools(read_pools(source), …)      from the pools of a file or a run, or from a DataFrame, one row per path
    VotedPools.of(votes, correct, …)       from arrays

Rows that share a cluster or a question are one unit: they stay on one side of a split, and one of them counts. Problems
of the same text with other options, passages or messages are other questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import CalibrationLeak, InvalidValue
from demur.pools.accepted_keys import AcceptedKeys
from demur.pools.label_rule import refuse_mixed_labels, written_label
from demur.pools.splits import Rows, Split, Texts, in_drawn_order, one_per_unit, split, split_rows, units
from demur.records import is_nothing, question_digest
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns
from demur.voting.baselines import best_of_m, oracle, single_path
from demur.voting.cases import Cases
from demur.voting.codes import CodedAnswers, taken
from demur.voting.guards import refuse_mask
from demur.voting.key import NO_JITTER, Column, FewerPaths, Jitter, MeanScore, MorePaths, Share
from demur.voting.rows import ScoreRows
from demur.voting.score_health import ScoreHealth
from demur.voting.votes import Votes, vote

if TYPE_CHECKING:  # what reads pools compares answers, which arrays do not need
    from demur.pools.fields import PoolTable
    from demur.pools.labels import Labels

_MANY_FLOORS = 0.2
_ENOUGH_VOTES = 20


LabelledCases = tuple[Cases, NDArray[np.bool_], NDArray[np.bool_] | None]


class _Seen(Protocol):
    def rows(self, ids: Sequence[str], questions: Texts | None = None, clusters: Texts | None = None) -> list[int]: ...


@dataclass(frozen=True, eq=False)
class VotedPools:
    """Votes, what is known of their problems, and labels. Rows are the source's, in order."""

    votes: Votes
    correct: NDArray[np.bool_] | None = None
    """Whether each vote is right; None where there are no labels."""
    questions: Texts | None = None
    """Digests of what is asked (`records.question_digest`); None where that is not known."""
    clusters: Texts | None = None
    table: PoolTable | None = field(default=None, repr=False)
    """The columns behind the votes, where they come from pools."""
    labels: Labels | None = field(default=None, repr=False)
    flags: Mapping[str, int] = field(default_factory=dict)
    """How many values of the score are not quite what they should be, by flag."""
    known: NDArray[np.bool_] | None = None
    """Which votes have a label, where some have none; None where all have one."""
    accepted: AcceptedKeys | None = field(default=None, repr=False)
    """The right answers to each problem, where they were given beside votes on arrays."""
    down_to: tuple[float, ...] | None = None
    """The key above which all votes were to be labelled, and no others, where one was fixed before the first label."""

    def __post_init__(self) -> None:
        for name, column in (("clusters", self.clusters), ("questions", self.questions)):
            if column is not None and len(column) != len(self):
                raise InvalidValue(f"{name} must hold one entry per vote, {len(self)} of them, got {len(column)}")
        if self.correct is not None:
            labels = as_labels(self.correct, len(self))
            if (unanswered := np.flatnonzero(labels & ~self.votes.has_answer)).size:
                raise InvalidValue(f"vote {unanswered[0]} has no answer, so it cannot be labelled correct")
            object.__setattr__(self, "correct", labels)
            if self.known is None:
                refuse_labels(self.votes, labels)
            else:
                refuse_labels(self.votes.take(np.flatnonzero(self.known)), labels[self.known])
                # A vote without an answer is wrong, whether or not somebody looked at it.
                known = self.known | ~self.votes.has_answer
                object.__setattr__(self, "known", None if known.all() else known)

    @classmethod
    def of(
        cls,
        votes: Votes | VotedPools,
        correct: ArrayLike | None = None,
        *,
        questions: Texts | None = None,
        clusters: Texts | None = None,
        partly_labelled: bool = False,
        gold: Any = None,
    ) -> VotedPools:
        """From votes held on arrays: one label per vote and, where they are known, question texts and clusters.

        With `partly_labelled`, some labels may be missing: None or NaN. In place of labels, `gold` holds the right
        answer to each problem, or a list of several: keys, as the votes have them. Answer sets need it.
        """
        if isinstance(votes, VotedPools):
            if any(given is not None for given in (correct, questions, clusters, gold)):
                raise InvalidValue("voted pools have labels, questions and clusters of their own; give no others")
            return votes
        known, accepted = None, None
        if gold is not None:
            accepted = AcceptedKeys.of(gold, len(votes))
            correct = accepted.label(votes.winners, None if correct is None else as_labels(correct, len(votes)))
        if correct is not None and partly_labelled:
            correct, known = as_part_of_labels(correct, len(votes))
        labels = None if correct is None else as_labels(correct, len(votes))
        digests = votes.questions if questions is None else [question_digest(question) for question in questions]
        return cls(votes, labels, digests, clusters, known=known, accepted=accepted)

    def __len__(self) -> int:
        return len(self.votes)

    def __repr__(self) -> str:
        right = "no labels" if self.correct is None or not len(self) else f"{self.correct.mean():.1%} right"
        right = right if self.known is None else f"{int(self.known.sum()):,} labelled"
        return f"VotedPools({right}, {self.votes!r})"

    def _repr_html_(self) -> str:
        some = self.take(np.arange(min(len(self), MOST_ROWS)))
        return html_of_columns(repr(self), some.columns(), more=len(self) - len(some))

    def columns(self) -> dict[str, Any]:
        """One entry per problem, by name."""
        columns = self.votes.columns()
        columns |= {} if self.correct is None else {"correct": self.correct}
        columns |= {} if self.known is None else {"labelled": self.known}
        return columns | ({} if self.clusters is None or not any(self.clusters) else {"cluster": list(self.clusters)})

    def to_frame(self, library: str | None = None) -> Any:
        """One row per problem, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    @cached_property
    def ids(self) -> Sequence[str]:
        """The problems' names; row numbers where they have none."""
        return self.votes.ids if self.votes.ids is not None else [str(row) for row in range(len(self))]

    @property
    def names(self) -> Sequence[str]:
        """The ids that a policy may know; blank ones where problems have none, for row numbers are not names."""
        return self.votes.ids if self.votes.ids is not None else [""] * len(self)

    @cached_property
    def units(self) -> Rows:
        """A number per row, equal for rows that belong together: one cluster, or the same question."""
        if self._all_count:
            return np.arange(len(self), dtype=np.intp)
        return units(self.ids, self.clusters, self.questions)

    @cached_property
    def counted(self) -> Rows:
        """One row of each unit, ascending."""
        if self._all_count:
            return self.units
        return one_per_unit(self.ids, self.units)

    @cached_property
    def clustered(self) -> bool:
        """Whether some cluster holds several questions, so that what counts are clusters."""
        if self.clusters is None or len(self.counted) == len(self):
            return False
        return len(self.counted) < len(np.unique(units(self.ids, None, self.questions)))

    @property
    def _all_count(self) -> bool:
        """Nothing is known that could make two rows one unit."""
        return self.clusters is None and self.questions is None

    @property
    def counted_cases(self) -> LabelledCases:
        """`cases_of` one row of each unit; the columns themselves where every row counts."""
        return self.cases_of(None if self._all_count else self.counted)

    def cases_of(self, rows: Rows | None) -> LabelledCases:
        """What a rule looks at, the label and whether it is known, of some rows or of all."""
        cases, labels, known = self.votes.cases, self.labels_so_far, self.known
        if rows is None:
            return cases, labels, known
        return cases.take(rows), labels[rows], None if known is None else known[rows]

    @cached_property
    def in_order(self) -> Rows:
        """One row of each unit, in an order that the order of rows does not decide, where problems have names."""
        if self.votes.ids is None:
            return self.counted
        return self.counted[in_drawn_order([self.ids[row] for row in self.counted])]

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """The labels; an error where there are none, or not of all."""
        if self.known is not None:
            lacking = int((~self.known).sum())
            raise InvalidValue(
                f"{lacking} of {len(self)} votes have no label, and only a calibration can count those as wrong",
                "label the rest, or calibrate with {partly_labelled=True}",
            )
        return self.labels_so_far

    @property
    def labels_so_far(self) -> NDArray[np.bool_]:
        """The labels, which say nothing of votes that are not `known`; an error where there are none."""
        if self.correct is None:
            raise InvalidValue("these pools have no labels", "read them with labels, or give {correct}")
        return self.correct

    @property
    def scored(self) -> VotedPools:
        """Without the pools that cast no vote for want of a score: what calibrates."""
        return self if self.votes.unscored is None else self.take(~self.votes.unscored)

    def voting(self, rows: Rows) -> Rows:
        """Those of some rows that cast a vote."""
        return rows if self.votes.unscored is None else rows[~self.votes.unscored[rows]]

    @cached_property
    def distinct(self) -> Rows:
        """One row of each question, whatever cluster it is in."""
        return one_per_unit(self.ids, units(self.ids, None, self.questions))

    def take(self, rows: NDArray[Any]) -> VotedPools:
        """Some of the rows, in that order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        correct, known, questions, clusters = (
            taken(column, index) for column in (self.correct, self.known, self.questions, self.clusters)
        )
        table = None if self.table is None else self.table.take(index)
        labels = None if self.labels is None else self.labels.take(index)
        accepted = None if self.accepted is None else self.accepted.take(index)
        return replace(
            self,
            votes=self.votes.take(index),
            correct=correct,
            known=known,
            questions=questions,
            clusters=clusters,
            table=table,
            labels=labels,
            accepted=accepted,
        )

    def with_labels(self, correct: NDArray[np.bool_], known: NDArray[np.bool_] | None = None) -> VotedPools:
        """The same votes with other labels; `known` says which of them are there, None that all are."""
        return replace(self, correct=correct, known=known, labels=None, accepted=None, down_to=None)

    @property
    def knows_right_answers(self) -> bool:
        """Whether labels say of every answer of a pool if it is right, rather than of the vote's alone."""
        by_rule = self.labels is not None and self.table is not None and not self.labels.rule.people
        return self.known is None and (by_rule or self.accepted is not None)

    def right_paths(self, rows: Rows, answers: CodedAnswers) -> NDArray[np.bool_]:
        """Which entries of the table of answers of some rows are right, where right answers are known."""
        if self.accepted is not None:
            return self.accepted.take(rows).among(answers)
        assert self.labels is not None
        assert self.table is not None
        right = np.zeros(answers.codes.shape, dtype=np.bool_)
        for place, row in enumerate(rows.tolist()):
            pool = self.table.answers[row]
            right[place, : len(pool)] = [self.labels.is_right(row, key) for key in pool]
        return right

    def split(self, *, hold_out: float, seed: int) -> Split:
        """Rows to calibrate on, and a share of the units held out."""
        if self._all_count and self.votes.ids is None:  # nothing is known that a draw could go by
            return split_rows(len(self), seed=seed, test=hold_out)
        return split(self.ids, clusters=self.clusters, questions=self.questions, seed=seed, test=hold_out)

    def seen_by(self, seen: _Seen) -> NDArray[np.bool_]:
        """Rows that calibrated a policy, and whatever belongs with one that did: not new to it either."""
        return np.isin(self.units, self.units[seen.rows(self.names, self.questions, self.clusters)])

    def refuse_fitted(self) -> None:
        """Raise if labels of these problems shaped the votes: then they cannot calibrate."""
        fitted_on = self.votes.fitted_on
        if not fitted_on:
            return
        if self.votes.ids is None:
            raise InvalidValue(
                "a fitted normaliser, score or key needs votes with ids, to check that calibration does not use its "
                "problems"
            )
        if shared := fitted_on.rows(self.names, self.questions, self.clusters):
            raise CalibrationLeak(
                f"a score, normaliser, key or way to vote was chosen or fitted on {len(shared)} of the calibration "
                f"problems (the first is {self.ids[shared[0]]!r}); fit it on a tune split that calibration does not use"
            )

    def refuse_without_jitter(self) -> None:
        """Raise if jitter is to break ties and some of these votes have none: others would pass them for that alone."""
        lacking = int((self.votes.key[:, -1] == NO_JITTER).sum())
        if lacking and self.votes.recipe.jitter is not None:
            raise InvalidValue(
                f"{lacking} of {len(self)} calibration votes have neither a question nor an id to draw jitter from",
                "give {questions} or {ids} when voting, or break ties otherwise",
            )

    def accuracies(self, rows: Rows) -> dict[str, float]:
        """Accuracy without abstention on some rows, of the vote and of what it is compared with."""
        if self.known is not None:
            return {}
        if self.labels is None or self.table is None:
            return {} if self.correct is None else {"weighted_vote": float(self.correct[rows].mean())}
        table, labels = self.table, self.labels
        paths = taken(labels.of_paths(table), rows)
        majority = labels.of_votes(vote(table.answers))[rows]
        rates = {"single_path": single_path(paths), "majority_vote": float(majority.mean())}
        if table.scores is not None:
            best = labels.of_answers(best_of_m(table.answers, table.scores).tolist())[rows]
            rates |= {"best_of_m": float(best.mean()), "weighted_vote": float(self.labelled[rows].mean())}
        return {**rates, "oracle": oracle(paths)}

    def score_warnings(self) -> list[str]:
        """What is the matter with the score, seen without labels; nothing where nothing is."""
        name = self.votes.upstream.score.get("name")
        if self.table is None or self.table.scores is None or name is None:
            return []
        scores = self.table.scores
        n_paths = len(scores.flat) if isinstance(scores, ScoreRows) else sum(map(len, scores))
        warnings = ScoreHealth.of(scores, self.votes.recipe).warnings(name)
        floors = sum(count for flag, count in self.flags.items() if "floor" in flag) / n_paths
        if floors > _MANY_FLOORS:
            warnings.append(
                f"{floors:.0%} of the values of {name!r} are floors: the judge's likeliest tokens do not reach "
                "down to Y; score with an exact route"
            )
        return warnings


def refuse_labels(votes: Votes, correct: NDArray[np.bool_]) -> None:
    """Raise if what breaks ties takes two values only and they are the labels, or if the scores do.

    A handful may fall that way by chance, so few votes are let through.
    """
    answered = votes.has_answer
    if answered.sum() < _ENOUGH_VOTES:
        return
    if votes.scores_are(correct):
        raise InvalidValue(
            "the scores are the labels: one value wherever the vote is right, another wherever it is not"
        )
    for part, column in zip(votes.recipe.key, votes.key.T, strict=True):
        if isinstance(part, (Share, Jitter, FewerPaths, MorePaths)) or (
            isinstance(part, MeanScore) and part.score is None
        ):
            continue  # what demur itself makes of scores, which are looked at above, of questions and of sizes
        right, wrong = np.unique(column[answered & correct]), np.unique(column[answered & ~correct])
        if len(right) == len(wrong) == 1 and right[0] != wrong[0]:
            what = f"the field {part.name!r}" if isinstance(part, Column) else f"the tie-break {part.spec}"
            raise InvalidValue(f"{what} is the label itself; labels cannot break ties")


def as_part_of_labels(correct: ArrayLike, rows: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Labels of which some may be missing (None, NaN), and which of them are there."""
    refuse_mask(correct, "correct")
    given = np.asarray(correct, dtype=object)
    if given.shape != (rows,):
        raise InvalidValue(f"correct must hold one label or None per vote, {rows} of them, got shape {given.shape}")
    known = np.array([not is_nothing(label) for label in given], dtype=np.bool_)
    labels = np.zeros(rows, dtype=np.bool_)
    if known.any():
        labels[known] = as_labels(given[known], int(known.sum()))
    return labels, known


def as_labels(correct: ArrayLike, rows: int) -> NDArray[np.bool_]:
    """Labels as a boolean array with one entry per row."""
    refuse_mask(correct, "correct")
    labels = np.asarray(correct)
    if labels.dtype != np.bool_:
        labels = _as_booleans(labels)
    if labels.shape != (rows,):
        raise InvalidValue(f"correct must hold one label per vote, {rows} of them, got shape {labels.shape}")
    return labels


def _as_booleans(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Labels that are written as 0 and 1, or as words, in one way; an error where they are something else."""
    if labels.size and labels.dtype.kind in "iuf" and np.isin(labels, (0, 1)).all():
        return np.asarray(labels == 1)
    read = [written_label(label) for label in labels.ravel().tolist()]
    odd = next((label for label, way in zip(labels.ravel().tolist(), read, strict=True) if way is None), None)
    if not labels.size or None in read:
        raise InvalidValue(
            f"correct must hold booleans, or 0 and 1, or yes and no, got {labels.dtype} (such as {odd!r:.60}); "
            "compare the answers with gold to get them: votes.answer == gold"
        )
    refuse_mixed_labels({way for way, _ in filter(None, read)}, "correct")
    return np.array([right for _, right in filter(None, read)], dtype=np.bool_).reshape(labels.shape)
