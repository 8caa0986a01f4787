"""Repeated splits: each split is a real calibration, the mean obeys the exact law, and ties do not break it."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.pools import splits


@pytest.fixture(scope="module")
def cell():
    drawn = dm.simulate_pools(600, n_paths=8, seed=3)
    votes = dm.vote(drawn.answers, drawn.scores, ids=range(600))
    return votes, votes.answer == drawn.gold


@pytest.mark.parametrize("tie_break", [None, dm.mean_score(), dm.jitter(1)])
def test_every_split_is_what_calibrate_and_decide_do(tie_break):
    drawn = dm.simulate_pools(150, n_paths=5, seed=4, missing=0.2)
    ids = [f"q{row}" for row in range(150)]
    votes = dm.vote(drawn.answers, drawn.scores, ids=ids, weight=dm.uniform(), tie_break=tie_break)
    correct = votes.answer == drawn.gold
    result = dm.evaluate_splits({"x": (votes, correct)}, alpha=0.1, n_cal=60, splits=5, seed=9)[0]
    order = splits.in_drawn_order(votes.ids)  # rows have names, so their order decides nothing
    votes, correct = votes.take(order), correct[order]
    calibration, test = splits.repeated(150, 60, 5, seed=9)
    errors, answered, thresholds, withheld = [], [], [], []
    for c, t in zip(calibration, test, strict=True):
        policy = dm.calibrate(votes.take(c), correct[c], alpha=0.1)
        decided = policy.decide_votes(votes.take(t)).answered
        errors.append(np.mean(decided & ~correct[t]))
        answered.append(decided.mean())
        withheld.append(np.mean(~decided & correct[t]))
        thresholds.append(policy.threshold)
    assert result.confident_error.mean == pytest.approx(np.mean(errors))
    assert result.confident_error.sd == pytest.approx(np.std(errors, ddof=1))
    assert result.confident_error.se == pytest.approx(np.std(errors, ddof=1) / np.sqrt(5))
    assert result.answered.mean == pytest.approx(np.mean(answered))
    assert result.false_abstention.mean == pytest.approx(np.mean(withheld))
    assert result.threshold.mean == pytest.approx(np.mean(thresholds))


def test_means_agree_with_the_exact_law_with_and_without_ties(cell):
    drawn = dm.simulate_pools(600, n_paths=8, seed=3)
    majority = dm.vote(drawn.answers)
    for name, (v, c) in {"weighted": cell, "ties": (majority, majority.answer == drawn.gold)}.items():
        for result in dm.evaluate_splits({name: (v, c)}, alpha=[0.05, 0.1, 0.2], splits=1000, n_cal=100):
            assert abs(result.z) < 4, (name, result.alpha)
            assert result.expected_confident_error <= result.alpha


def test_the_law_would_notice_a_wrong_comparison():
    """Negative control: answering at ≥ instead of > on tied votes is far outside four standard errors."""
    drawn = dm.simulate_pools(600, n_paths=8, seed=3)
    votes = dm.vote(drawn.answers)
    correct = votes.answer == drawn.gold
    calibration, test = splits.repeated(600, 100, 400, seed=0)
    rates = []
    for c, t in zip(calibration, test, strict=True):
        threshold = dm.calibrate(votes.take(c), correct[c], alpha=0.1).threshold
        rates.append(np.mean((votes.confidence[t] >= threshold) & ~correct[t]))
    exact = dm.evaluate_splits({"": (votes, correct)}, alpha=0.1, n_cal=100)[0].expected_confident_error
    assert (np.mean(rates) - exact) / (np.std(rates) / 20) > 10


def test_cells_of_one_size_share_their_splits_and_results_come_in_order(cell):
    results = dm.evaluate_splits({"a": cell, "b": cell}, alpha=[0.1, 0.05], splits=3)
    assert [(r.cell, r.alpha) for r in results] == [("a", 0.05), ("a", 0.1), ("b", 0.05), ("b", 0.1)]
    assert results[0].confident_error == results[2].confident_error


def test_splits_without_an_answer_are_counted_and_left_out_of_accuracy():
    votes = dm.vote([["a", "a"]] * 40)  # all tied at full confidence
    correct = np.arange(40) % 2 == 0
    result = dm.evaluate_splits({"": (votes, correct)}, alpha=0.1, n_cal=20, splits=6)[0]
    assert result.empty_splits == 6
    assert np.isnan(result.selective_accuracy.mean)
    assert result.answered.mean == 0
    assert np.isnan(result.z)


def test_too_few_to_calibrate_abstains_and_too_few_rows_is_an_error(cell):
    result = dm.evaluate_splits({"": cell}, alpha=0.01, n_cal=50)[0]
    assert (result.answered.mean, result.expected_confident_error, result.threshold.mean) == (0, 0, 1)
    with pytest.raises(InvalidValue, match="n_cal must leave"):
        dm.evaluate_splits({"": cell}, alpha=0.1, n_cal=600)


def test_a_rank_beyond_the_calibration_votes_answers_everything(cell):
    seed = next(seed for seed in range(99) if dm.Smoothed(0.99, seed).rank(10) == 11)
    result = dm.evaluate_splits({"": cell}, guarantee=dm.Smoothed(0.99, seed), n_cal=10)[0]
    assert result.answered.mean == 1
    assert result.threshold.mean == 0
