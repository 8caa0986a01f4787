"""Pools, and what is known of how they came to be: what a file, a run or a table gives to be voted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from demur.answers.relations import as_written
from demur.descriptions import Description
from demur.errors import InvalidValue, PoolFileError
from demur.pools import parts
from demur.pools.fields import FieldChoice, PoolTable, named_sampling, problems_of, read_table
from demur.pools.frame_rows import table_of
from demur.pools.frames import FramePools
from demur.pools.label_rule import LabelRule, as_label_rule
from demur.pools.labels import read_labels, readable_rows, refuse_labels_as_score
from demur.pools.parts import ids_of
from demur.pools.path_fields import beside_of, refuse_absent
from demur.pools.scores import count_gaps, read_column
from demur.pools.stopped import (
    has_lowest_of_others,
    refuse_ended_elsewhere,
    refuse_scores_of_pools,
    stop_pools,
)
from demur.pools.voted_pools import VotedPools
from demur.pools.weights import read_weights
from demur.records import Pool
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of, shown
from demur.stopping import Stopping, fixed, stopping_of
from demur.tasks import chosen
from demur.voting.key import MeanScore, TieBreak, key_of
from demur.voting.normalisers import parse_normaliser
from demur.voting.problems import Problems
from demur.voting.recipe import DROP, Recipe
from demur.voting.stopped import described
from demur.voting.votes import Votes, vote_again
from demur.voting.weights import Uniform, parse_weight

Say = Callable[[str], None]


@dataclass(frozen=True)
class PoolSource:
    """Pools with their provenance."""

    pools: Sequence[Pool]
    description: Description = field(default_factory=Description)
    """How a run's paths were sampled and read: part of a policy's pipeline."""
    scorers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The identity of each score that demur computed."""
    flags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many values of a score are not quite what they should be, by flag."""
    left_out: int = 0
    """Problems of a run that still lack paths, or lacked them when a file was made of it, and are not among these."""
    read: tuple[Sequence[Pool], PoolTable] | None = field(default=None, repr=False, compare=False)
    """The columns of these pools, where they were read already."""
    replayed: bool = False
    """Whether a stopping rule left out paths that were drawn."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """How the answers of a table were compared whose classes it holds; nothing where it holds none."""

    def __repr__(self) -> str:
        return f"PoolSource({len(self.pools):,} pools; scores: {', '.join(self.score_names) or 'none'})"

    def _repr_html_(self) -> str:
        rows = [
            (pool.problem.id, pool.problem.question, len(pool.paths), _answers_of(pool))
            for pool in self.pools[:MOST_ROWS]
        ]
        header = ("id", "question", "paths", "answers")
        return html_of(repr(self), header, rows, more=len(self.pools) - len(rows))

    def to_frame(self, library: str | None = None) -> Any:
        """One row per path, as a DataFrame of pandas, or of "polars" or "arrow"; `read_pools` reads it back."""
        return frame_of(table_of(self.pools), library)

    def of_task(self, task: str | None) -> PoolSource:
        """The same, its problems all of one task, whatever they name; None: as they name it."""
        if task is None:
            return self
        chosen(task)  # raises where nobody knows it
        if isinstance(self.pools, FramePools):
            return replace(self, pools=self.pools.of_task(task))
        named = [
            replace(pool, problem=replace(pool.problem, extra={**pool.problem.extra, "task": task}))
            for pool in self.pools
        ]
        return replace(self, pools=named)

    def as_read(self, fields: FieldChoice) -> FieldChoice:
        """A choice of fields, with the labels that the answers of a run were read by."""
        labels = tuple(self.description.answers.get("labels", ()))
        return replace(fields, labels=labels) if labels and not fields.labels else fields

    @property
    def stopping(self) -> Stopping | None:
        """The rule that ended these pools; None where they have all their paths."""
        return stopping_of(self.description.sampling)

    def stopped_by(
        self,
        stopping: Stopping | None,
        fields: FieldChoice = FieldChoice(),  # noqa: B008 - frozen
        *,
        partial: bool = False,
        say: Say = lambda _: None,
    ) -> PoolSource:
        """The pools as a stopping rule would have drawn them, by answers in order of index; None: as they are.

        `fields` says how answers are read and compared, as in the vote. `partial` leaves out pools that end before the
        rule does. Pools that were drawn under a rule have no paths for another.
        """
        drawn = self.stopping
        if drawn is not None and stopping is not None and stopping.at_most(drawn.most or 1) != drawn:
            raise InvalidValue(
                f"these pools were drawn until {drawn} stopped, and cannot tell what {stopping} would have drawn",
                "leave {stop} out, or sample all paths",
            )
        rule = stopping if drawn is None else drawn if partial else None
        if rule is None or not rule.stops:
            return self
        table = self._columns(self.as_read(fields))
        how: dict[str, Any] = {"partial": partial, "drawn": drawn is not None, "say": say}
        ended = stop_pools(self.pools, table, rule, self.scorers, self.flags, **how)
        left_out, description = len(self.pools) - len(ended.pools), described(self.description, ended.stopping)
        return replace(
            self,
            pools=ended.pools,
            description=description,
            left_out=self.left_out + left_out,
            read=(ended.pools, ended.table),
            replayed=ended.replayed,
        )

    def table(self, fields: FieldChoice) -> PoolTable:
        """Answers as keys and one score per path; refuses pools that their stopping rule would have ended elsewhere."""
        table = self._columns(fields)
        if self.stopping is not None:
            refuse_ended_elsewhere(table, self.stopping)
        return table

    def with_columns(self, fields: FieldChoice) -> PoolSource:
        """The same, its columns read once for all that look at them by this choice of fields."""
        return replace(self, read=(self.pools, read_table(self.pools, self.as_read(fields))))

    def _columns(self, fields: FieldChoice) -> PoolTable:
        if self.read is not None and self.read[0] is self.pools and self.read[1].fields == fields:
            return self.read[1]
        return read_table(self.pools, fields)

    def readable(
        self,
        fields: FieldChoice,
        correct: LabelRule,
        *,
        partly_labelled: bool = False,
        say: Say = lambda _: None,
    ) -> tuple[PoolSource, LabelRule]:
        """The problems whose label can be read, if the rule drops others, and the rule with the number of those."""
        if correct.dropped is None:
            return self, correct
        table = self.table(self.as_read(fields))
        rows = readable_rows(self.pools, table, correct, partly=partly_labelled)
        n, lacking = len(self.pools), len(self.pools) - len(rows)
        if not lacking:
            return self, correct
        if not rows:
            raise PoolFileError(f"none of {n} problems has a label that can be read", "name others with {correct}")
        first = table.ids[min(set(range(n)) - set(rows))]
        say(
            f"note: {lacking} of {n} problems have no label that can be read (the first is {first!r:.60}), and are "
            "left out: figures and promises are about questions whose label can be read"
        )
        return replace(self, pools=parts.some_of(self.pools, rows)), replace(correct, dropped=correct.dropped + lacking)

    @property
    def ids(self) -> set[str]:
        """The names of all problems."""
        return set(ids_of(self.pools))

    @property
    def score_names(self) -> list[str]:
        return parts.score_names(self.pools)

    def description_with(self, fields: FieldChoice, others: Sequence[str] = ()) -> Description:
        """What is known of the stages before the vote; `others` are the scores that its key looks at besides."""
        scorer = self.scorers.get(fields.score or "")
        score = fields.describe_score() | ({} if scorer is None else {"scorer": dict(scorer)})
        score |= {"others": {name: dict(self.scorers.get(name, {})) for name in others}} if others else {}
        sampling = {**named_sampling(self.pools), **self.description.sampling}
        answers = {**self.description.answers, **fields.describe(problems_of(self.pools))}
        return replace(self.description, sampling=sampling, answers=answers, score=score)

    def recipe(
        self,
        score: str | None = None,
        normaliser: str | None = None,
        weight: str | None = None,
        tie_break: TieBreak = None,
    ) -> Recipe:
        """How to vote. A score that demur computed is normalised as its family is, unless told otherwise.

        `tie_break` is as in `demur.vote`; jitter comes last unless it is or ends in "none".
        """
        if normaliser is not None and score is None:
            raise InvalidValue("a normaliser does nothing without a score", "name one as {score}")
        own = self.scorers.get(score or "", {}).get("normaliser")
        weighed = parse_weight(weight or ("uniform" if score is None else "exponential"))
        idle = score is not None and isinstance(weighed, Uniform)
        return Recipe(
            weighed,
            parse_normaliser(normaliser or own or "none"),
            key_of(tie_break, idle_score=idle, told_apart=True, stopped=self.stopping is not None),
        )


def vote_pools(
    source: PoolSource,
    fields: FieldChoice = FieldChoice(),  # noqa: B008 - frozen
    recipe: Recipe | None = None,
    *,
    labelled: bool = True,
    partly_labelled: bool = False,
    drop_unreadable: bool = False,
    correct: str | LabelRule | None = None,
    assumed: Description = Description(),  # noqa: B008 - frozen
    fitted_on: Iterable[str] | Problems = (),
    say: Say = lambda _: None,
) -> VotedPools:
    """Read the answers, hold the vote and, if asked for, find out which votes are right.

    `recipe` says how to vote; without one, as the score's family is. `correct` names a field of the paths with
    ready-made labels, in place of gold, or is a rule that says what counts as right. With `partly_labelled`, some
    problems may have neither; `calibrate` takes those as wrong, if told so. `drop_unreadable` leaves
    out problems whose label cannot be read; the promise says so. `assumed` is taken to be so where
    the source does not say how its pools were made. `fitted_on` names the problems that a learned score or
    tie-breaking column was fitted on.
    """
    if labelled:
        wanted = as_label_rule(correct)
        wanted = replace(wanted, dropped=wanted.dropped or 0) if drop_unreadable else wanted
        source, correct = source.readable(fields, wanted, partly_labelled=partly_labelled, say=say)
    pools, fields = source.pools, source.as_read(fields)
    recipe = recipe or source.recipe(fields.score)
    if source.replayed:
        _refuse_unlike_drawn(source, fields.score, recipe.other_scores)
    table = source.table(fields)
    _mention_spellings(table, say)
    upstream = assumed.updated(source.description_with(fields, recipe.other_scores))
    # A rule is never assumed: pools that do not say that one ended them have all their paths.
    upstream = described(upstream, source.stopping or fixed())
    fitted = fitted_on if isinstance(fitted_on, Problems) else Problems.of(fitted_on)
    votes = vote_table(pools, table, recipe, upstream, fitted)
    if table.unscored:
        lacking = f"{len(table.unscored)} of {len(pools)} pools"
        say(f"note: {lacking} have a path without the score {fields.score!r}, and cast no vote")
    filled = 0 if table.scores is None or fields.unscored in (None, DROP) else count_gaps(pools, str(fields.score))
    if filled:
        say(f"note: {fields.unscored} stands in for the score {fields.score!r} of {filled} paths that have none")
    labels = right = None
    if labelled:
        labels = read_labels(pools, table, correct, partly=partly_labelled)
        right = labels.of_votes(votes)
        refuse_labels_as_score(table, labels)
        if labels.conflicts:
            say(f"warning: in {labels.conflicts} problems one answer has both labels; it counts as wrong")
        for note in labels.notes:
            say(note)
    flags = source.flags.get(fields.score or "", {})
    known = None if labels is None or labels.known is None else np.asarray(labels.known, dtype=np.bool_)
    return VotedPools(votes, right, table.digests, table.clusters, table, labels, flags, known)


def _refuse_unlike_drawn(source: PoolSource, score: str | None, others: Sequence[str]) -> None:
    """Raise where pools that a rule was replayed on have scores that those it draws would not have."""
    refuse_scores_of_pools([*([] if score is None else [score]), *others], source.scorers)
    looked_at = None if source.read is None else source.read[1].fields.score
    if score not in (None, looked_at) and has_lowest_of_others(str(score), source.flags):
        raise InvalidValue(
            f"paths without text have the lowest {score!r} of their pools, at which the replayed rule did not look",
            "name the score where the rule is replayed, or sample with the rule and score what it drew",
        )


def vote_table(
    pools: Sequence[Pool],
    table: PoolTable,
    recipe: Recipe,
    upstream: Description,
    fitted_on: Problems = Problems(),  # noqa: B008 - frozen
) -> Votes:
    """The vote on pools whose answers and scores have been read."""
    for part in recipe.key:
        if isinstance(part, MeanScore) and part.score is not None:
            refuse_absent(pools, part.score)
    return vote_again(
        recipe,
        table.answers,
        table.scores,
        tie_break=None if recipe.column is None else read_column(pools, recipe.column.name),
        ids=table.ids,
        questions=table.digests,
        folded=table.folded,
        upstream=upstream,
        fitted_on=fitted_on,
        unscored=table.unscored,
        written=table.written,
        beside=beside_of(pools, table.questions),
        groups=table.groups if any(table.groups.kinds) else None,
        importance=_weights_of(pools, table),
    )


def _weights_of(pools: Sequence[Pool], table: PoolTable) -> Any:
    """How much each question counts, where the choice of fields says what tells it."""
    fields = table.fields
    if fields.weights is None:
        return None
    return read_weights(pools, table.questions, fields.weights, in_use=fields.in_use)


def _answers_of(pool: Pool) -> str:
    """A pool's answers, those that most paths have first."""
    times = Counter(text for path in pool.paths if (text := as_written(path.answer)) is not None)
    return ", ".join(f"{shown(text, 20)} ×{paths}" for text, paths in times.most_common(3))


def _mention_spellings(table: PoolTable, say: Say) -> None:
    """Point at answers that look like "no answer", and at spellings of it that never occur."""
    for spelling, paths in table.suspects.items():
        say(f"note: {paths} paths answer {spelling!r}; if that means no answer, say so: missing = {spelling!r}")
    for spelling in table.unused_missing:
        say(f"note: no path answers {spelling!r}, which is said to mean no answer")
