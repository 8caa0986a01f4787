"""Stopping rules compared on pools that have all their paths: on the same questions and splits, at equal alpha."""

from __future__ import annotations

import numpy as np
import pytest
import stopping_results

import demur as dm
from demur import stopping
from demur.errors import InvalidValue
from demur.evaluation.repeated_splits import evaluate_splits
from demur.voting.codes import code_answers

RULES = [stopping.beta(0.95), stopping.agreement(3, wave=1)]


@pytest.fixture(scope="module")
def source():
    return dm.PoolSource(dm.simulate_pools(300, seed=6).pools())


def test_each_row_is_what_the_rule_brings_by_itself(source):
    """Against replay, vote and splits done one by one."""
    compared = dm.compare_stopping(source, RULES, alpha=0.1, splits=30, n_cal=100)
    assert [row.stopping.rule.spec for row in compared.rows] == ["fixed@1", "beta@1:0.95", "agreement@1:3"]
    for row, stop in zip(compared.rows, [None, *RULES], strict=True):
        ended = source.stopped_by(stop)
        voted = dm.vote_pools(ended)
        alone = evaluate_splits({"": voted}, alpha=0.1, splits=30, n_cal=100)[0]
        assert row.result.answered == alone.answered
        assert row.result.confident_error == alone.confident_error
        assert row.paths.mean == np.mean([len(pool.paths) for pool in ended.pools])
        assert row.vote_accuracy.mean == voted.labelled.mean()
        assert row.against_all.mean == pytest.approx(alone.answered.mean - compared.rows[0].result.answered.mean)
    assert compared.rows[0].share == 1
    assert compared.rows[0].against_all.mean == 0


def test_pools_that_are_shorter_than_most_are_left_out_for_all_rules(source):
    some = [pool if at else dm.Pool(pool.problem, pool.paths[:5]) for at, pool in enumerate(source.pools)]
    compared = dm.compare_stopping(dm.PoolSource(some), RULES, alpha=0.1, splits=5)
    assert (compared.n, compared.left_out) == (299, 1)


def test_a_rule_that_costs_yield_is_warned_of_and_one_that_does_not_is_not(source):
    compared = dm.compare_stopping(source, [stopping.beta(0.99), stopping.beta("0.6", wave=2)], alpha=0.05, splits=60)
    told = " ".join(compared.warnings)
    assert "beta@1:0.6 is greedy" in told
    assert "beta@1:0.6 answers" in told
    assert "beta@1:0.99" not in told
    assert len(compared.to_frame()) == 3
    assert "beta@1:0.6" in compared._repr_html_()


def test_pools_drawn_by_a_rule_compare_no_others(source):
    with pytest.raises(InvalidValue, match="cannot tell what others would have drawn"):
        dm.compare_stopping(source.stopped_by(RULES[0]), RULES, alpha=0.1)


def test_the_greedy_rule_of_the_docs_is_what_it_is_called():
    """Two paths, four, eight: until three quarters of them agree."""
    rule = stopping_results.Doubled(stopping_results.Doubling()).at_most(10)
    assert rule.size(["a", "a"]) == 2
    assert rule.size(["a", "b", "a", "a"]) == 4
    assert rule.size(["a", "b", "a", None, "a", "a", "a", "a"]) == 8
    assert rule.size(["a", "b"] * 5) == 10
    codes = np.random.default_rng(0).integers(-1, 2, (300, 10))
    one_by_one = [rule.size([None if code < 0 else code for code in row]) for row in codes.tolist()]
    assert rule.sizes(codes).tolist() == one_by_one


@pytest.mark.real_data
@pytest.mark.parametrize("recorded", stopping_results.FILES[:3], ids=lambda recorded: recorded.file)
def test_on_recorded_pools_the_rule_draws_as_few_paths_as_promised_at_the_same_yield(recorded_pools, recorded):
    """beta:0.95 in waves of 4: at most 60, 75 and 90 % of the paths, the yield at alpha = .1 within a point."""
    cell = stopping_results.cell_of(recorded_pools, recorded)
    share = cell.sizes("beta:0.95").mean() / cell.paths
    assert share <= stopping_results.TARGETS[cell.name]
    found = stopping_results.on_splits(cell, {rule: cell.voted(rule) for rule in ("all paths", "beta:0.95")})
    stopped, whole = found["beta:0.95", 0.1], found["all paths", 0.1]
    assert abs(stopped.answered.mean - whole.answered.mean) <= 0.01
    assert abs(stopped.z) < 4
    by_hand = [stopping.beta(0.95).at_most(cell.paths).size(keys) for keys in cell.keys]
    assert by_hand == stopping.beta(0.95).at_most(cell.paths).sizes(code_answers(cell.keys).codes).tolist()
