"""Chosen from J by the same labels: the corrected ranks, their promise by simulation, and what breaks without them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import demur as dm
from demur.calibration.choices import union_rank
from demur.errors import InvalidValue
from demur.evidence.laws import ErrorLaw

CHOICES = [1, 2, 5, 10, 20, 50]


def by_quadrature(n, alpha, choices):
    """The largest k with ∫ min(1, J · P(Beta > v)) dv ≤ α, the definition on a fine grid."""
    v = np.linspace(0, 1, 4001)
    within = [
        k
        for k in range(1, int(n * alpha) + 2)
        if np.trapezoid(np.minimum(1, choices * beta.sf(v, k, n + 1 - k)), v) <= alpha
    ]
    return max(within, default=0)


def test_ranks_of_two_hundred_votes():
    assert [dm.Marginal(0.1, choices=choices).rank(200) for choices in CHOICES] == [20, 16, 14, 13, 12, 10]
    assert [dm.HighProbability(0.1, 0.1, choices=choices).rank(200) for choices in CHOICES] == [15, 13, 12, 11, 10, 9]


@pytest.mark.parametrize("choices", [2, 7, 31])
@pytest.mark.parametrize(("n", "alpha"), [(40, 0.1), (99, 0.05), (60, 0.3)])
def test_the_closed_form_is_the_integral(n, alpha, choices):
    assert union_rank(n, Fraction(str(alpha)), choices) == by_quadrature(n, alpha, choices)


def test_one_choice_is_no_choice():
    assert all(union_rank(n, Fraction(1, 10), 1) == dm.Marginal(0.1).rank(n) for n in (8, 10, 57, 200))
    assert dm.Marginal(0.1, choices=1).promise(50) == dm.Marginal(0.1).promise(50)
    assert dm.Marginal(0.1).parameters() == {"alpha": 0.1}


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.29])
@pytest.mark.parametrize("choices", [2, 10, 31])
def test_the_n_that_is_needed_is_the_first_with_a_rank(alpha, choices):
    for guarantee in (dm.Marginal(alpha, choices=choices), dm.HighProbability(alpha, 0.1, choices=choices)):
        needed = guarantee.n_needed()
        assert guarantee.rank(needed) >= 1
        assert guarantee.rank(needed - 1) == 0


def test_delta_is_shared_in_exact_fractions():
    """P(Bin(22, 1/10) ≤ 0) is just below 1/10: two choices need (9/10)ⁿ ≤ 1/20."""
    assert dm.HighProbability(0.1, 0.1, choices=2).n_needed() == dm.HighProbability(0.1, 0.05).n_needed()
    assert dm.Selective(0.1, 0.1, choices=2).n_needed() == dm.Selective(0.1, 0.05).n_needed()
    assert dm.Simultaneous(0.1, 0.1, choices=2).rank(200) == dm.Simultaneous(0.1, 0.05).rank(200)


@pytest.mark.parametrize("choices", [0, -1, 1.5, True, "3", None, 10**7])
@pytest.mark.parametrize("kind", [dm.Marginal, lambda a, **k: dm.Selective(a, 0.1, **k)])
def test_choices_must_be_a_number_of_ways(kind, choices):
    with pytest.raises(InvalidValue, match="choices must be a whole number from 1"):
        kind(0.1, choices=choices)


def test_a_drawn_rank_knows_no_choice():
    with pytest.raises(InvalidValue, match="knows no choice among 3"):
        dm.Smoothed(0.1, 0, choices=3)


def test_the_promise_tells_of_the_choice():
    told = "whichever of 4 ways to vote that were fixed beforehand was chosen by the same labels"
    for guarantee in (
        dm.Marginal(0.1, choices=4),
        dm.HighProbability(0.1, 0.1, choices=4),
        dm.Simultaneous(0.1, 0.1, choices=4),
        dm.Selective(0.1, 0.1, choices=4),
    ):
        assert told in guarantee.promise(200)
        assert "exchangeable" not in guarantee.promise(200)  # independence is what the proof needs


def test_errors_of_a_chosen_way_are_judged_by_j_times_the_tail():
    one, chosen = ErrorLaw(13, 200), ErrorLaw(13, 200, choices=10)
    assert chosen.counts(300).sum() == pytest.approx(1)
    for errors in (20, 30, 45):
        assert chosen.upper_tail(errors, 300) == pytest.approx(min(1, 10 * one.upper_tail(errors, 300)))
    (low, high), (least, most) = one.interval(300), chosen.interval(300)
    assert least < low < high < most


# --- the promise -------------------------------------------------------------------------------------------------


def chosen_errors(guarantee, ways=31, n=200, sets=1500, seed=0):
    """True error rate of the way that answers most of its own calibration set; and the mean yield there.

    Every way sees the same labels and has a key of its own: one signal, and noise. They are equally good, so that all
    that the best has over the others is chance.
    """
    rng, size = np.random.default_rng(seed), 40_000
    skill = rng.normal(size=size)
    wrong = rng.random(size) < 1 / (1 + np.exp(1.5 + 1.5 * skill))
    keys = skill + 1.0 * rng.normal(size=(ways, size))
    ladders = [np.sort(keys[way][wrong]) for way in range(ways)]
    k, rates, answered = guarantee.rank(n), np.empty(sets), 0.0
    for at in range(sets):
        drawn = rng.integers(0, size, n)
        some = np.where(wrong[drawn], keys[:, drawn], -np.inf)
        threshold = np.partition(some, n - k, axis=1)[:, n - k]
        shares = (keys[:, drawn] > threshold[:, None]).mean(axis=1)
        best = int(np.argmax(shares))
        above = len(ladders[best]) - np.searchsorted(ladders[best], threshold[best], side="right")
        rates[at], answered = above / size, answered + shares[best] / sets
    return rates, answered


def test_the_best_of_31_on_the_labels_that_calibrate_breaks_the_promise():
    rates, _ = chosen_errors(dm.Marginal(0.1))
    assert rates.mean() > 0.1 + 3 * rates.std() / len(rates) ** 0.5


def test_the_best_of_31_at_a_corrected_rank_keeps_it():
    rates, answered = chosen_errors(dm.Marginal(0.1, choices=31))
    assert rates.mean() <= 0.1
    assert rates.mean() > 0.05  # abstaining always would keep it too
    assert answered > 0.4


def test_the_best_of_31_at_a_part_of_delta_keeps_a_promise_for_most_sets():
    rates, answered = chosen_errors(dm.HighProbability(0.1, 0.1, choices=31))
    assert (rates > 0.1).mean() <= 0.1
    assert answered > 0.4
    uncorrected, _ = chosen_errors(dm.HighProbability(0.1, 0.1))
    assert (uncorrected > 0.1).mean() > 0.1 + 3 * (0.09 / len(uncorrected)) ** 0.5
