"""Ways to vote that `tune` compares: score, weight, normaliser and tie-break, and whatever else makes votes.

A candidate is anything that has a name, says how far it is from the default, and makes votes on the labelled pools of
the tune split. Votes that rank it may not have seen their own label: what is learned from the tune split is ranked by
votes on parts that it was not fitted on, and chosen as fitted on all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from demur.evaluation.resampling import LabelledVotes
from demur.pools.fields import FieldChoice, PoolTable, read_table
from demur.pools.label_rule import LabelRule
from demur.pools.labels import Labels, read_labels, refuse_labels_as_score
from demur.pools.parts import lacking_score, some_of
from demur.pools.scores import scores_or_dropped
from demur.pools.source import PoolSource, vote_table
from demur.pools.voted_pools import VotedPools
from demur.voting.recipe import Recipe

JITTER, MEAN_SCORE = "jitter:0", "mean_score"
_WEIGHTS = {
    "linear": ("none", "pool_minmax", "rank"),
    "exponential:1": ("none", "pool_z", "pool_minmax", "rank"),
    "exponential:5": ("none", "pool_z", "pool_minmax", "rank"),
}
"""Weights of scores, and the normalisers that each is tried with."""


class LabelledPools:
    """The pools of the tune split, read once: answers and labels are the same for every way to vote on them."""

    def __init__(self, whole: PoolSource, rows: Sequence[int], fields: FieldChoice, correct: LabelRule) -> None:
        self._whole = whole
        self.fields = replace(whole.as_read(fields), score=None)
        self.source = replace(whole, pools=some_of(whole.pools, rows))
        self._correct = correct
        self._tables: dict[str | None, PoolTable] = {}

    @cached_property
    def labels(self) -> Labels:
        return read_labels(self.source.pools, self.table(None), self._correct)

    def table(self, score: str | None) -> PoolTable:
        """The columns of the pools, with a score."""
        if score not in self._tables:
            fields = replace(self.fields, score=score)
            if score is None:
                self._tables[None] = read_table(self.source.pools, fields)
            else:
                scores, unscored = scores_or_dropped(self.source.pools, score, fields.unscored)
                changed = {"scores": scores, "fields": fields, "unscored": tuple(unscored)}
                self._tables[score] = table = replace(self.table(None), **changed)  # type: ignore[arg-type]
                refuse_labels_as_score(table, self.labels)
        return self._tables[score]

    def vote(self, score: str | None, recipe: Recipe) -> VotedPools:
        """Labelled votes of the tune split."""
        table = self.table(score)
        upstream = self._whole.description_with(table.fields, recipe.other_scores)
        votes = vote_table(self.source.pools, table, recipe, upstream)
        right = self.labels.of_votes(votes)
        return VotedPools(votes, right, table.digests, table.clusters, table, self.labels)


@runtime_checkable
class Candidate(Protocol):
    """A way to vote."""

    @property
    def name(self) -> str: ...

    @property
    def distance(self) -> int:
        """How far from the default: where two differ by less than their error, the nearer is chosen."""

    def ranked(self, pools: LabelledPools) -> LabelledVotes:
        """Votes to rank it by, each made without its own label: one of each unit, in the order of `in_order`."""

    def chosen(self, pools: LabelledPools) -> VotedPools:
        """Votes made the way it would be used: their description is what is kept."""


@dataclass(frozen=True)
class Configuration:
    """A score with a weight, a normaliser and a tie-break; None for a score is the majority vote."""

    score: str | None = None
    weight: str = "uniform"
    normaliser: str | None = None
    """None: the score's own."""
    tie_break: str = JITTER

    @property
    def name(self) -> str:
        behind = "" if self.tie_break == JITTER else f", ties by {self.tie_break}"
        if self.score is None:
            return f"majority vote{behind}"
        if self.weight == "uniform":
            return f"majority vote, ties by {self.tie_break} of {self.score}"
        normaliser = "" if self.normaliser is None else f" of {self.normaliser}"
        return f"{self.score}, {self.weight}{normaliser}{behind}"

    @property
    def distance(self) -> int:
        usual = self.weight == ("uniform" if self.score is None else "exponential:1")
        departures = (self.score is not None, not usual, self.normaliser is not None, self.tie_break != JITTER)
        return sum(departures)

    def ranked(self, pools: LabelledPools) -> LabelledVotes:
        voted = self.chosen(pools)
        return LabelledVotes.of(voted.votes.key[voted.in_order], voted.labelled[voted.in_order])

    def chosen(self, pools: LabelledPools) -> VotedPools:
        recipe = pools.source.recipe(self.score, self.normaliser, self.weight, self.tie_break)
        return pools.vote(self.score, recipe)


def configurations(
    source: PoolSource,
    *,
    scores: Sequence[str] | None = None,
    weight: str | None = None,
    normaliser: str | None = None,
    tie_break: str | None = None,
) -> list[Configuration]:
    """Ways to vote with the scores of these pools, the majority vote first; what is given is not varied."""
    every = [Configuration()]
    weights = _WEIGHTS if weight is None else {weight: () if weight == "uniform" else _WEIGHTS["exponential:1"]}
    ties = (JITTER, MEAN_SCORE) if tie_break is None else (tie_break,)
    for score in source.score_names if scores is None else scores:
        own = str(source.scorers.get(score, {}).get("normaliser", "none")).partition("@")[0]
        if weight in (None, "uniform") and MEAN_SCORE in ties and normaliser is None:
            every.append(Configuration(score, "uniform", None, MEAN_SCORE))
        for one, names in weights.items():
            chosen = names if normaliser is None else (normaliser,)
            every += [Configuration(score, one, None if name == own else name, tie) for name in chosen for tie in ties]
    return every


def lacking(source: PoolSource, score: str) -> int:
    """How many pools have a path without a score."""
    if "." in score:  # another field of the path, which is looked at when it is read
        return 0
    return len(lacking_score(source.pools, score))
