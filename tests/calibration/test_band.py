"""Every threshold at once: the band against exact fractions, its promise by simulation, and what breaks without it."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest

import demur as dm
from demur.calibration.band import MOST_VOTES, band, fewest_votes
from demur.errors import InvalidValue

LEVELS = [(1, 0.1), (2, 0.1), (3, 0.3), (7, 0.05), (12, 0.5), (18, 0.1), (18, 0.9)]


def crossing(bounds):
    """P(V_(k) > b_k for any k), in exact fractions: n uniforms, at least k of which must lie below b_k."""
    n, alive, at = len(bounds), {0: Fraction(1)}, Fraction(0)
    for k, bound in enumerate(map(Fraction, bounds), 1):
        width, at, moved = bound - at, bound, {}
        for below, weight in alive.items():
            for more in range(max(0, k - below), n - below + 1):
                moved[below + more] = moved.get(below + more, 0) + weight * width**more / factorial(more)
        alive = moved
    return 1 - alive[n] * factorial(n)


# --- the band ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "delta"), LEVELS)
def test_uniforms_leave_the_band_with_at_most_delta_and_almost_that(n, delta):
    found = band(n, delta)
    assert found.looks.tolist() == list(range(1, n + 1))
    exact = crossing(found.bounds.tolist())
    assert exact <= Fraction(str(delta))
    assert float(exact) > delta * (1 - 1e-3)  # bounds of 1 are never left


def test_bounds_are_quantiles_of_one_level():
    from scipy.stats import beta

    found, k = band(200, 0.1), np.arange(1, 201)
    assert beta.sf(found.bounds, k, 201 - k) == pytest.approx(found.gamma, rel=1e-6)


def test_the_band_of_two_hundred_votes_in_numbers():
    """Exact; a Monte Carlo estimate of γ had .00425, and the same rank."""
    found = band(200, 0.1)
    assert (round(found.gamma, 6), found.rank(0.1)) == (0.004503, 10)
    assert (round(found.bound(10), 4), round(found.bound(11), 4)) == (0.0981, 0.1048)


@pytest.mark.parametrize("n", [200, 1500])
def test_drawn_uniforms_leave_the_band_about_as_often_as_said(n):
    """Beyond a thousand votes some ranks are passed over: their bound is the next one's."""
    found, rng, draws = band(n, 0.1), np.random.default_rng(n), 20_000
    every = np.array([found.bound(k) for k in range(1, n + 1)])
    left = sum((np.sort(rng.random((1000, n)), axis=1) > every).any(axis=1).sum() for _ in range(draws // 1000))
    error = (0.1 * 0.9 / draws) ** 0.5
    assert 0.1 - 4 * error < left / draws < 0.1 + 3 * error


def test_bounds_ascend_and_more_votes_make_them_tighter():
    assert (np.diff(band(300, 0.05).bounds) >= 0).all()
    assert [band(n, 0.1).rank(0.1) / n for n in (100, 400, 1600)] == sorted(
        band(n, 0.1).rank(0.1) / n for n in (100, 400, 1600)
    )


def test_beyond_the_last_vote_nothing_is_bounded():
    assert band(20, 0.1).bound(21) == 1.0


@pytest.mark.parametrize(("alpha", "delta"), [(0.1, 0.1), (0.05, 0.05), (0.3, 0.5), (0.01, 0.1)])
def test_the_n_that_is_needed_is_the_first_with_a_rank(alpha, delta):
    needed = fewest_votes(alpha, delta)
    assert band(needed, delta).rank(alpha) == 1
    assert needed == 1 or band(needed - 1, delta).rank(alpha) == 0


def test_more_votes_than_the_band_is_made_for_are_refused():
    with pytest.raises(InvalidValue, match="up to 1,000,000 calibration votes, got 1,000,001"):
        band(MOST_VOTES + 1, 0.1)


# --- the guarantee -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, float("nan"), "much"])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(InvalidValue, match="delta must"):
        dm.Simultaneous(0.1, delta)


def test_its_rank_is_below_that_of_an_alpha_fixed_beforehand():
    ranks = [kind.rank(200) for kind in (dm.Marginal(0.1), dm.HighProbability(0.1, 0.1), dm.Simultaneous(0.1, 0.1))]
    assert ranks == [20, 15, 10]


def test_the_promise_is_the_same_at_another_alpha():
    third = dm.Simultaneous(Fraction(1, 3), Fraction(1, 7))
    assert third.at(0.1) == dm.Simultaneous(0.1, Fraction(1, 7))
    assert dm.Simultaneous(0.1, Fraction(1, 7)).at(Fraction(1, 3)).level == Fraction(1, 3)


def late_choices(guarantee_of, sets=2000, n=200, seed=0):
    """How often the true rate exceeds an alpha that was chosen by the calibration labels, and the mean yield.

    Votes are wrong with a chance that falls with the key. Of alphas from .02 to .3 the one is taken at which answers
    per error allowed look best in calibration: what somebody does who looks at the frontier.
    """
    rng = np.random.default_rng(seed)
    alphas = [step / 100 for step in range(2, 31)]
    ranks = [guarantee_of(alpha).rank(n) for alpha in alphas]

    def chance(key):
        return 0.6 * (1 - key) ** 1.5

    grid = np.linspace(0, 1, 20_001)
    above = np.append(np.cumsum(chance((grid[1:] + grid[:-1]) / 2)[::-1])[::-1] / 20_000, 0.0)  # P(wrong, key > grid)
    violated, answered = 0, 0.0
    for _ in range(sets):
        keys = rng.random(n)
        wrong = np.sort(np.append(np.where(rng.random(n) < chance(keys), keys, 0.0), 0.0))[::-1]
        at = [wrong[k - 1] if k else 1.0 for k in ranks]
        share = np.array([(keys > threshold).mean() for threshold in at])
        best = int(np.argmax(share - 2.2 * np.array(alphas)))
        violated += np.interp(at[best], grid, above) > alphas[best]
        answered += share[best]
    return violated / sets, answered / sets


def test_an_alpha_that_was_chosen_late_keeps_its_promise():
    violated, answered = late_choices(lambda alpha: dm.Simultaneous(alpha, 0.1))
    assert violated <= 0.1 + 3 * (0.09 / 2000) ** 0.5
    assert answered > 0.4  # abstaining always would keep it too


def test_an_alpha_that_was_chosen_late_breaks_a_promise_made_for_one():
    violated, _ = late_choices(lambda alpha: dm.HighProbability(alpha, 0.1))
    assert violated > 0.1 + 3 * (0.09 / 2000) ** 0.5


def test_every_threshold_of_a_set_keeps_its_bound_at_once():
    """Over calibration sets, the share with any threshold whose true rate is above its bound; votes tie."""
    rng, n, sets = np.random.default_rng(3), 100, 3000
    chance = np.array([0.9, 0.5, 0.4, 0.3, 0.1, 0.05, 0.02, 0.01])  # by level, ascending
    rate = np.append(np.cumsum(chance[::-1])[::-1] / len(chance), 0.0)  # P(wrong, at this level or above)
    found = band(n, 0.2)
    bounds = np.array([found.bound(k) for k in range(1, n + 2)])
    level = rng.integers(0, len(chance), (sets, n))
    wrong = rng.random((sets, n)) < chance[level]
    errors = np.stack([(wrong & (level >= at)).sum(axis=1) for at in range(len(chance) + 1)], axis=1)
    left = (rate > bounds[errors]).any(axis=1).mean()
    assert left <= 0.2 + 3 * (0.16 / sets) ** 0.5
    pointwise = (rate > errors / n).any(axis=1).mean()
    assert pointwise > 0.9  # the plain rates are no bounds
