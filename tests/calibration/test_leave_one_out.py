"""The CRC theorem itself, without noise: on any bag of n + 1 labelled pools, the average over which one is held out of
the loss of the policy calibrated on the others is at most alpha. Ties, missing answers, everything included. The
policy is the real one, through vote → calibrate → decide; mutants of it must break the property somewhere.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demur as dm
from demur.calibration import exact_alpha
from demur.errors import InfeasibleWarning

pool = st.tuples(
    st.lists(st.sampled_from(["a", "b", None]), min_size=3, max_size=3),
    st.lists(st.integers(-1, 1).map(float), min_size=3, max_size=3),
    st.sampled_from(["a", "b", "c"]),
)
bags = st.lists(pool, min_size=2, max_size=9)
alphas = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.29, 0.3, 0.4, 0.5, 0.75])
recipes = st.sampled_from(
    [
        {},
        {"weight": dm.exponential()},
        {"weight": dm.exponential(), "normaliser": dm.normalisers.pool_z, "tie_break": dm.mean_score()},
    ]
)


def calibrated(answers, scores, gold, recipe, alpha):
    votes = dm.vote(answers, scores if recipe else None, **recipe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        return dm.calibrate(votes, np.array([a == g for a, g in zip(votes.answer, gold, strict=True)]), alpha=alpha)


@settings(max_examples=250)
@given(bags, alphas, recipes)
def test_the_average_held_out_loss_is_at_most_alpha_through_the_public_api(bag, alpha, recipe):
    answers, scores, gold = ([p[i] for p in bag] for i in range(3))
    losses = 0
    for i in range(len(bag)):
        others = [j for j in range(len(bag)) if j != i]
        policy = calibrated(
            [answers[j] for j in others], [scores[j] for j in others], [gold[j] for j in others], recipe, alpha
        )
        decision = policy.decide(answers[i], scores[i] if recipe else None)
        losses += decision.answer is not None and decision.answer != gold[i]
    assert Fraction(losses, len(bag)) <= Fraction(str(alpha))


# Mutants of the rule, as (rank from n and alpha, comparison). Each must break the property on some small bag.
def correct_rank(n, alpha):
    return int((n + 1) * exact_alpha(alpha))


MUTANTS = {
    ">= for >": (correct_rank, np.greater_equal),
    "missing + 1": (lambda n, alpha: int(n * exact_alpha(alpha)) + 1, np.greater),
    "rank off by one": (lambda n, alpha: correct_rank(n, alpha) + 1, np.greater),
    "clamp at small n": (lambda n, alpha: max(1, correct_rank(n, alpha)), np.greater),
}


def worst_excess(rank, compare, trials=400):
    """The largest amount by which the average held-out loss exceeds alpha, over random bags with ties."""
    rng = np.random.default_rng(8)
    worst = Fraction(-1)
    for _ in range(trials):
        size = int(rng.integers(2, 14))
        alpha = float(rng.choice([0.05, 0.1, 0.2, 0.25, 0.3, 0.5]))
        nu, wrong = rng.integers(1, 9, size) / 8, rng.random(size) < 0.6
        losses = 0
        for i in range(size):
            rest = np.arange(size) != i
            ranked = np.sort(nu[rest & wrong])[::-1]
            k = rank(size - 1, alpha)
            threshold = 1.0 if k == 0 else ranked[k - 1] if len(ranked) >= k else 0.0
            losses += bool(wrong[i] and compare(nu[i], threshold))
        worst = max(worst, Fraction(losses, size) - Fraction(str(alpha)))
    return worst


def test_the_rule_itself_never_exceeds_alpha_on_those_bags():
    assert worst_excess(correct_rank, np.greater) <= 0


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_exceed_alpha(name):
    assert worst_excess(*MUTANTS[name]) > 0
