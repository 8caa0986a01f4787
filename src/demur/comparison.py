"""Scores of one set of pools side by side: how well each ranks paths, and what the vote makes of it.

One row of each cluster or question text counts, and only problems that have a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from demur.electorate import Electorate, Source, hold_vote
from demur.errors import InvalidValue, PoolFileError
from demur.evidence import Evidence
from demur.frontier import Frontier, auroc, common_auc
from demur.labels import labelled_rows
from demur.pool_table import Reading, read_scores
from demur.score_health import ScoreHealth
from demur.splits import one_per_unit
from demur.voting import Recipe

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
    source: Source,
    reading: Reading | None = None,
    *,
    normaliser: str | None = None,
    weight: str | None = None,
    correct: str | None = None,
    own: Recipe | None = None,
) -> list[ScoreSummary]:
    """Every score of the pools, behind the majority vote with and without jitter among equally confident votes.

    `own` is how the vote of one of the scores is made; the others are voted on as their families are, or as told.
    """
    comparison = _Comparison(source, replace(reading or Reading(), score=None), normaliser, weight, correct, own)
    names = sorted({name for pool in source.pools for path in pool.paths for name in path.scores})
    found = [comparison.of_score(name) for name in names]
    if comparison.rows:
        found = [comparison.of_majority(MAJORITY, None), comparison.of_majority(JITTERED, "jitter:0"), *found]
    frontiers = [each.frontier for each in found if each.frontier is not None]
    try:
        areas = iter(common_auc(frontiers) if frontiers else [])
    except InvalidValue:  # they share no yield
        return found
    measured = [each if each.frontier is None else replace(each, common_auc=next(areas)) for each in found]
    jittered = next((each.common_auc for each in measured if each.title == JITTERED), math.nan)
    return [replace(each, warnings=(*each.warnings, *_doubts(each, jittered))) for each in measured]


def _doubts(summary: ScoreSummary, jittered: float) -> list[str]:
    """What labels say against a score."""
    if summary.name is None:
        return []
    found = []
    if summary.path_auroc < 0.5:
        found.append(
            f"the score {summary.name!r} ranks wrong paths above right ones more often than not (path AUROC "
            f"{summary.path_auroc:.2f}); its negation would do better"
        )
    if summary.common_auc < jittered:
        found.append(
            f"the score {summary.name!r} does not beat the majority vote: at the same yields {summary.common_auc:.1%} "
            f"of its answers are right, against {jittered:.1%}"
        )
    return found


class _Comparison:
    """What all the votes that are compared have in common."""

    def __init__(
        self,
        source: Source,
        reading: Reading,
        normaliser: str | None,
        weight: str | None,
        correct: str | None,
        own: Recipe | None,
    ) -> None:
        self.source, self.reading, self.normaliser, self.weight = source, reading, normaliser, weight
        self.correct, self.own = correct, own
        self.rows: Sequence[int] = range(len(source.pools)) if correct is not None else labelled_rows(source.pools)
        self.labelled = replace(source, pools=[source.pools[row] for row in self.rows])

    def of_majority(self, title: str, tie_break: str | None) -> ScoreSummary:
        recipe = self.source.recipe(self.reading, tie_break=tie_break)
        return _voted(ScoreSummary(None, title, 0), self._hold(self.reading, recipe))

    def of_score(self, name: str) -> ScoreSummary:
        """One score; what is wrong with it becomes its warning, and the others are shown all the same."""
        try:
            return self._of_score(name)
        except (InvalidValue, PoolFileError) as error:
            held = sum(name in path.scores for pool in self.source.pools for path in pool.paths)
            return ScoreSummary(name, name, held, warnings=(f"{name}: {error}",))

    def _of_score(self, name: str) -> ScoreSummary:
        pools = self.source.pools
        whole = [pool for pool in pools if all(name in path.scores for path in pool.paths)]
        scores = read_scores(whole, name)
        values = [path.scores[name] for pool in pools for path in pool.paths if name in path.scores]
        summary = ScoreSummary(
            name, name, len(values), min(values), max(values), dict(self.source.flags.get(name, {})),
            missing=tuple(pool.problem.id for pool in pools if any(name not in path.scores for path in pool.paths)),
        )  # fmt: skip
        reading = replace(self.reading, score=name)
        if summary.missing:
            return replace(summary, path_auroc=self._partial_auroc(reading))
        recipe = self.own if self.own is not None and self.own.score == name else None
        recipe = recipe or self.source.recipe(reading, self.normaliser, self.weight)
        warnings = tuple(ScoreHealth.of(scores, recipe).warnings(name))
        summary = replace(summary, normaliser=recipe.normaliser.name, warnings=warnings)
        return summary if not self.rows else _voted(summary, self._hold(reading, recipe))

    def _partial_auroc(self, reading: Reading) -> float:
        """Of a score that some pools lack: over those that have it."""
        name = str(reading.score)
        whole = [pool for pool in self.labelled.pools if all(name in path.scores for path in pool.paths)]
        if not whole:
            return math.nan
        some = replace(self.labelled, pools=whole)
        voted = hold_vote(some, reading, self.source.recipe(reading), labelled=True, correct=self.correct)
        return _path_auroc(voted, one_per_unit(voted.table.ids, voted.units()))

    def _hold(self, reading: Reading, recipe: Recipe) -> Electorate:
        return hold_vote(self.labelled, reading, recipe, labelled=True, correct=self.correct)


def _voted(summary: ScoreSummary, voted: Electorate) -> ScoreSummary:
    """A summary with what the vote makes of its score."""
    kept = one_per_unit(voted.table.ids, voted.units())
    correct = voted.correct()[kept]
    frontier = Frontier.of(Evidence.of(voted.votes.key[kept], correct))
    return replace(
        summary, path_auroc=_path_auroc(voted, kept), vote_accuracy=float(correct.mean()), frontier_auc=frontier.auc,
        frontier=frontier,
    )  # fmt: skip


def _path_auroc(voted: Electorate, kept: NDArray[np.intp]) -> float:
    """Over all paths; one without an answer is wrong."""
    if voted.table.scores is None or voted.labels is None:
        return math.nan
    right = voted.labels.of_paths(voted.table)
    values = np.array([value for row in kept for value in voted.table.scores[row]], dtype=np.float64)
    labels = np.array([label for row in kept for label in right[row]], dtype=np.bool_)
    levels, rank = np.unique(values, return_inverse=True)
    return auroc(Evidence.of(rank / len(levels), labels))
