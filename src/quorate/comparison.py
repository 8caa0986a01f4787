"""Scores of one set of pools side by side: how well each ranks paths, and what the vote makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from quorate.electorate import Source, hold_vote
from quorate.errors import InvalidValue, PoolFileError
from quorate.evidence import Evidence
from quorate.frontier import Frontier, auroc, common_auc
from quorate.labels import labelled_rows, read_labels
from quorate.pool_table import Reading, read_scores, read_table
from quorate.records import Pool
from quorate.score_health import ScoreHealth

MAJORITY, JITTERED = "majority vote", "majority vote, ties at random"


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


def compare_scores(source: Source, *, normaliser: str | None = None, weight: str | None = None) -> list[ScoreSummary]:
    """Every score of the pools, behind the majority vote with and without ties broken at random."""
    rows = labelled_rows(source.pools)
    names = sorted({name for pool in source.pools for path in pool.paths for name in path.scores})
    found: list[ScoreSummary] = []
    frontiers: list[Frontier | None] = []
    for name in names:
        summary, frontier = _of_score(source, name, rows, normaliser, weight)
        found.append(summary)
        frontiers.append(frontier)
    if rows:
        labelled = replace(source, pools=[source.pools[row] for row in rows])
        for position, (title, tie_break) in enumerate(((MAJORITY, None), (JITTERED, "jitter:0"))):
            summary, frontier = _of_vote(labelled, ScoreSummary(None, title, 0), tie_break=tie_break)
            found.insert(position, summary)
            frontiers.insert(position, frontier)
    known = [frontier for frontier in frontiers if frontier is not None]
    try:
        areas = iter(common_auc(known) if known else [])
    except InvalidValue:  # they share no yield
        return found
    return [
        summary if frontier is None else replace(summary, common_auc=next(areas))
        for summary, frontier in zip(found, frontiers, strict=True)
    ]


def frontier_of(source: Source, summary: ScoreSummary, normaliser: str | None = None) -> Frontier | None:
    """The frontier of a summarised vote, on the problems that have gold; None where it has none."""
    rows = labelled_rows(source.pools)
    if not rows or math.isnan(summary.vote_accuracy):
        return None
    labelled = replace(source, pools=[source.pools[row] for row in rows])
    tie_break = "jitter:0" if summary.title == JITTERED else None
    return _of_vote(labelled, summary, normaliser=normaliser if summary.name else None, tie_break=tie_break)[1]


def _of_score(
    source: Source, name: str, rows: Sequence[int], normaliser: str | None, weight: str | None
) -> tuple[ScoreSummary, Frontier | None]:
    pools = source.pools
    values = [path.scores[name] for pool in pools for path in pool.paths if name in path.scores]
    try:
        read_scores([pool for pool in pools if all(name in path.scores for path in pool.paths)], name)
    except (InvalidValue, PoolFileError) as error:
        return ScoreSummary(name, name, len(values), warnings=(str(error),)), None
    missing = tuple(pool.problem.id for pool in pools if any(name not in path.scores for path in pool.paths))
    summary = ScoreSummary(
        name, name, len(values), min(values), max(values), dict(source.flags.get(name, {})), missing=missing
    )
    if missing:
        if rows:
            summary = replace(summary, path_auroc=_path_auroc([pools[row] for row in rows], name))
        return summary, None
    reading = Reading(score=name)
    recipe = source.recipe(reading, normaliser, weight)
    scores = [[float(path.scores[name]) for path in pool.paths] for pool in pools]
    warnings = tuple(ScoreHealth.of(scores, recipe).warnings(name))
    summary = replace(summary, normaliser=recipe.normaliser.name, warnings=warnings)
    if not rows:
        return summary, None
    labelled = replace(source, pools=[pools[row] for row in rows])
    summary = replace(summary, path_auroc=_path_auroc(labelled.pools, name))
    return _of_vote(labelled, summary, normaliser=normaliser, weight=weight)


def _of_vote(
    source: Source,
    summary: ScoreSummary,
    *,
    normaliser: str | None = None,
    weight: str | None = None,
    tie_break: str | None = None,
) -> tuple[ScoreSummary, Frontier]:
    reading = Reading(score=summary.name)
    recipe = source.recipe(reading, normaliser, weight, tie_break)
    voted = hold_vote(source, reading, recipe, labelled=True)
    frontier = Frontier.of(Evidence.of(voted.votes.key, voted.correct()))
    accuracy = float(voted.correct().mean())
    return replace(summary, vote_accuracy=accuracy, frontier_auc=frontier.auc), frontier


def _path_auroc(pools: Sequence[Pool], name: str) -> float:
    """Over all paths of all problems that have a value; a path without an answer is wrong."""
    table = read_table(pools, Reading())
    right = read_labels(pools, table).of_paths(table)
    scored = [
        (path.scores[name], label)
        for pool, labels in zip(pools, right, strict=True)
        for path, label in zip(pool.paths, labels, strict=True)
        if name in path.scores
    ]
    if not scored:
        return math.nan
    values, labels = zip(*scored, strict=True)
    levels, rank = np.unique(np.array(values, dtype=np.float64), return_inverse=True)
    return auroc(Evidence.of(rank / len(levels), np.array(labels, dtype=np.bool_)))
