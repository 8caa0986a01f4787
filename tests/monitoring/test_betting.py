"""The money: a mixture over bets and starting times, by its definition; fair to the last digit; never overflowing."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from demur.errors import InvalidValue
from demur.monitoring.betting import MOST, Stakes, as_count
from demur.monitoring.drift import _BETS, _factors


def cash(seen):
    return 1 / (1 + math.log2(1 + seen))


def by_definition(factors):
    """Σ over bets and starts of the weight of the start times the product of all factors from it on, and the cash."""
    rounds, bets = len(factors), len(factors[0])
    value = Fraction(cash(rounds))
    for start, bet in itertools.product(range(rounds), range(bets)):
        weight = (Fraction(cash(start)) - Fraction(cash(start + 1))) / bets
        value += weight * math.prod(Fraction(row[bet]) for row in factors[start:])
    return value


def test_the_value_is_the_mixture_over_bets_and_starts():
    factors = np.random.default_rng(0).uniform(0, 2, (40, 3)).tolist()
    stakes = Stakes(3, 20.0)
    values = []
    for row in factors:
        stakes.bet(row)
        values.append(stakes.value)
    for rounds in (1, 2, 7, 40):
        assert values[rounds - 1] == pytest.approx(float(by_definition(factors[:rounds])), rel=1e-12)
    assert stakes.highest == max(1.0, *values)


@pytest.mark.parametrize(("highest", "limit"), [(2.0, 20.0), (3.0, 5.0), (1e75, 20.0)])
def test_many_bets_at_once_are_one_after_another_to_the_last_bit(highest, limit):
    """With and without an alarm, and where the money grows beyond what is let grow."""
    rng = np.random.default_rng(2)
    one_by_one, at_once = Stakes(3, limit), Stakes(3, limit)
    for size in (0, 1, 5, 200, 1, 77):
        factors = rng.uniform(0, highest, (size, 3))
        for row in factors.tolist():
            one_by_one.bet(row)
        at_once.bet_each(factors)
        assert vars(at_once) == vars(one_by_one)
    assert (at_once.alarm_at is None) == (highest == 2.0)


def test_the_mean_of_the_value_stays_one_under_fair_coins():
    """Over all 2¹⁰ sequences, so that nothing is left to chance."""
    total = 0.0
    for coins in itertools.product((0, 1), repeat=10):
        stakes = Stakes(2, 20.0)
        for coin in coins:
            stakes.bet((1.5, 0.2) if coin else (0.5, 1.8))
        total += stakes.value / 2**10
    assert total == pytest.approx(1, rel=1e-12)


def test_each_bet_on_a_p_value_is_fair():
    middles = (np.arange(100_000) + 0.5) / 100_000
    paid = np.array([_factors(p) for p in middles.tolist()])
    assert paid.shape[1] == len(_BETS)
    assert (paid >= 0).all()
    np.testing.assert_allclose(paid.mean(axis=0), 1, rtol=1e-9)


def test_a_change_after_a_long_time_costs_little():
    """A stake that always bets would have lost 0.05 · 100 000 by then."""
    stakes = Stakes(1, 100.0)
    for _ in range(100_000):
        stakes.bet((math.exp(-0.05),))
    rounds = 0
    while stakes.alarm_at is None:
        stakes.bet((math.exp(0.5),))
        rounds += 1
    assert rounds <= 2 * (math.log(100) + math.log(1e5) + 2 * math.log(math.log2(1e5)))


def test_the_alarm_is_where_the_limit_was_first_reached_and_stays():
    stakes = Stakes(1, 2.0)
    for factor in (1.0, 4.0, 0.0, 0.0):
        stakes.bet((factor,))
    assert (stakes.alarm_at, stakes.value < 1, stakes.highest > 2) == (2, True, True)


def test_nothing_overflows():
    stakes = Stakes(2, 20.0)
    for _ in range(400):
        stakes.bet((1e75, 1e60))
    assert stakes.value == pytest.approx(MOST)
    assert math.isfinite(sum(stakes.stakes))


def test_a_state_goes_on_to_the_last_bit():
    stakes, other = Stakes(2, 3.0), Stakes(2, 3.0)
    for row in np.random.default_rng(1).uniform(0, 2.4, (200, 2)).tolist():
        stakes.bet(row)
        other.restore(stakes.document())
        assert vars(other) == vars(stakes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seen": -1}, "seen must be a count"),
        ({"seen": 2.0}, "seen must be a count"),
        ({"seen": True}, "seen must be a count"),
        ({"stakes": [1.0]}, "stakes must be 2 numbers"),
        ({"stakes": [0.5, None]}, "stakes must be 2 numbers"),
        ({"stakes": [0.5, -1.0]}, "stakes must be 2 numbers"),
        ({"stakes": [9.0, 0.0]}, "highest must be the largest value so far"),
        ({"highest": "much"}, "highest must be the largest value so far"),
        ({"highest": 5.0}, "alarm_at = None does not fit a highest value of 5"),
        ({"alarm_at": 1}, "alarm_at = 1 does not fit"),
        ({"highest": 5.0, "alarm_at": 9}, "alarm_at = 9 does not fit"),
        ({"highest": 5.0, "alarm_at": "soon"}, "alarm_at must be a count"),
    ],
)
def test_a_state_that_cannot_be_is_refused(change, said):
    stakes = Stakes(2, 3.0)
    stakes.bet((1.1, 0.9))
    with pytest.raises(InvalidValue, match=said):
        Stakes(2, 3.0).restore(stakes.document() | change)


def test_counts_of_numpy_are_counts():
    assert as_count(np.int64(3), "n") == 3
    for odd in (np.float64(3), np.True_, None, "3", 10**16):
        with pytest.raises(InvalidValue, match="n must be a count, a whole number from 0 on"):
            as_count(odd, "n")
