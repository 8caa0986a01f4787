"""Paths that waves save on recorded pools, the decisions being those of all paths.

    python docs/waves_results.py FOLDER

prints the part of docs/results.md that `docs/results.py` puts there.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration import Marginal
from demur.evidence.counts import Evidence, ThresholdKey
from demur.pools.fields import FieldChoice, read_keys
from demur.pools.jsonl import read_pools
from demur.pools.scores import read_scores
from demur.pools.source import PoolSource, vote_pools
from demur.pools.spellings import spelling_is_settled
from demur.pools.splits import repeated
from demur.records import Pool
from demur.scoring import Perplexity
from demur.study.tables import Table, Value
from demur.voting.prospects import prospects
from demur.voting.reach import ANY_NUMBER, Range

SIZES = (1, 2, 4, 8)
ALPHAS = (0.1, 0.05)
_SPLITS, _N_CAL = 400, 200
_NORMALISERS = ("none", "fixed_sigmoid", "pool_minmax", "rank", "pool_z")
_LOG_PROBABILITY: Range = (-math.inf, 0.0)
_MOST_POOLS = 1500

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prefixes:
    """What is certain of each pool after each number of paths: n × (m − 1)."""

    keys: Floats
    """Of the whole pools: share and jitter, n × 2."""
    right: NDArray[np.bool_]
    least: Floats
    """0 where it is open who wins, or how the answer is written."""
    most: Floats

    @property
    def n_paths(self) -> int:
        return self.least.shape[1] + 1

    def settled(self, threshold: ThresholdKey, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """How many paths settle the decision on each of some pools."""
        share, tie = threshold
        wins = self.keys[rows, 1:] > tie
        least, most = self.least[rows], self.most[rows]
        certain = (least > share) | ((least == share) & wins) | (most < share) | ((most == share) & ~wins)
        return np.where(certain.any(axis=1), certain.argmax(axis=1) + 1, self.n_paths)


def prefixes(pools: Sequence[Pool], fields: FieldChoice, how: dict[str, Any], within: Range) -> Prefixes:
    """Vote on pools of one size, whole and in part."""
    source = PoolSource(pools)
    voted = vote_pools(source, fields, source.recipe(fields.score, tie_break="jitter:0", **how))
    scores: Any = [None] * len(pools) if fields.score is None else read_scores(pools, fields.score)
    n_paths = len(pools[0].paths)
    least, most = np.zeros((len(pools), n_paths - 1)), np.ones((len(pools), n_paths - 1))
    for row, (pool, numbers) in enumerate(zip(pools, scores, strict=True)):
        keys, texts = read_keys(pool, fields)
        for drawn in range(1, n_paths):
            some, left = keys[:drawn], n_paths - drawn
            found = prospects(voted.votes.recipe, some, numbers and numbers[:drawn], left, within)
            most[row, drawn - 1] = found.most
            if found.leader is not None and spelling_is_settled(found.leader, some, texts[:drawn], left):
                least[row, drawn - 1] = found.least
    return Prefixes(voted.votes.key, voted.labelled, least, most)


def saved(found: Prefixes, alpha: float, n_cal: int) -> list[float]:
    """The mean share of paths that waves of each size save, over splits of which one part calibrates."""
    calibration, test = repeated(len(found.right), n_cal, _SPLITS, 0)
    drawn = np.zeros(len(SIZES))
    for cal, rest in zip(calibration, test, strict=True):
        threshold = Marginal(alpha).settle(Evidence.of(found.keys[cal], found.right[cal])).threshold_key
        settled = found.settled(threshold, rest)
        waves = [np.minimum(-(-settled // size) * size, found.n_paths) for size in SIZES]
        drawn += [each.mean() for each in waves]
    return (1 - drawn / _SPLITS / found.n_paths).tolist()  # type: ignore[no-any-return]


def waves_part(folder: Path, files: Sequence[Any]) -> list[str]:
    """The part of the page about waves; `files` are those of `results.FILES`."""
    majority, weighted = list[list[Value]](), list[list[Value]]()
    for recorded in files:
        pools = _of_one_size(read_pools(folder / f"{recorded.file}.jsonl.gz"))
        fields = FieldChoice(recorded.answer_field, missing=recorded.missing, task=recorded.task)
        name, n_cal = f"{recorded.dataset} / {recorded.model}", recorded.n_cal or _N_CAL
        majority.append(_row([name], prefixes(pools, fields, {}, ANY_NUMBER), n_cal))
        score = "perplexity" if recorded.logprobs else next(iter(pools[0].paths[0].scores), None)
        if score is None:
            continue
        within = _LOG_PROBABILITY if recorded.logprobs else ANY_NUMBER
        if recorded.logprobs:
            pools = [_with_perplexity(pool) for pool in pools]
        values = np.concatenate(read_scores(pools, score))
        for kind in _NORMALISERS:
            spec = (
                f"fixed_sigmoid:{float(values.mean())!r},{float(values.std())!r}" if kind == "fixed_sigmoid" else kind
            )
            how = {"normaliser": spec, "weight": "exponential"}
            found = prefixes(pools, replace(fields, score=score), how, within)
            weighted.append(_row([name, score, kind], found, n_cal))
    heads = [f"waves of {size}, α = {alpha:g}" for alpha in ALPHAS for size in SIZES]
    tables = [
        Table("waves", "Majority vote", ["", "m", *heads], majority),
        Table("waves-weighted", "Weights by a score", ["", "score", "normaliser", "m", *heads], weighted),
    ]
    return ["## Paths that waves save", "", _INTRODUCTION, "", *(table.markdown() for table in tables)]


def _row(name: list[Value], found: Prefixes, n_cal: int) -> list[Value]:
    shares = [share for alpha in ALPHAS for share in saved(found, alpha, n_cal)]
    return [*name, found.n_paths, *(f"{share:.0%}" for share in shares)]


def _of_one_size(pools: Sequence[Pool]) -> list[Pool]:
    """The first pools of the number of paths that most have."""
    usual = Counter(len(pool.paths) for pool in pools).most_common(1)[0][0]
    return [pool for pool in pools if len(pool.paths) == usual][:_MOST_POOLS]


def _with_perplexity(pool: Pool) -> Pool:
    values = Perplexity().score(pool)
    paths = [replace(path, scores={"perplexity": value}) for path, value in zip(pool.paths, values, strict=True)]
    return replace(pool, paths=tuple(paths))


_INTRODUCTION = (
    "Paths asked for a few at a time, in order of index, until the decision of the whole pool is certain "
    "([theory](theory.md#fewer-paths-the-same-decision)): the share of all paths that this saves, every decision being "
    "the one that all m paths bring, and every answer written as they write it. Means over 400 random splits, of which "
    "200 questions calibrate (as above in smaller files), ties broken by jitter, pools of the size that most have, at "
    f"most {_MOST_POOLS:,} of a file. Of weights, perplexity is known to be at most 0, the mean of log-probabilities; "
    "nothing is known of the range of a reward, so that without a normaliser one more path may outweigh all others and "
    "nothing is saved. With `pool_z` a missing path may stand so far out that an answer is seldom certain, "
    "and mostly abstentions save paths."
)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    from results import FILES

    print("\n".join(waves_part(Path(sys.argv[1]), FILES)))


if __name__ == "__main__":
    main()
