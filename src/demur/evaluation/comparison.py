"""Scores of one set of pools side by side: how well each ranks paths, and what the vote makes of it.

One row of each cluster or question text counts, and only problems that have a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from demur.errors import InvalidValue, PoolFileError
from demur.evidence.counts import Evidence
from demur.evidence.frontier import Frontier, auroc, common_auc
from demur.pools.fields import FieldChoice
from demur.pools.label_rule import LabelRule, as_label_rule
from demur.pools.labels import labelled_rows
from demur.pools.scores import read_scores
from demur.pools.source import PoolSource, vote_pools
from demur.pools.voted_pools import VotedPools
from demur.records import Pool
from demur.voting.recipe import Recipe
from demur.voting.score_health import ScoreHealth

MAJORITY, JITTERED = "majority vote", "majority vote with jitter"


@dataclass(frozen=True)
class ScoreSummary:
    """One score. What needs labels, or a value for every path, is NaN where they are missing."""

    name: str | None
    """None for the majority vote, which has no score."""
    title: str
    paths: int
    """Paths that have a value."""
    low: float = math.nan
    high: float = math.nan
    flags: dict[str, int] = field(default_factory=dict)
    normaliser: str = "none"
    path_auroc: float = math.nan
    """P(a right path scores above a wrong one), ties counted half."""
    vote_accuracy: float = math.nan
    frontier_auc: float = math.nan
    common_auc: float = math.nan
    """Mean selective accuracy over the yields that all the votes compared here can reach."""
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Problems with a path that has no value."""
    frontier: Frontier | None = field(default=None, repr=False)


def compare_scores(
    source: PoolSource,
    fields: FieldChoice = FieldChoice(),  # noqa: B008 - frozen
    *,
    normaliser: str | None = None,
    weight: str | None = None,
    correct: str | LabelRule | None = None,
    own: Recipe | None = None,
) -> list[ScoreSummary]:
    """Every score of the pools, behind the majority vote with and without jitter among equally confident votes.

    `own` is how the vote of the score that `fields` names is made; the others are voted on as their families are, or
    as told.
    """
    comparison = _Comparison(source, fields, normaliser, weight, correct, own)
    majorities = {MAJORITY: None, JITTERED: "jitter:0"} if comparison.rows else {}
    summaries = [comparison.of_majority(title, tie_break) for title, tie_break in majorities.items()]
    summaries += [comparison.of_score(name) for name in source.score_names]
    frontiers = [summary.frontier for summary in summaries if summary.frontier is not None]
    try:
        areas = iter(common_auc(frontiers) if frontiers else [])
    except InvalidValue:  # they share no yield
        return summaries
    measured = [one if one.frontier is None else replace(one, common_auc=next(areas)) for one in summaries]
    jittered = next((one.common_auc for one in measured if one.title == JITTERED), math.nan)
    return [replace(one, warnings=(*one.warnings, *_doubts(one, jittered))) for one in measured]


def _doubts(summary: ScoreSummary, jittered: float) -> list[str]:
    """What labels say against a score."""
    if summary.name is None:
        return []
    doubts = []
    if summary.path_auroc < 0.5:
        doubts.append(
            f"the score {summary.name!r} ranks wrong paths above right ones more often than not (path AUROC "
            f"{summary.path_auroc:.2f}); its negation would do better"
        )
    if summary.common_auc < jittered:
        doubts.append(
            f"the score {summary.name!r} does not beat the majority vote: at the same yields {summary.common_auc:.1%} "
            f"of its answers are right, against {jittered:.1%}"
        )
    return doubts


class _Comparison:
    """What all the votes that are compared have in common."""

    def __init__(
        self,
        source: PoolSource,
        fields: FieldChoice,
        normaliser: str | None,
        weight: str | None,
        correct: str | LabelRule | None,
        own: Recipe | None,
    ) -> None:
        self.source, self.normaliser, self.weight, self.correct = source, normaliser, weight, correct
        self.fields, self.own = replace(fields, score=None), {fields.score: own}
        ready_made = as_label_rule(correct).label_field is not None
        self.rows: Sequence[int] = range(len(source.pools)) if ready_made else labelled_rows(source.pools)
        self.labelled = replace(source, pools=[source.pools[row] for row in self.rows])

    def of_majority(self, title: str, tie_break: str | None) -> ScoreSummary:
        recipe = self.source.recipe(tie_break=tie_break)
        return _voted(ScoreSummary(None, title, 0), self._vote(self.labelled, self.fields, recipe))

    def of_score(self, name: str) -> ScoreSummary:
        """One score; what is wrong with it becomes its warning, and the others are shown all the same."""
        try:
            return self._of_score(name)
        except (InvalidValue, PoolFileError) as error:
            paths = sum(name in path.scores for pool in self.source.pools for path in pool.paths)
            return ScoreSummary(name, name, paths, warnings=(f"{name}: {error}",))

    def _of_score(self, name: str) -> ScoreSummary:
        pools = self.source.pools
        scores = read_scores(_with_score(pools, name), name)
        values = [path.scores[name] for pool in pools for path in pool.paths if name in path.scores]
        missing = tuple(pool.problem.id for pool in pools if any(name not in path.scores for path in pool.paths))
        flags = dict(self.source.flags.get(name, {}))
        summary = ScoreSummary(name, name, len(values), min(values), max(values), flags, missing=missing)
        fields = replace(self.fields, score=name)
        if missing:  # over the pools that have it in all their paths
            whole = replace(self.labelled, pools=_with_score(self.labelled.pools, name))
            voted = self._vote(whole, fields, self.source.recipe(name)) if whole.pools else None
            return summary if voted is None else replace(summary, path_auroc=_path_auroc(voted))
        recipe = self.own.get(name) or self.source.recipe(name, self.normaliser, self.weight)
        warnings = tuple(ScoreHealth.of(scores, recipe).warnings(name))
        summary = replace(summary, normaliser=recipe.normaliser.name, warnings=warnings)
        return summary if not self.rows else _voted(summary, self._vote(self.labelled, fields, recipe))

    def _vote(self, source: PoolSource, fields: FieldChoice, recipe: Recipe) -> VotedPools:
        return vote_pools(source, fields, recipe, correct=self.correct)


def _with_score(pools: Sequence[Pool], name: str) -> list[Pool]:
    """The pools all of whose paths have a score."""
    return [pool for pool in pools if all(name in path.scores for path in pool.paths)]


def _voted(summary: ScoreSummary, voted: VotedPools) -> ScoreSummary:
    """A summary with what the vote makes of its score."""
    correct = voted.labelled[voted.counted]
    frontier = Frontier.of(Evidence.of(voted.votes.key[voted.counted], correct))
    ranking, accuracy = _path_auroc(voted), float(correct.mean())
    return replace(summary, path_auroc=ranking, vote_accuracy=accuracy, frontier_auc=frontier.auc, frontier=frontier)


def _path_auroc(voted: VotedPools) -> float:
    """Over all paths; one without an answer is wrong."""
    if voted.table is None or voted.table.scores is None or voted.labels is None:
        return math.nan
    right = voted.labels.of_paths(voted.table)
    values = np.array([value for row in voted.counted for value in voted.table.scores[row]], dtype=np.float64)
    labels = np.array([label for row in voted.counted for label in right[row]], dtype=np.bool_)
    levels, rank = np.unique(values, return_inverse=True)
    return auroc(Evidence.of(rank / len(levels), labels))
