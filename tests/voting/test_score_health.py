"""A score that can do nothing in a vote is found out without a label, and the remedy named."""

from __future__ import annotations

import numpy as np
import pytest

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
