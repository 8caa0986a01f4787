"""Scores of one set of pools side by side: how well each ranks paths, and what the vote makes of it.

One row of each cluster or question text counts, and only problems that have a label. All votes are compared on one set
of questions, those that have every score compared: a score that few have is left out, rather than most questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from demur.calibration import Guarantee
from demur.errors import InvalidValue, PoolFileError
from demur.evaluation.resampling import (
    NO_DIFFERENCE,
    NO_INTERVAL,
    Between,
    Difference,
    LabelledVotes,
    Redrawn,
    clustered_auroc,
    exact,
    standard_error,
)
from demur.evidence.frontier import Frontier
from demur.pools.fields import FieldChoice
from demur.pools.label_rule import LabelRule, as_label_rule
from demur.pools.labels import labelled_rows
from demur.pools.parts import ids_of, lacking_score, some_of, values_of, without_texts
from demur.pools.scores import read_scores
from demur.pools.source import PoolSource, vote_pools
from demur.pools.voted_pools import VotedPools
from demur.records import Pool
from demur.voting.recipe import Recipe
from demur.voting.score_health import ScoreHealth

MAJORITY, JITTERED = "majority vote", "majority vote with jitter"
_JITTERED_AT = 1
"""Its place among the votes compared."""
_ENOUGH = 0.5
"""The share of labelled problems that a comparison keeps, whatever score it has to leave out for that."""


@dataclass(frozen=True)
class ScoreSummary:
    """One score. What needs labels, or a value for every path, is NaN where they are missing.

    Intervals are for 95 % confidence over questions: see `evaluation.resampling`.
    """

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
    path_auroc_interval: Between = NO_INTERVAL
    path_auroc_error: float = math.nan
    """Its standard error over questions; so are the other errors."""
    vote_accuracy: float = math.nan
    vote_accuracy_interval: Between = NO_INTERVAL
    vote_accuracy_error: float = math.nan
    frontier_auc: float = math.nan
    frontier_auc_interval: Between = NO_INTERVAL
    frontier_auc_error: float = math.nan
    common_auc: float = math.nan
    """Mean selective accuracy over the yields that all the votes compared here can reach."""
    common_auc_interval: Between = NO_INTERVAL
    common_auc_error: float = math.nan
    answered: dict[float, Difference] = field(default_factory=dict)
    """By alpha, the yield of a policy calibrated on these questions, and its interval; for the guarantees asked for."""
    over_majority: Difference = NO_DIFFERENCE
    """`common_auc` less that of the jittered majority vote, and the paired interval of the difference."""
    behind_best: Difference = NO_DIFFERENCE
    """`common_auc` less that of the vote with the largest, and the paired interval of the difference."""
    within_noise: bool = False
    """Behind the best by a difference whose interval includes 0."""
    n: int = 0
    """Questions that the votes are compared on."""
    left_out: int = 0
    """Labelled questions that lack a score which is compared, and are left out for all votes."""
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Problems with a path that has no value."""
    own: bool = False
    """The vote is made by the recipe that was given as one's own."""
    frontier: Frontier | None = field(default=None, repr=False)


def compare_scores(
    source: PoolSource,
    fields: FieldChoice = FieldChoice(),  # noqa: B008 - frozen
    *,
    normaliser: str | None = None,
    weight: str | None = None,
    correct: str | LabelRule | None = None,
    own: Recipe | None = None,
    guarantees: Sequence[Guarantee] = (),
) -> list[ScoreSummary]:
    """Every score of the pools, behind the majority vote with and without jitter among equally confident votes.

    `own` is how the vote of the score that `fields` names is made; the others are voted on as their families are, or
    as told. For each of the `guarantees`, summaries have the yield of a policy.
    """
    comparison = _Comparison(source, fields, normaliser, weight, correct, own)
    majorities = (MAJORITY, JITTERED) if comparison.rows else ()
    summaries = [comparison.of_majority(title) for title in majorities]
    summaries += [comparison.of_score(name) for name in source.score_names]
    compared = [one for one in summaries if (one.name, one.title) in comparison.votes]
    if compared:
        redrawn = Redrawn.of([comparison.votes[one.name, one.title] for one in compared], guarantees)
        measured = {id(one): _measured(one, redrawn, at) for at, one in enumerate(compared)}
        summaries = [replace(measured.get(id(one), one), left_out=comparison.left_out) for one in summaries]
    return [replace(one, warnings=(*one.warnings, *_doubts(one))) for one in summaries]


def _measured(summary: ScoreSummary, redrawn: Redrawn, at: int) -> ScoreSummary:
    """One vote with its figures, their intervals, and how it stands to the others."""
    behind_best = redrawn.difference(at, redrawn.best)
    accuracy, frontier_auc, shared, *answered = redrawn.figures[at].tolist()
    intervals, errors = redrawn.intervals(at), redrawn.errors(at)
    return replace(
        summary,
        vote_accuracy=accuracy,
        vote_accuracy_interval=exact(accuracy, redrawn.n),
        vote_accuracy_error=errors[0],
        frontier_auc=frontier_auc,
        frontier_auc_error=errors[1],
        frontier_auc_interval=intervals[1],
        common_auc=shared,
        common_auc_error=errors[2],
        common_auc_interval=intervals[2],
        answered={
            guarantee.alpha: (rate, *between)
            for guarantee, rate, between in zip(redrawn.guarantees, answered, intervals[3:], strict=True)
        },
        over_majority=redrawn.difference(at, _JITTERED_AT),
        behind_best=behind_best,
        within_noise=at != redrawn.best and behind_best[0] <= 0 and not behind_best[2] < 0,
        n=redrawn.n,
    )


