"""Pools that have been voted on and, where asked for, labelled: what is calibrated, evaluated and decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.baselines import best_of_m, oracle, single_path
from demur.calibration import Guarantee
from demur.errors import InvalidValue
from demur.labels import Labels, read_labels, refuse_labels_as_column, refuse_labels_as_score
from demur.normalisers import parse_normaliser
from demur.policy import Policy, calibrate
from demur.pool_table import PoolTable, Reading, named_pipeline, read_column, read_table
from demur.records import Pool
from demur.score_health import ScoreHealth
from demur.splits import split, units
from demur.tie_breaks import Column, parse_tie_break
from demur.voting import Recipe, Votes, vote, vote_again
from demur.weights import parse_weight

Say = Callable[[str], None]
_MANY_FLOORS = 0.2


@dataclass(frozen=True)
class Source:
    """Pools, and what is known of how they came to be."""

    pools: Sequence[Pool]
    sampled: Mapping[str, Any] = field(default_factory=dict)
    """How a run's paths were sampled: part of a policy's pipeline."""
    scorers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The identity of each score that demur computed."""
    flags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many values of a score are not quite what they should be, by flag."""

    def recipe(
        self, reading: Reading, normaliser: str | None = None, weight: str | None = None, tie_break: str | None = None
    ) -> Recipe:
        """How to vote. A score that demur computed is normalised as its family is, unless told otherwise."""
        if normaliser is not None and reading.score is None:
            raise InvalidValue("--normaliser does nothing without --score")
        own = self.scorers.get(reading.score or "", {}).get("normaliser")
        return Recipe(
            weight=parse_weight(weight or ("uniform" if reading.score is None else "exponential")),
            normaliser=parse_normaliser(normaliser or own or "none"),
            tie_break=None if tie_break is None else parse_tie_break(tie_break),
            score=reading.score,
            upstream=reading.describe(),
        )


@dataclass(frozen=True)
class Electorate:
    """Columns, votes and, where asked for, labels. Rows are the source's, in order."""

    table: PoolTable
    votes: Votes
    labels: Labels | None
    flags: Mapping[str, int] = field(default_factory=dict)
    """How many values of the score are not quite what they should be, by flag."""

    def correct(self) -> NDArray[np.bool_]:
        """Whether each vote is right."""
        if self.labels is None:
            raise InvalidValue("these pools were read without labels")
        return self.labels.of_votes(self.votes)

    def accuracies(self, rows: NDArray[np.intp]) -> dict[str, float]:
        """Accuracy without abstention on some rows, of the vote and of what it is compared with."""
        if self.labels is None:
            return {}
        table, labels = self.table, self.labels
        every = labels.of_paths(table)
        paths = [every[row] for row in rows]
        majority = labels.of_votes(vote(table.answers))[rows]
        found = {"single_path": single_path(paths), "majority_vote": float(majority.mean())}
        if table.scores is not None:
            best = labels.of_answers(best_of_m(table.answers, table.scores).tolist())[rows]
            found |= {"best_of_m": float(best.mean()), "weighted_vote": float(self.correct()[rows].mean())}
        return {**found, "oracle": oracle(paths)}

    def touched_by(self, policy: Policy) -> NDArray[np.bool_]:
        """Rows that calibrated a policy, and whatever belongs with one that did: not new to it either."""
        unit = self.units()
        return np.isin(unit, unit[policy.seen.rows(self.table.ids, self.table.questions, self.table.clusters)])

    def score_warnings(self) -> list[str]:
        """What is the matter with the score, seen without labels; nothing where nothing is."""
        recipe, scores = self.votes.recipe, self.table.scores
        if scores is None or recipe.score is None:
            return []
        found = ScoreHealth.of(scores, recipe).warnings(recipe.score)
        floors = sum(count for flag, count in self.flags.items() if "floor" in flag) / sum(map(len, scores))
        if floors > _MANY_FLOORS:
            found.append(
                f"{floors:.0%} of the values of {recipe.score!r} are floors: the judge's likeliest tokens do not reach "
                "down to Y; score with an exact route"
            )
        return found

    def units(self) -> Any:
        """Which rows belong together: one cluster, or the same question text."""
        return units(self.table.ids, self.table.clusters, self.table.questions)

    def calibrate(
        self, guarantees: Sequence[Guarantee], *, hold_out: float = 0.0, seed: int = 0, strict: bool = False
    ) -> tuple[Policy, int]:
        """A policy, calibrated on all problems but the share held out; and how many were held out."""
        table = self.table
        parts = split(table.ids, clusters=table.clusters, questions=table.questions, seed=seed, test=hold_out)
        rows = parts.calibration
        policy = calibrate(
            self.votes.take(rows),
            self.correct()[rows],
            guarantee=guarantees,
            clusters=[table.clusters[row] for row in rows],
            questions=[table.questions[row] for row in rows],
            n_paths=(int(self.votes.n_paths.min()), int(self.votes.n_paths.max())),
            hold_out=hold_out or None,
            strict=strict,
        )
        return policy, len(parts.test)


def hold_vote(
    source: Source,
    reading: Reading,
    recipe: Recipe,
    *,
    labelled: bool,
    correct: str | None = None,
    say: Say = lambda _: None,
) -> Electorate:
    """Read the answers, hold the vote and, if asked for, find out which votes are right."""
    pools = source.pools
    table = read_table(pools, reading)
    known = {**named_pipeline(pools), **source.sampled}
    if reading.score is not None and reading.score in source.scorers:
        known["scorer"] = dict(source.scorers[reading.score])
    recipe = replace(recipe, upstream={**recipe.upstream, **known})
    _mention_spellings(table, say)
    column = read_column(pools, recipe.tie_break.name) if isinstance(recipe.tie_break, Column) else None
    votes = vote_again(recipe, table.answers, table.scores, tie_break=column, ids=table.ids)
    labels = None
    if labelled:
        labels = read_labels(pools, table, correct)
        refuse_labels_as_score(table, labels)
        if column is not None:
            refuse_labels_as_column(column, labels.of_votes(votes), str(recipe.tie_break))
        if labels.conflicts:
            say(f"warning: in {labels.conflicts} problems one answer has both labels; it counts as wrong")
    return Electorate(table, votes, labels, source.flags.get(reading.score or "", {}))


def reading_of_policy(policy: Policy) -> Reading:
    """Which fields hold answer and score, as the policy was calibrated."""
    pipeline = policy.pipeline
    fields = ("answer_field", "relation", "missing")
    if policy.recipe.coded or not all(isinstance(pipeline.get(field), (str, list)) for field in fields):
        raise InvalidValue(
            "this policy was calibrated on a table in Python, not on a pool file; decide in Python, or calibrate a file"
        )
    name = pipeline["relation"].partition("@")[0]
    relation = None if pipeline["relation"].startswith("by-task") else name
    reading = Reading(pipeline["answer_field"], pipeline["score"], tuple(pipeline["missing"]), relation)
    if reading.describe()["relation"] != pipeline["relation"]:
        raise InvalidValue(
            f"this policy compares answers by {pipeline['relation']}, and this demur by "
            f"{reading.describe()['relation']}; calibrate again"
        )
    return reading


def _mention_spellings(table: PoolTable, say: Say) -> None:
    """Point at answers that look like "no answer", and at spellings of it that never occur."""
    for spelling, paths in table.suspects.items():
        say(f"note: {paths} paths answer {spelling!r}; if that means no answer, add --missing {spelling!r}")
    for spelling in table.unused_missing:
        say(f"note: no path answers {spelling!r}, as --missing has it")
