"""Exact laws against scipy, against enumeration, and against the figures of the theory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.laws import ErrorLaw, split_expectation


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
    assert ErrorLaw(0, 8).counts(5).tolist() == [1, 0, 0, 0, 0, 0]
    assert ErrorLaw(0, 8).upper_tail(1, 5) == 0
    assert ErrorLaw(9, 8).upper_tail(5, 5) == 1
    assert ErrorLaw(0, 8).interval(5) == (0, 0)
    with pytest.raises(InvalidValue, match="between 0 and n \\+ 1"):
        ErrorLaw(10, 8).counts(5)


def enumerated(nu, wrong, k, n_cal):
    """The mean confident-error rate over every possible split, one by one."""
    rows = set(range(len(nu)))
    rates = []
    for chosen in combinations(sorted(rows), n_cal):
        threshold = Evidence.of(nu[list(chosen)], ~wrong[list(chosen)]).threshold(k)[0]
        rest = sorted(rows - set(chosen))
        rates.append(np.mean(wrong[rest] & (nu[rest] > threshold)))
    return np.mean(rates)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=9),
    st.integers(1, 8),
    st.integers(0, 6),
)
def test_the_split_expectation_is_the_mean_over_all_splits(table, n_cal, k):
    nu = np.array([v / 4 for v, _ in table])
    wrong = np.array([w for _, w in table], dtype=bool)
    n_cal = min(n_cal, len(table) - 1)
    exact = split_expectation(Evidence.of(nu, ~wrong), k, n_cal)
    assert exact == pytest.approx(enumerated(nu, wrong, k, n_cal), abs=1e-10)


def test_without_ties_and_with_enough_errors_the_split_expectation_is_k_over_n_plus_one():
    rng = np.random.default_rng(0)
    nu = rng.permutation(1300) / 1300 + 1e-4
    evidence = Evidence.of(np.minimum(nu, 1), rng.random(1300) < 0.4)
    assert split_expectation(evidence, 20, 200) == pytest.approx(20 / 201, abs=1e-9)


def test_large_files_are_worked_off_in_pieces():
    rng = np.random.default_rng(1)
    nu = rng.random(60_000)
    evidence = Evidence.of(nu, rng.random(60_000) < nu)
    assert split_expectation(evidence, 500, 9999) == pytest.approx(0.05, abs=1e-6)
    with pytest.raises(InvalidValue, match="n_cal must lie"):
        split_expectation(evidence, 1, 60_000)
