"""Repeated splits: each split is a real calibration, the mean obeys the exact law, and ties do not break it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import CalibrationLeak, InvalidValue
from demur.evaluation.summaries import Summary
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
            assert result.p_value > 1e-4, (name, result.alpha)
            assert result.expected_confident_error <= result.alpha
            assert result.confident_error.sd == pytest.approx(result.expected_sd, rel=4 / np.sqrt(2 * 1000) * 1.5)


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
    result = dm.evaluate_splits({"": (votes, correct)}, alpha=0.1, n_cal=100, splits=400)[0]
    assert (np.mean(rates) - result.expected_confident_error) / (result.expected_sd / 20) > 10
    mutant = replace(result, confident_error=Summary.of(np.array(rates)))
    assert mutant.p_value < 1e-9 < result.p_value


def test_z_counts_exact_standard_errors_and_the_p_value_is_of_all_errors_together(cell):
    (result,) = dm.evaluate_splits({"": cell}, alpha=0.1, n_cal=100, splits=50)
    error = result.expected_sd / np.sqrt(50)
    assert result.z == pytest.approx((result.confident_error.mean - result.expected_confident_error) / error)
    errors = result.confident_error.mean * 50 * 500
    assert errors == pytest.approx(round(errors))
    assert result.p_value == result.law.p_value(round(errors), 50)
    assert result.p_value == pytest.approx(2 * stats.norm.sf(abs(result.z)), abs=0.02)
    # Negative control: too high and too low by four standard errors are both seen, by half a one neither.
    for shift, seen in ((4, True), (-4, True), (0.5, False), (-0.5, False)):
        rate = result.expected_confident_error + shift * error
        moved = replace(result, confident_error=replace(result.confident_error, mean=rate))
        assert (moved.p_value < 1e-3) == seen
        assert moved.z == pytest.approx(shift)


def test_rare_errors_raise_no_false_alarm_where_few_splits_say_little_of_their_spread():
    """Two wrong votes at the top, and ninety tied below that one split in a hundred answers: 20 splits see none."""
    votes = dm.vote([["a"] * 4] * 60 + [["a", "a", "a", "b"]] * 100 + [["a", "a", "b", "b"]] * 340)
    correct = ~np.isin(np.arange(500), [0, 1, *range(60, 150)])
    few, sampled = [], []
    for seed in range(150):
        (result,) = dm.evaluate_splits({"": (votes, correct)}, alpha=0.1, n_cal=100, splits=20, seed=seed)
        few.append(result.p_value)
        if result.confident_error.se:
            sampled.append((result.confident_error.mean - result.expected_confident_error) / result.confident_error.se)
    assert min(few) > 0.01 / 150
    assert np.mean(np.array(few) < 0.1) <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 150)
    assert min(sampled) < -4  # the mutant: standard errors from the splits themselves


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
    # Of a law by which hardly any split answers, that none did is no surprise.
    assert 0 < result.expected_confident_error < 1e-8
    assert -1e-3 < result.z < 0
    assert result.p_value == 1


def test_too_few_to_calibrate_abstains_and_too_few_rows_is_an_error(cell):
    result = dm.evaluate_splits({"": cell}, alpha=0.01, n_cal=50)[0]
    assert (result.answered.mean, result.expected_confident_error, result.threshold.mean) == (0, 0, 1)
    assert (result.expected_sd, result.p_value) == (0, 1)
    assert np.isnan(result.z)  # no split can differ from another
    with pytest.raises(InvalidValue, match="n_cal must leave"):
        dm.evaluate_splits({"": cell}, alpha=0.1, n_cal=600)


def test_a_rank_beyond_the_calibration_votes_answers_everything(cell):
    seed = next(seed for seed in range(99) if dm.Smoothed(0.99, seed).rank(10) == 11)
    result = dm.evaluate_splits({"": cell}, guarantee=dm.Smoothed(0.99, seed), n_cal=10)[0]
    assert result.answered.mean == 1
    assert result.threshold.mean == 0


@pytest.mark.parametrize(("n", "calibrate"), [(399, 199), (400, 200), (401, 200), (600, 200), (300, 150)])
def test_two_hundred_calibrate_or_half_of_fewer_than_four_hundred(n, calibrate):
    drawn = dm.simulate_pools(n, n_paths=4, seed=1)
    votes = dm.vote(drawn.answers)
    assert dm.evaluate(votes, votes.answer == drawn.gold, alpha=0.1, splits=2).n_cal == calibrate


def test_votes_without_confidence_are_never_answered_nor_right_nor_errors():
    """Where no error sets the threshold, all that has an answer is answered, and nothing else."""
    votes = dm.vote([["a", "a"]] * 30 + [["a", "b"]] * 30 + [[None, None]] * 40)
    correct = np.arange(100) < 60
    (result,) = dm.evaluate_splits({"": (votes, correct)}, alpha=0.5, n_cal=50, splits=40)
    assert result.vote_accuracy == 0.6
    assert result.threshold.mean == 0
    assert (result.confident_error.mean, result.expected_confident_error, result.expected_sd) == (0, 0, 0)
    assert result.selective_accuracy.mean == 1
    assert 0.5 < result.answered.mean < 0.7


def test_an_infeasible_cell_has_the_threshold_that_nothing_exceeds():
    votes = dm.vote([["a", "a", "b"]] * 40)  # no confidence is 1
    (result,) = dm.evaluate_splits({"": (votes, np.arange(40) > 5)}, alpha=0.01, n_cal=20)
    assert (result.threshold.mean, result.answered.mean, result.feasible) == (1, 0, False)


def test_one_row_of_each_unit_counts_in_every_figure():
    drawn = dm.simulate_pools(200, n_paths=6, seed=5)
    votes, questions = dm.vote(drawn.answers, ids=[f"q{i}" for i in range(200)]), [f"{i // 2}?" for i in range(200)]
    voted = dm.VotedPools.of(votes, votes.answer == drawn.gold, questions=questions)
    found, rows = dm.evaluate(voted, alpha=0.1, splits=3), voted.counted
    assert (found.n, found.duplicates, len(rows)) == (100, 100, 100)
    assert found.accuracy["weighted_vote"] == voted.labelled[rows].mean() != voted.labelled.mean()
    curve = dm.Frontier.of(dm.Evidence.of(votes.key[rows], voted.labelled[rows]))
    assert (found.frontier.auc, found.frontier.auroc) == (curve.auc, curve.auroc)
    assert found.points[0].vote_accuracy == voted.labelled[rows].mean()
    assert found.points[0].n == 100


def test_problems_that_a_score_was_fitted_on_are_not_split():
    drawn = dm.simulate_pools(60, n_paths=4, seed=6)
    votes = dm.vote(drawn.answers, drawn.scores, ids=[f"q{i}" for i in range(60)], fitted_on=["q7"])
    for split in (dm.evaluate, lambda *cell, **how: dm.evaluate_splits({"": cell}, n_cal=30, **how)):
        with pytest.raises(CalibrationLeak, match="'q7'"):
            split(votes, votes.answer == drawn.gold, alpha=0.1)