def _doubts(summary: ScoreSummary) -> list[str]:
    """What labels say against a score."""
    if summary.name is None:
        return []
    doubts = []
    if summary.path_auroc < 0.5:
        doubts.append(
            f"the score {summary.name!r} ranks wrong paths above right ones more often than not (path AUROC "
            f"{summary.path_auroc:.2f}); its negation would do better"
        )
    difference, lower, upper = summary.over_majority
    if difference < 0:
        told = "beyond noise" if upper < 0 else "within noise"
        between = f", 95 %: {100 * lower:+.1f} to {100 * upper:+.1f} points" if upper == upper else ""
        doubts.append(
            f"the score {summary.name!r} does not beat the majority vote: at the same yields {summary.common_auc:.1%} "
            f"of its answers are right, against {summary.common_auc - difference:.1%} ({told}{between})"
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
        rows = list(range(len(source.pools))) if ready_made else labelled_rows(source.pools)
        self.rows, self.names = shared_rows(source, rows, fields.score)
        self.labelled = replace(source, pools=some_of(source.pools, rows))
        self.compared = replace(source, pools=some_of(source.pools, self.rows))
        self.left_out = len(rows) - len(self.rows)
        self.votes: dict[tuple[str | None, str], LabelledVotes] = {}
        """By name and title, keys and labels of what has been voted on, one row per question."""

    def of_majority(self, title: str) -> ScoreSummary:
        recipe, own = self.source.recipe(tie_break="jitter" if title == JITTERED else "none"), self.own.get(None)
        is_own = own is not None and [part.name for part in own.ties] == [part.name for part in recipe.ties]
        voted = self._vote(self.compared, self.fields, own if own is not None and is_own else recipe)
        return self._voted(ScoreSummary(None, title, 0, own=is_own), voted)

    def of_score(self, name: str) -> ScoreSummary:
        """One score; what is wrong with it becomes its warning, and the others are shown all the same."""
        try:
            return self._of_score(name)
        except (InvalidValue, PoolFileError) as error:
            paths = sum(name in path.scores for pool in without_texts(self.source.pools) for path in pool.paths)
            return ScoreSummary(name, name, paths, warnings=(f"{name}: {error}",))

    def _of_score(self, name: str) -> ScoreSummary:
        pools = self.source.pools
        scores, values = read_scores(_with_score(pools, name), name), values_of(pools, name)
        low, high = float(values.min()), float(values.max())
        missing = tuple(ids_of(pools)[row] for row in lacking_score(pools, name))
        flags = dict(self.source.flags.get(name, {}))
        summary = ScoreSummary(name, name, len(values), low, high, flags, missing=missing)
        fields = replace(self.fields, score=name)
        if name not in self.names:  # over the pools that have it in all their paths, and no vote
            whole = replace(self.labelled, pools=_with_score(self.labelled.pools, name))
            voted = self._vote(whole, fields, self.source.recipe(name)) if whole.pools else None
            return summary if voted is None else _ranked(summary, voted)
        own = self.own.get(name)
        recipe = own or self.source.recipe(name, self.normaliser, self.weight)
        warnings = tuple(ScoreHealth.of(scores, recipe).warnings(name))
        summary = replace(summary, normaliser=recipe.normaliser.name, warnings=warnings, own=own is not None)
        return summary if not self.rows else self._voted(summary, self._vote(self.compared, fields, recipe))

    def _vote(self, source: PoolSource, fields: FieldChoice, recipe: Recipe) -> VotedPools:
        return vote_pools(source, fields, recipe, correct=self.correct)

    def _voted(self, summary: ScoreSummary, voted: VotedPools) -> ScoreSummary:
        """A summary with what the vote makes of its score."""
        votes = LabelledVotes.of(voted.votes.key[voted.counted], voted.labelled[voted.counted])
        self.votes[summary.name, summary.title] = votes
        return replace(_ranked(summary, voted), frontier=Frontier.of(votes.evidence))


def shared_rows(source: PoolSource, rows: Sequence[int], first: str | None) -> tuple[list[int], set[str]]:
    """The rows that have every score compared, and those scores.

    `first` is compared in any case; then the scores that most problems have, as long as enough are left.
    """
    having = {name: set(rows).difference(lacking_score(source.pools, name)) for name in source.score_names}
    shared, names = set(rows), set[str]()
    for name in sorted(having, key=lambda name: (name != first, -len(having[name]), name)):
        left = shared & having[name]
        if (left and name == first) or len(left) >= _ENOUGH * len(rows):
            shared, names = left, {*names, name}
    return sorted(shared), names


def _with_score(pools: Sequence[Pool], name: str) -> Sequence[Pool]:
    """The pools all of whose paths have a score."""
    lacking = lacking_score(pools, name)
    return some_of(pools, np.setdiff1d(np.arange(len(pools)), lacking)) if lacking else pools


def _ranked(summary: ScoreSummary, voted: VotedPools) -> ScoreSummary:
    """A summary with how well its score ranks all paths; one without an answer is wrong."""
    if voted.table is None or voted.table.scores is None or voted.labels is None:
        return summary
    right, rows = voted.labels.of_paths(voted.table), voted.counted.tolist()
    area, between = clustered_auroc([voted.table.scores[row] for row in rows], [right[row] for row in rows])
    error = standard_error(area, between)
    return replace(summary, path_auroc=area, path_auroc_interval=between, path_auroc_error=error)
