"""Rules for a cascade, side by side on recorded pools: what `results.py` tabulates.

The paths of a file come from many models or prompts: the weaker half of them is the cheap stage, the stronger half the
other one. Which is which is settled on half of the questions, and everything else happens on the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from demur import Marginal
from demur.calibration.cascade import ranks_of, successive_thresholds
from demur.evidence.counts import Evidence, Floats, exceeds
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.pools.splits import repeated, split
from demur.pools.voted_pools import VotedPools
from demur.records import Pool

Keys = Sequence[Floats]
Labels = Sequence[NDArray[np.bool_]]
Thresholds = Sequence[tuple[float, ...]]
COSTS = (1.0, 10.0)


def each_alone(keys: Keys, right: Labels, alpha: float) -> Thresholds:
    """Alpha at each stage, as though it were the only one: no promise follows from that."""
    k = Marginal(alpha).rank(len(keys[0]))
    return [Evidence.of(key, good).threshold(k) for key, good in zip(keys, right, strict=True)]


def only(stage: int) -> Callable[[Keys, Labels, float], Thresholds]:
    """One stage, the other never answers."""

    def rule(keys: Keys, right: Labels, alpha: float) -> Thresholds:
        ranks = [0, 0]
        ranks[stage] = Marginal(alpha).rank(len(keys[0]))
        return successive_thresholds(keys, right, ranks)

    return rule


def split_budget(keys: Keys, right: Labels, alpha: float) -> Thresholds:
    """Half of the errors to each stage, each calibrated on all questions."""
    ranks = ranks_of(Marginal(alpha).rank(len(keys[0])), ["1/2", "1/2"])
    return [Evidence.of(key, good).threshold(k) for key, good, k in zip(keys, right, ranks, strict=True)]


def envelope(keys: Keys, right: Labels, alpha: float) -> Thresholds:
    """One threshold for both stages, on a loss made monotone: wrong at any threshold that is as high or higher.

    A question is then wrong below the largest key at which a stage that no earlier one has overtaken is wrong: one
    order statistic again.
    """
    highest = np.full(keys[0].shape, -np.inf)
    worst = np.full(keys[0].shape, -np.inf)
    for key, good in zip(keys, right, strict=True):
        overtakes = _larger(key, highest)
        worst = np.where((overtakes & ~good)[:, None], key, worst)
        highest = np.where(overtakes[:, None], key, highest)
    confident = worst[:, 0] > 0
    where = np.where(confident[:, None], worst, 0.0)
    threshold = Evidence.of(where, ~confident).threshold(Marginal(alpha).rank(len(where)))
    return [threshold] * len(keys)


def _larger(keys: Floats, others: Floats) -> NDArray[np.bool_]:
    over, level = np.zeros(len(keys), dtype=np.bool_), np.ones(len(keys), dtype=np.bool_)
    for column, bound in zip(keys.T, others.T, strict=True):
        over |= level & (column > bound)
        level &= column == bound
    return over


def successive(share: str) -> Callable[[Keys, Labels, float], Thresholds]:
    """`calibrate_cascade`, with this share of the errors to the cheap stage."""

    def rule(keys: Keys, right: Labels, alpha: float) -> Thresholds:
        k = Marginal(alpha).rank(len(keys[0]))
        first = ranks_of(k, [share, "1"])[0]
        return successive_thresholds(keys, right, [first, k - first])

    return rule


RULES: dict[str, Callable[[Keys, Labels, float], Thresholds]] = {
    "alpha at each stage": each_alone,
    "cheap alone": only(0),
    "strong alone": only(1),
    "split, all questions": split_budget,
    "envelope": envelope,
    "successive 1/4": successive("1/3"),
    "successive 1/2": successive("1"),
    "successive 3/4": successive("3"),
}


@dataclass(frozen=True)
class Outcome:
    """One rule on one file, means over splits."""

    confident_error: float
    answered: float
    cost: float


def compare_cascades(keys: Keys, right: Labels, *, n_cal: int, alpha: float, splits: int = 400) -> dict[str, Outcome]:
    """Every rule on random splits of one file."""
    calibration, test = repeated(len(right[0]), n_cal, splits, 0)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RULES}
    for cal, rest in zip(calibration, test, strict=True):
        seen = [key[cal] for key in keys], [good[cal] for good in right]
        for name, rule in RULES.items():
            thresholds = rule(*seen, alpha)
            reached, wrong, answered, cost = np.ones(len(rest), dtype=np.bool_), 0, 0, 0.0
            for key, good, threshold, price in zip(keys, right, thresholds, COSTS, strict=True):
                if threshold[0] == 1.0 and not np.isfinite(threshold[-1]):
                    continue  # a stage that never answers is not paid for
                cost += price * reached.mean()
                answers = reached & exceeds(key[rest], threshold)
                wrong += int((answers & ~good[rest]).sum())
                answered += int(answers.sum())
                reached &= ~answers
            found[name].append((wrong / len(rest), answered / len(rest), cost))
    return {name: Outcome(*map(float, np.mean(rows, axis=0))) for name, rows in found.items()}


def stages_of(source: PoolSource, fields: FieldChoice) -> list[VotedPools]:
    """The votes of the weaker and of the stronger half of a file's sources, on questions that did not tell which."""
    pools = source.pools
    halves = split([pool.problem.id for pool in pools], seed=0, tune=0.5)
    names = sorted({str(path.extra.get("src")) for pool in pools for path in pool.paths})

    def of(sources: set[str], rows: NDArray[np.intp]) -> VotedPools:
        some = [pools[row] for row in rows.tolist()]
        kept = [Pool(pool.problem, tuple(p for p in pool.paths if str(p.extra.get("src")) in sources)) for pool in some]
        part = replace(source, pools=[pool for pool in kept if pool.paths])
        return vote_pools(part, fields, part.recipe(tie_break="jitter:0"))

    accuracy = {name: float(of({name}, halves.tune).labelled.mean()) for name in names}
    ordered = sorted(names, key=lambda name: (accuracy[name], name))
    middle = len(ordered) // 2
    return [of(set(part), halves.calibration) for part in (ordered[:middle], ordered[middle:])]


def read_stages(file: FilePath, answer_field: str, missing: tuple[str, ...]) -> list[VotedPools]:
    """The two stages of a file."""
    return stages_of(PoolSource(read_pools(file)), FieldChoice(answer_field, missing=missing))
