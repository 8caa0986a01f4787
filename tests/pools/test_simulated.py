"""The simulator: the truth it claims is the truth it draws."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue


def test_paths_are_right_as_often_as_difficulty_says_and_scores_shift_by_the_separation():
    drawn = dm.simulate_pools(4000, n_paths=10, seed=0, a=2.0, b=1.0, separation=0.5, missing=0.0)
    right = drawn.answers == drawn.gold[:, None]
    assert abs(right.mean() - 2 / 3) < 4 * np.sqrt(drawn.difficulty.var() / 4000 + 0.25 / 40_000)
    gap = drawn.scores[right].mean() - drawn.scores[~right].mean()
    assert abs(gap - 0.5) < 4 * np.sqrt(1 / right.sum() + 1 / (~right).sum())
    np.testing.assert_allclose(right.mean(axis=1), drawn.difficulty, atol=0.8)
    assert np.corrcoef(right.mean(axis=1), drawn.difficulty)[0, 1] > 0.8


def test_gold_is_spread_evenly_over_the_keys():
    drawn = dm.simulate_pools(8000, seed=1, n_answers=4)
    counts = np.bincount(drawn.gold, minlength=4)
    assert np.abs(counts - 2000).max() < 4 * np.sqrt(8000 * 0.25 * 0.75)


def test_missing_answers_and_seeds():
    drawn = dm.simulate_pools(1000, n_paths=8, seed=2, missing=0.25)
    assert abs((drawn.answers < 0).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 8000)
    again = dm.simulate_pools(1000, n_paths=8, seed=2, missing=0.25)
    np.testing.assert_array_equal(drawn.answers, again.answers)
    assert not np.array_equal(drawn.gold, dm.simulate_pools(1000, n_paths=8, seed=3).gold)


def test_pools_are_the_same_data_as_records():
    drawn = dm.simulate_pools(12, n_paths=3, seed=3, missing=0.5)
    pools = drawn.pools()
    assert [p.problem.id for p in pools][:2] == ["sim-3-00", "sim-3-01"]
    assert dm.simulate_pools(12, n_paths=3, seed=0).pools()[0].problem.id == "sim-00"
    for row, pool in enumerate(pools):
        assert [-1 if p.answer is None else int(p.answer) for p in pool.paths] == drawn.answers[row].tolist()
        assert pool.problem.gold == (str(drawn.gold[row]),)


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"n_paths": 0},
        {"n_answers": 1},
        {"a": 0},
        {"missing": 1.0},
        {"concentration": 0},
        {"seed": -1},
        {"separation": float("nan")},
    ],
)
def test_impossible_settings_are_refused(bad):
    with pytest.raises(InvalidValue):
        dm.simulate_pools(**{"n": 5, **bad})
