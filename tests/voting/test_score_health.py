"""A score that can do nothing in a vote is found out without a label, and the remedy named."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.voting import normalisers
from demur.voting.recipe import Recipe
from demur.voting.score_health import ScoreHealth
from demur.voting.weights import exponential, uniform

RNG = np.random.default_rng(0)


def warnings(scores, normaliser=normalisers.none, weight=None):
    recipe = Recipe(weight or exponential(), normaliser)
    return ScoreHealth.of(scores, recipe).warnings("q")


def reward(n=200, m=8):
    """As wide as a reward model's raw scores."""
    return RNG.normal(10, 12, (n, m)).tolist()


@pytest.mark.parametrize(
    ("scores", "said", "remedy"),
    [
        ([[0.5] * 8] * 100, "is the same for all paths in 100% of the pools", "choose another score"),
        (reward(), "the vote is best-of-m", "the normaliser pool_z"),
        ((1 / (1 + np.exp(-np.array(reward()) - 30))).tolist(), "is saturated", "the raw reward"),
        (RNG.normal(-0.3, 0.01, (200, 8)).tolist(), "nearly a majority vote", "the normaliser pool_z"),
    ],
    ids=["constant", "wide", "saturated", "narrow"],
)
def test_what_is_the_matter_and_what_helps(scores, said, remedy):
    found = warnings(scores)
    assert any(said in each and remedy in each for each in found)


def test_the_remedy_helps():
    assert warnings(reward(), normalisers.pool_z) == []
    assert warnings(RNG.normal(-0.3, 0.05, (200, 8)).tolist(), normalisers.pool_z) == []


def test_a_healthy_score_is_not_complained_of():
    assert warnings(RNG.normal(0, 1, (300, 8)).tolist()) == []


def test_shares_by_hand():
    scores = [[1.0, 1.0, 1.0], [0.0, 100.0, 1.0], [2.0], [0.0, 0.01]]
    health = ScoreHealth.of(scores, Recipe(exponential(), normalisers.none))
    assert health.constant == pytest.approx(1 / 3)  # the pool of one path does not count
    assert health.one_path == pytest.approx(1 / 2)  # of the pools of three
    assert health.even == pytest.approx(1 / 2)  # of the pools that are not constant
    assert health.at_top == pytest.approx(1 / 9)
    assert health.at_bottom == pytest.approx(3 / 9)


def test_uniform_weights_are_neither_wide_nor_narrow():
    health = ScoreHealth.of(reward(), Recipe(uniform(), normalisers.none))
    assert (health.one_path, health.even) == (0, 0)


def literal_health(scores, weights_of):
    """Pool by pool and path by path; `weights_of` gives the weights of one pool, or None for the majority vote."""
    several = [pool for pool in scores if len(pool) > 1]
    same = [pool for pool in several if len(set(pool)) == 1]
    apart = [pool for pool in several if len(set(pool)) > 1]
    even = [pool for pool in apart if weights_of and max(weights_of(pool)) < 1.1 * min(weights_of(pool))]
    wide = [pool for pool in scores if len(pool) > 2 and weights_of]
    one = [pool for pool in wide if max(weights_of(pool)) > 0.9 * sum(weights_of(pool))]
    paths = np.array([score for pool in scores for score in pool])
    low, high = np.quantile(paths, [0.05, 0.95])
    return ScoreHealth(
        constant=len(same) / (len(several) or 1),
        at_top=np.mean(paths >= high - (high - low) / 1000),
        at_bottom=np.mean(paths <= low + (high - low) / 1000),
        one_path=len(one) / (len(wide) or 1),
        even=len(even) / (len(apart) or 1),
    )


@given(st.lists(st.lists(st.sampled_from([-9.0, 0.0, 0.01, 0.02, 1.0, 5.0]), min_size=1, max_size=5), min_size=1))
def test_shares_of_pools_of_every_size_are_the_definition_read_literally(scores):
    for recipe, weights_of in (
        (Recipe(exponential(), normalisers.none), np.exp),
        (Recipe(exponential(3), normalisers.none), lambda pool: np.exp(3 * np.array(pool))),
        (Recipe(uniform(), normalisers.none), None),
    ):
        assert astuple(ScoreHealth.of(scores, recipe)) == pytest.approx(astuple(literal_health(scores, weights_of)))


def test_half_of_the_pools_is_not_most_of_them():
    healthy = ScoreHealth(constant=0.5, at_top=0.5, at_bottom=0.5, one_path=0.5, even=0.5)
    assert healthy.warnings("q") == []
    more = 0.51
    assert "is the same for all paths in 51%" in replace(healthy, constant=more).warnings("q")[0]
    assert "51% of the paths lie at the top of its range" in replace(healthy, at_top=more).warnings("q")[0]
    assert "51% of the paths lie at the bottom of its range" in replace(healthy, at_bottom=more).warnings("q")[0]
    assert "'q' is so wide that one path has more than 90%" in replace(healthy, one_path=more).warnings("q")[0]
    assert "differ by less than a tenth in 51% of the pools" in replace(healthy, even=more).warnings("q")[0]


def test_of_two_ends_the_fuller_one_is_named_and_a_constant_score_is_not_called_saturated():
    both = ScoreHealth(constant=0.0, at_top=0.6, at_bottom=0.7, one_path=0.0, even=0.0)
    (told,) = both.warnings("q")
    assert "70% of the paths lie at the bottom" in told
    (constant,) = ScoreHealth.of([[0.5, 0.5]] * 3, Recipe(exponential())).warnings("q")
    assert "is the same for all paths in 100%" in constant


def test_scores_that_overflow_are_named_by_their_pool():
    scores = [[0.0, 1.0], [2.0], [1e308, -1e308], [0.0, 1.0]]
    with pytest.raises(InvalidValue, match="overflows on the scores of pool 2"):
        ScoreHealth.of(scores, Recipe(exponential(), normalisers.pool_z))
