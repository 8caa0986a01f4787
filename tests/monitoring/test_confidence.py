"""Limits at all times: the definition on a fine grid, hand cases, and coverage by every look, which one look's lack."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from demur.errors import InvalidValue
from demur.monitoring.confidence import limits_at_all_times

RUNS, DELTA = 400, 0.1
TOO_MANY = int(stats.binom.isf(1e-6, RUNS, DELTA))
LOOKS = np.unique(np.geomspace(5, 2000, 60).astype(int))


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (10, 10), (3, 10), (1, 500), (499, 500), (4200, 9000), (1, 1)])
def test_limits_are_where_the_money_reaches_one_over_delta(successes, n):
    found, grid = limits_at_all_times(successes, n, 0.05), np.linspace(0, 1, 200_001)[1:-1]
    money = betaln(successes + 0.5, n - successes + 0.5) - betaln(0.5, 0.5)
    money = money - successes * np.log(grid) - (n - successes) * np.log1p(-grid)
    possible = grid[money < math.log(20)]
    assert found.low == pytest.approx(possible[0], abs=2e-5)
    assert found.high == pytest.approx(possible[-1], abs=2e-5)


def test_limits_mirror_and_nothing_is_known_of_nothing():
    none = limits_at_all_times(0, 0)
    assert (none.low, none.high) == (0, 1)
    one, other = limits_at_all_times(3, 40), limits_at_all_times(37, 40)
    assert one.low == pytest.approx(1 - other.high)
    assert (limits_at_all_times(0, 40).low, limits_at_all_times(40, 40).high) == (0, 1)
    assert limits_at_all_times(10**9 // 2, 10**9).low == pytest.approx(0.5, abs=1e-3)


def test_counts_that_are_none_are_refused():
    for successes, n in ((11, 10), (-1, 10), (2.5, 10)):
        with pytest.raises(InvalidValue, match="must be a count"):
            limits_at_all_times(successes, n)


def clopper_pearson(successes, n):
    low = stats.beta.ppf(DELTA / 2, successes, n - successes + 1) if successes else 0.0
    return low, stats.beta.isf(DELTA / 2, successes + 1, n - successes) if successes < n else 1.0


def ours(successes, n):
    found = limits_at_all_times(successes, n, DELTA)
    return found.low, found.high


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.93])
def test_the_rate_is_within_at_every_look_as_often_as_promised_and_limits_close_in(rate):
    missed = 0
    for seed in range(RUNS):
        counts = np.cumsum(np.random.default_rng(seed).random(2000) < rate)
        limits = [ours(int(counts[n - 1]), int(n)) for n in LOOKS]
        missed += any(not low <= rate <= high for low, high in limits)
        assert limits[-1][1] - limits[-1][0] < 0.12
    assert missed <= TOO_MANY


def test_limits_for_one_look_miss_it_at_some_look_far_too_often():
    """The negative control: Clopper and Pearson's, looked at again and again."""
    missed = 0
    for seed in range(RUNS):
        counts = np.cumsum(np.random.default_rng(seed).random(2000) < 0.5)
        missed += any(
            not low <= 0.5 <= high for low, high in (clopper_pearson(int(counts[n - 1]), int(n)) for n in LOOKS)
        )
    assert missed > TOO_MANY
