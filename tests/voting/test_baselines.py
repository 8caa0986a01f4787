"""What the vote is compared with."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.voting.baselines import best_of_m, oracle, single_path


def test_best_of_m_takes_the_highest_score_among_paths_with_an_answer():
    assert best_of_m([["a", "b", None]], [[1.0, 2.0, 9.0]]).tolist() == ["b"]
    assert best_of_m([[None, None]], [[1.0, 2.0]]).tolist() == [None]
    assert best_of_m([["a", "b"], ["c"]], [[1.0, 2.0], [0.0]]).tolist() == ["b", "c"]


def test_best_of_m_breaks_ties_by_paths_then_key_and_ignores_their_order():
    assert best_of_m([["b", "a", "b"]], [[5.0, 5.0, 5.0]]).tolist() == ["b"]
    assert best_of_m([["b", "a"]], [[5.0, 5.0]]).tolist() == ["a"]
    rng = np.random.default_rng(0)
    answers, scores = rng.integers(-1, 3, (500, 6)), rng.integers(0, 3, (500, 6)).astype(float)
    order = rng.permutation(6)
    np.testing.assert_array_equal(best_of_m(answers, scores), best_of_m(answers[:, order], scores[:, order]))


def test_best_of_m_is_what_exponential_voting_becomes_for_steep_weights():
    drawn = dm.simulate_pools(300, n_paths=6, seed=0, missing=0.0)
    steep = dm.vote(drawn.answers, drawn.scores, weight=dm.exponential(1e4))
    np.testing.assert_array_equal(steep.answer, best_of_m(drawn.answers, drawn.scores))


def test_single_path_and_oracle_by_hand():
    labels = [[True, False], [False, False], [True, True, True, False]]
    assert single_path(labels) == pytest.approx((0.5 + 0 + 0.75) / 3)
    assert oracle(labels) == pytest.approx(2 / 3)


def test_bad_input_is_named():
    with pytest.raises(InvalidValue, match="finite"):
        best_of_m([["a"]], [[float("nan")]])
    with pytest.raises(InvalidValue, match="booleans"):
        single_path([[1, 0]])
    with pytest.raises(InvalidValue, match="booleans"):
        oracle([[]])


def test_best_of_m_of_a_table_full_of_ties_is_the_definition_row_by_row():
    rng = np.random.default_rng(1)
    answers, scores = rng.integers(-1, 3, (500, 5)), rng.integers(0, 3, (500, 5)).astype(float)
    for pool, values, chosen in zip(answers.tolist(), scores.tolist(), best_of_m(answers, scores), strict=True):
        given = [(score, answer) for score, answer in zip(values, pool, strict=True) if answer >= 0]
        best = [answer for score, answer in given if score == max(given)[0]]
        assert chosen == (min(best, key=lambda answer: (-best.count(answer), answer)) if best else -1)


def test_best_of_m_keeps_codes_that_floats_would_round():
    answers = np.array([[2**60 + 1, 2**60 + 2, 5]])
    assert best_of_m(answers, [[1.0, 0.5, 0.2]]).tolist() == [2**60 + 1]
    assert best_of_m(answers, [[1.0, 0.5, 0.2]]).dtype.kind == "i"
