"""The law of fresh data against scipy, against whole mixtures, and against the figures of the theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from demur.errors import InvalidValue
from demur.evidence.laws import ErrorLaw, SumLaw


def test_the_error_count_is_beta_binomial():
    for fresh, k, n in [(1100, 20, 200), (10, 1, 9), (500, 6, 200), (1, 3, 7)]:
        np.testing.assert_allclose(
            ErrorLaw(k, n).counts(fresh), stats.betabinom.pmf(np.arange(fresh + 1), fresh, k, n + 1 - k), rtol=1e-9
        )


def test_the_figures_of_the_theory():
    law = ErrorLaw(20, 200).counts(1100)
    rate = np.arange(1101) / 1100
    mean = (law * rate).sum()
    assert mean == pytest.approx(20 / 201)
    assert np.sqrt((law * rate**2).sum() - mean**2) == pytest.approx(0.0229047, abs=5e-8)
    low, high = ErrorLaw(20, 200).interval(1100)
    assert (low / 1100, high / 1100) == (pytest.approx(0.0591, abs=5e-5), pytest.approx(0.1482, abs=5e-5))
    assert ErrorLaw(20, 200).upper_tail(130, 1000) == pytest.approx(0.103, abs=5e-4)  # a naive binomial says .0013
    low, high = ErrorLaw(20, 200).interval(1000)
    assert (low / 1000, high / 1000) == (0.059, 0.149)


def test_an_upper_tail_is_a_probability_and_starts_at_one():
    assert ErrorLaw(5, 99).upper_tail(0, 50) == pytest.approx(1.0)
    tails = [ErrorLaw(5, 99).upper_tail(j, 50) for j in range(51)]
    assert (np.diff(tails) < 0).all()


def test_no_rank_means_no_errors_and_the_rank_beyond_n_promises_nothing():
    assert [ErrorLaw(k, 8).answers for k in (0, 1, 9)] == [False, True, True]
    assert ErrorLaw(0, 8).counts(5).tolist() == [1, 0, 0, 0, 0, 0]
    assert ErrorLaw(0, 8).upper_tail(1, 5) == 0
    assert ErrorLaw(9, 8).upper_tail(5, 5) == 1
    assert ErrorLaw(0, 8).interval(5) == (0, 0)
    with pytest.raises(InvalidValue, match="between 0 and n \\+ 1"):
        ErrorLaw(10, 8).counts(5)


def test_the_usual_limit_is_the_95_percent_point_of_the_count_and_not_the_end_of_a_central_interval():
    for k, n, fresh in [(20, 200, 1100), (10, 200, 500), (1, 9, 30), (15, 200, 1)]:
        limit = ErrorLaw(k, n).usual_at_most(fresh)
        assert limit == stats.betabinom.ppf(0.95, fresh, k, n + 1 - k)
        assert ErrorLaw(k, n).upper_tail(limit + 1, fresh) <= 0.05 < ErrorLaw(k, n).upper_tail(limit, fresh)
    assert ErrorLaw(20, 200).usual_at_most(1100) < ErrorLaw(20, 200).interval(1100)[1]
    assert (ErrorLaw(0, 8).usual_at_most(5), ErrorLaw(9, 8).usual_at_most(5)) == (0, 5)


@pytest.mark.parametrize(
    ("cap", "mean", "sd"), [(1.0, 0.0995, 0.02106), (0.127, 0.09827, 0.01865), (0.099, 0.09087, 0.0112),
                            (0.086, 0.08298, 0.00665)],
)  # fmt: skip
def test_the_capped_rates_of_the_theory(cap, mean, sd):
    law = ErrorLaw(20, 200)
    assert (law.mean(), law.sd()) == (law.mean(1.0), law.sd(1.0)) == pytest.approx((20 / 201, 0.02106), abs=5.1e-6)
    assert law.mean(cap) == pytest.approx(mean, abs=5.1e-6)
    assert law.sd(cap) == pytest.approx(sd, abs=5.1e-6)


@pytest.mark.parametrize(("k", "n"), [(20, 200), (1, 9), (5, 5), (3, 40)])
@pytest.mark.parametrize("cap", [0.0, 0.02, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("fresh", [1, 7, 300])
def test_capped_mean_and_deviation_are_those_of_the_whole_mixture(k, n, cap, fresh):
    """Every count of errors with its probability ∫ Binomial(j; N, min(v, c)) Beta(v) dv, summed up."""
    law, beta = ErrorLaw(k, n), stats.beta(k, n + 1 - k)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    v = (nodes + 1) / 2 * cap
    j = np.arange(fresh + 1)
    below = (stats.binom.pmf(j[:, None], fresh, v) * beta.pdf(v) * weights).sum(axis=1) * cap / 2 if cap else 0.0
    chances = below + stats.binom.pmf(j, fresh, cap) * beta.sf(cap)
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    mean = (chances * j).sum() / fresh
    assert law.mean(cap) == pytest.approx(mean, abs=1e-9)
    assert law.sd(cap, fresh=fresh) == pytest.approx(np.sqrt((chances * (j / fresh - mean) ** 2).sum()), abs=1e-7)


def test_capped_mean_and_deviation_agree_with_calibrations_drawn_from_a_population():
    """ν ~ U(0, 1), wrong at a rate of 0.12 near alpha = 0.1, and a fifth of the wrong votes without confidence."""
    rng, sets, n, fresh = np.random.default_rng(11), 4000, 200, 300
    wrong, silent = rng.random((sets, n + fresh)) < 0.12, rng.random((sets, n + fresh)) < 0.2
    nu = np.where(wrong & silent, 0.0, rng.random((sets, n + fresh)))
    threshold = np.sort(np.where(wrong, nu, 0.0)[:, :n], axis=1)[:, n - 20]
    rates = ((nu[:, n:] > threshold[:, None]) & wrong[:, n:]).mean(axis=1)
    law, cap = ErrorLaw(20, n), 0.12 * 0.8
    assert abs(rates.mean() - law.mean(cap)) < 4 * rates.std() / np.sqrt(sets)
    spread = np.std((rates - rates.mean()) ** 2) / np.sqrt(sets)  # the standard error of a variance
    assert abs(rates.var() - law.sd(cap, fresh=fresh) ** 2) < 4 * spread
    for mutant in (law.sd(fresh=fresh), law.sd(0.12, fresh=fresh), law.sd(cap)):
        assert abs(rates.var() - mutant**2) > 4 * spread


def test_capped_rates_where_nothing_or_everything_is_answered():
    assert (ErrorLaw(0, 8).mean(0.3), ErrorLaw(0, 8).sd(0.3, fresh=10)) == (0, 0)
    assert (ErrorLaw(9, 8).mean(0.3), ErrorLaw(9, 8).sd(0.3)) == (0.3, 0)
    assert ErrorLaw(9, 8).sd(0.3, fresh=10) == pytest.approx(np.sqrt(0.3 * 0.7 / 10))


def test_thresholds_that_were_calibrated_apart_have_errors_that_add_up():
    small, large = ErrorLaw(2, 20), ErrorLaw(40, 400)
    together = SumLaw(((small, 3), (large, 5)))
    literal = np.zeros(9)
    for i, p in enumerate(small.counts(3)):
        for j, q in enumerate(large.counts(5)):
            literal[i + j] += p * q
    np.testing.assert_allclose(together.counts(8), literal, rtol=1e-12)
    assert together.upper_tail(4, 8) == pytest.approx(literal[4:].sum())
    with pytest.raises(InvalidValue, match="8 new votes, got 9"):
        together.counts(9)


def test_no_new_votes_make_no_errors_and_fewer_are_refused():
    assert ErrorLaw(3, 40).counts(0).tolist() == [1.0]
    assert ErrorLaw(3, 40).interval(0) == (0, 0)
    with pytest.raises(InvalidValue, match="fresh >= 0, got -1"):
        ErrorLaw(3, 40).counts(-1)


def test_a_tail_is_never_above_one_however_its_terms_round():
    sums = [ErrorLaw(k, n).counts(fresh)[1:].sum() for n in (20, 50, 99) for k in (n - 3, n) for fresh in (60, 200)]
    assert max(sums) > 1  # what floats add up to
    for n in (20, 50, 99):
        for k in (n - 3, n):
            assert all(ErrorLaw(k, n).upper_tail(1, fresh) <= 1 for fresh in (60, 200))


def test_no_error_or_fewer_are_certain_to_be_reached():
    for k, n in [(5, 99), (0, 8), (9, 8), (3, 7), (20, 200)]:
        assert [ErrorLaw(k, n).upper_tail(errors, 50) for errors in (0, -1, -3)] == [1, 1, 1]
