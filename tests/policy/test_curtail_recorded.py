"""On every recorded pool: waves of every size decide what all paths decide."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from results import FILES

import demur as dm
from demur.pools.fields import FieldChoice, read_keys
from demur.pools.jsonl import read_pools
from demur.pools.scores import read_scores
from demur.pools.source import PoolSource, vote_pools
from demur.scoring import Perplexity

pytestmark = pytest.mark.real_data
NORMALISERS = ("none", "pool_z", "pool_minmax", "rank", "fixed_sigmoid:-0.3,0.2")
MOST = 400


def pools_of(folder, recorded):
    """Pools of the size that most have; every k-th of a large file."""
    pools = read_pools(folder / f"{recorded.file}.jsonl.gz")
    usual = Counter(len(pool.paths) for pool in pools).most_common(1)[0][0]
    some = [pool for pool in pools if len(pool.paths) == usual]
    return some[:: 1 + len(some) // MOST]


def all_agree(policy, pools, fields, scores, within):
    """Prefixes of every length, and so waves of every size, say what the whole pool says; how many paths are saved."""
    table = policy.vote(PoolSource(pools)).votes
    saved = 0
    for rule in policy.points:
        decided = policy.decide_votes(table, alpha=rule.alpha)
        for row, pool in enumerate(pools):
            keys, _ = read_keys(pool, fields)
            certain = dm.Curtailment(
                policy, n_paths=len(keys), alpha=rule.alpha, question=pool.problem, id=pool.problem.id, within=within,
                all_scored=True,
            )  # fmt: skip
            whole = table.winners[row] if decided.answered[row] else None
            settled = len(keys)
            for drawn in range(len(keys) - 1, 0, -1):
                early = certain.early(keys[:drawn], None if scores is None else scores[row][:drawn])
                if early is not None:
                    assert early.answer == whole
                    assert table.confidence[row] <= early.most
                    settled = drawn
            saved += len(keys) - settled
    return saved / (len(pools) * len(policy.points) * len(pools[0].paths))


@pytest.mark.parametrize("recorded", FILES, ids=[recorded.file for recorded in FILES])
def test_majority_votes(recorded_pools, recorded):
    pools = pools_of(recorded_pools, recorded)
    fields = FieldChoice(recorded.answer_field, missing=recorded.missing, task=recorded.task)
    voted = vote_pools(PoolSource(pools), fields, PoolSource(pools).recipe(tie_break="jitter:0"))
    policy = dm.calibrate(voted, alpha=[0.1, 0.2])
    assert all_agree(policy, pools, FieldChoice.of(policy.description), None, (-math.inf, math.inf)) > 0.05


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("recorded", [one for one in FILES if one.logprobs or "qwen" in one.file], ids=lambda r: r.file)
def test_weighted_votes(recorded_pools, recorded, normaliser):
    pools = pools_of(recorded_pools, recorded)
    score, within = next(iter(pools[0].paths[0].scores), "perplexity"), (-math.inf, math.inf)
    if recorded.logprobs:
        score, within = "perplexity", (-math.inf, 0.0)
        pools = [
            replace(pool, paths=tuple(replace(path, scores={score: value}) for path, value in zip(
                pool.paths, Perplexity().score(pool), strict=True))) for pool in pools
        ]  # fmt: skip
    fields = FieldChoice(recorded.answer_field, score, missing=recorded.missing, task=recorded.task)
    for ties in ("jitter:0", "mean_score"):
        source = PoolSource(pools)
        recipe = source.recipe(score, normaliser=normaliser, weight="exponential", tie_break=ties)
        policy = dm.calibrate(vote_pools(source, fields, recipe), alpha=[0.1, 0.2])
        saved = all_agree(policy, pools, FieldChoice.of(policy.description), read_scores(pools, score), within)
        if normaliser == "rank":
            assert saved > 0.05


def test_the_greedy_rule_differs(recorded_pools):
    """The control: half of the paths, decided as if they were all, decide otherwise."""
    recorded = next(one for one in FILES if one.file == "mmlupro_text_1in8")
    pools = pools_of(recorded_pools, recorded)
    voted = vote_pools(PoolSource(pools), FieldChoice(), PoolSource(pools).recipe(tie_break="jitter:0"))
    policy = dm.calibrate(voted, alpha=0.1)
    whole = policy.decide_votes(voted.votes).answered
    halves = [replace(pool, paths=pool.paths[: len(pool.paths) // 2]) for pool in pools]
    half = vote_pools(PoolSource(halves), FieldChoice(), PoolSource(halves).recipe(tie_break="jitter:0")).votes
    assert np.mean((half.confidence > policy.threshold) != whole) > 0.02
