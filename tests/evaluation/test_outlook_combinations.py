"""What audits are told to expect, where groups take the threshold of all, overlap, or an alpha or a vote was chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.calibration.band import band
from demur.monitoring import ErrorMonitor


def grouped_votes(groups, seed=0):
    rng = np.random.default_rng(seed)
    n = len(groups)
    right = rng.random(n) < 0.6
    answers = [["a"] * 7 + ["b"] * int(rng.integers(0, 6)) for _ in range(n)]
    answers = [pool + ["c"] * (13 - len(pool)) for pool in answers]
    return dm.vote(answers, ids=[f"{seed} {row}" for row in range(n)], groups=groups), right


def mean(outlook):
    return float(outlook.counts @ np.arange(len(outlook.counts)))


def test_questions_that_take_the_threshold_of_all_are_expected_to_be_wrong_as_often_as_all():
    """They are answered, however few of their own group calibrated: no errors at all are not to be expected."""
    votes, right = grouped_votes(["large"] * 200 + ["small"] * 3)
    policy = dm.calibrate(votes, right, guarantee=dm.Grouped(dm.Marginal(0.1), fallback="pooled"))
    pooled = dm.calibrate(votes, right, alpha=0.1)
    for kind in (("small",), ("new",), ()):
        told = dm.audit_outlook(policy, {(kind, 13): 100})
        assert mean(told) == pytest.approx(mean(dm.audit_outlook(pooled, 100)))
        assert mean(told) > 5
    abstaining = dm.calibrate(votes, right, guarantee=dm.Grouped(dm.Marginal(0.1)))
    assert mean(dm.audit_outlook(abstaining, {(("small",), 13): 100})) == 0


def test_questions_of_two_groups_are_expected_to_be_wrong_as_often_as_those_of_the_smaller_one():
    """However few calibration questions are of just these two."""
    votes, right = grouped_votes([["a"]] * 150 + [["b"]] * 100 + [["a", "b"]] * 3)
    policy = dm.calibrate(votes, right, guarantee=dm.Grouped(dm.Marginal(0.1)))
    told = dm.audit_outlook(policy, {(("a", "b"), 13): 100})
    assert 5 < mean(told) <= 100 * 0.1


def worst_ranks(n, runs, seed):
    """Of many calibrations the rank whose true rate is highest for its law, and that rate."""
    uniforms = np.sort(np.random.default_rng(seed).random((runs, n)), axis=1)
    ranks = np.arange(1, n + 1)
    worst = stats.beta.sf(uniforms, ranks, n + 1 - ranks).argmin(axis=1)
    return 1 + worst, uniforms[np.arange(runs), worst]


def test_the_calibrated_level_holds_for_an_alpha_that_was_chosen_late():
    """Its promise is about every alpha at once, so whichever is monitored may be the unluckiest of all."""
    n, delta, runs = 200, 0.1, 2000
    ranks, rates = worst_ranks(n, runs, seed=0)
    named = band(n, 0.1)
    above, naive = 0, 0
    levels = {}
    for rank, rate in zip(ranks.tolist(), rates.tolist(), strict=True):
        alpha = min(0.999999, np.ceil(named.bound(rank) * 1e6) / 1e6)
        law = dm.Simultaneous(alpha, 0.1).law(n)
        if law.k != rank:  # two ranks of one bound, at the end of the band
            continue
        if rank not in levels:
            levels[rank] = 1 - stats.beta.ppf(delta / 2 / law.choices, n + 1 - rank, rank)
        above += rate > levels[rank]
        naive += rate > stats.beta.isf(delta / 2, rank, n + 1 - rank)
    most = stats.binom.isf(1e-6, runs, delta / 2)
    assert above <= most < naive


def test_monitors_and_audits_allow_for_every_alpha_that_might_have_been_chosen():
    pools = dm.simulate_pools(300, n_paths=8, seed=0)
    votes = dm.VotedPools.of(dm.vote(pools.answers, pools.scores, ids=list(map(str, range(300)))), gold=pools.gold)
    policy = dm.calibrate(votes, guarantee=[dm.HighProbability(0.1, 0.1), dm.Simultaneous(0.1, 0.1)])
    monitor = ErrorMonitor(policy, guarantee="simultaneous")
    k = policy.point(0.1, "simultaneous").law.k
    assert monitor.level == pytest.approx(stats.beta.isf(monitor.delta / 2 / 300, k, 301 - k), rel=1e-6)
    law = policy.law_on(policy.point(0.1, "simultaneous"), {8: 100})
    assert law.upper_tail(20, 100) == pytest.approx(300 * stats.betabinom.sf(19, 100, k, 301 - k), rel=1e-3)
    told = dm.audit_outlook(policy, 100, alpha=0.1, guarantee="simultaneous")
    assert "at most" not in told.sentence  # of an alpha that was named beforehand


def test_of_a_way_to_vote_that_labels_chose_the_outlook_is_a_bound_and_says_so():
    votes, right = grouped_votes([None] * 300)
    policy = dm.calibrate(votes, right, guarantee=dm.Marginal(0.1, choices=3))
    assert "at most about" in dm.audit_outlook(policy, 50).sentence
