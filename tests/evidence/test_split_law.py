"""The law of random splits against every split of small files, against exact integers on larger ones, and its p-values.

Theory: one wrong row is answered when fewer than k of the wrong rows at its level or above calibrate, and two are when
the lower one is; that gives mean and variance by a second way, which these tests go in whole numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from demur.calibration import HighProbability, Marginal, Smoothed
from demur.errors import InvalidValue
from demur.evidence import split_law
from demur.evidence.counts import Evidence, exceeds
from demur.evidence.split_law import SplitLaw, hypergeometric_cdf


def of_every_split(keys, wrong, settle, n_cal):
    """P(J = j) over every possible split, one by one, in fractions: (mean, variance) of the rate, and the counts."""
    rows, errors = set(range(len(keys))), []
    for chosen in combinations(sorted(rows), n_cal):
        rule = settle(Evidence.of(keys[list(chosen)], ~wrong[list(chosen)]))
        rest = sorted(rows - set(chosen))
        errors.append(int((wrong[rest] & exceeds(keys[rest], rule.threshold_key)).sum()))
    rates = [Fraction(count, len(rows) - n_cal) for count in errors]
    mean = sum(rates) / len(rates)
    variance = sum((rate - mean) ** 2 for rate in rates) / len(rates)
    return float(mean), float(variance), np.bincount(errors, minlength=int(wrong.sum()) + 1) / len(errors)


FILES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from([True, True, False])), min_size=2, max_size=9
)
GUARANTEES = st.one_of(
    st.builds(Marginal, st.sampled_from([0.05, 0.2, 0.34, 0.5, 0.8, 0.99])),
    st.builds(Smoothed, st.sampled_from([0.05, 0.25, 0.5, 0.9, 0.99]), st.integers(0, 5)),
    st.builds(HighProbability, st.sampled_from([0.3, 0.5, 0.9]), st.sampled_from([0.1, 0.5, 0.9])),
)


@settings(max_examples=250)
@given(FILES, st.integers(1, 8), GUARANTEES, st.booleans())
def test_the_law_is_that_of_every_split_one_by_one(table, n_cal, guarantee, secondary):
    """Ties, rows without confidence, secondary keys, and ranks from none to beyond all rows."""
    keys = np.array([[nu / 4, key] if secondary else [nu / 4] for nu, key, _ in table])
    wrong = np.array([w for _, _, w in table], dtype=bool)
    n_cal = min(n_cal, len(table) - 1)
    mean, variance, counts = of_every_split(keys, wrong, guarantee.settle, n_cal)
    law = guarantee.law_over_splits(Evidence.of(keys, ~wrong), n_cal)
    assert law.mean == pytest.approx(mean, abs=1e-13)
    assert law.sd**2 == pytest.approx(variance, abs=1e-13)
    np.testing.assert_allclose(law.counts, counts[: len(law.counts)], atol=1e-13)
    assert not counts[len(law.counts) :].any()


def by_pairs(wrong, total, k, n_cal):
    """Mean and variance of the rate from single rows and pairs of rows, in whole numbers; `wrong` from the top down."""

    def few(others, marked):
        """P(fewer than k of the marked among n_cal of the others)."""
        ways = sum(math.comb(marked, i) * math.comb(others - marked, n_cal - i) for i in range(min(k, marked + 1)))
        return Fraction(ways, math.comb(others, n_cal))

    size, above = total - n_cal, 0
    one = two = Fraction(0)
    for own in wrong:
        or_above = above + own
        one += own * few(total - 1, or_above - 1)
        if or_above > 1:
            two += (own * (own - 1) + 2 * own * above) * few(total - 2, or_above - 2)
        above = or_above
    expected = one * size / total
    pairs = two * size * (size - 1) / (total * (total - 1))
    return float(expected / size), float((pairs + expected - expected**2) / size**2)


@pytest.mark.parametrize("levels", [1, 3, 16, 400])
@pytest.mark.parametrize(("total", "n_cal", "k"), [(369, 100, 10), (1319, 200, 20), (1319, 200, 10), (1319, 1200, 120)])
@pytest.mark.parametrize("share", [0.03, 0.12, 0.6])
def test_mean_and_variance_are_those_of_rows_and_pairs_of_rows(levels, total, n_cal, k, share):
    rng = np.random.default_rng(levels)
    nu = rng.integers(1, levels + 1, total) / levels
    evidence = Evidence.of(nu, rng.random(total) >= share)
    law = SplitLaw.of(evidence, k, n_cal)
    mean, variance = by_pairs(law.wrong.tolist(), total, k, n_cal)
    assert law.mean == pytest.approx(mean, rel=1e-9, abs=1e-15)
    assert law.sd**2 == pytest.approx(variance, rel=1e-8, abs=1e-15)


def test_without_ties_and_with_enough_errors_it_is_the_beta_binomial_of_fresh_data():
    rng = np.random.default_rng(0)
    nu = rng.permutation(1300) / 1300 + 1e-4
    law = SplitLaw.of(Evidence.of(np.minimum(nu, 1), rng.random(1300) < 0.4), 20, 200)
    assert law.mean == pytest.approx(20 / 201, abs=1e-12)
    assert law.sd == pytest.approx(0.0229047, abs=5e-8)
    likely = np.arange(400)
    np.testing.assert_allclose(law.counts[likely], stats.betabinom.pmf(likely, 1100, 20, 181), atol=1e-12)


def test_large_files_with_and_without_ties():
    rng = np.random.default_rng(1)
    nu = rng.random(60_000)
    correct = rng.random(60_000) < nu
    law = SplitLaw.of(Evidence.of(nu, correct), 500, 9999)
    assert law.mean == pytest.approx(0.05, abs=1e-9)
    assert law.sd == pytest.approx(stats.betabinom.std(50_001, 500, 9500) / 50_001, rel=1e-6)
    tied = SplitLaw.of(Evidence.of(np.ceil(nu[:12_000] * 20) / 20, correct[:12_000]), 100, 1000)
    mean, variance = by_pairs(tied.wrong.tolist(), 12_000, 100, 1000)
    assert tied.mean == pytest.approx(mean, rel=1e-9)
    assert tied.sd**2 == pytest.approx(variance, rel=1e-8)
    with pytest.raises(InvalidValue, match="n_cal must lie"):
        SplitLaw.of(Evidence.of(nu, correct), 1, 60_000)


def test_the_hypergeometric_law_is_scipys(monkeypatch):
    monkeypatch.setattr(split_law, "_CHUNK_ENTRIES", 500)  # worked off in pieces
    rng = np.random.default_rng(2)
    population = rng.integers(1, 3000, 400)
    marked, drawn = (rng.integers(0, population + 1) for _ in range(2))
    at_most = np.clip(rng.integers(-40, 40, 400) + marked * drawn // population, 0, None)
    exact = stats.hypergeom.cdf(at_most, population, marked, drawn)
    np.testing.assert_allclose(hypergeometric_cdf(at_most, population, marked, drawn), exact, atol=1e-10)


def rare_atom():
    """Forty wrong rows tied at the top of 500: ten calibrating on 100 almost always meet two of them."""
    nu = np.where(np.arange(500) < 60, 1.0, 0.5)
    return Evidence.of(nu, (np.arange(500) >= 40))


def sum_law(law, splits):
    """The number of errors in so many splits, added up one by one."""
    together = np.ones(1)
    for _ in range(splits):
        together = np.convolve(together, law.counts)
    return together


@pytest.mark.parametrize("splits", [1, 2, 7, 40])
@pytest.mark.parametrize(("k", "n_cal"), [(0, 100), (1, 100), (3, 100), (5, 100), (9, 100), (101, 100)])
def test_the_p_value_is_that_of_the_sum_of_independent_splits(k, n_cal, splits):
    law = SplitLaw.of(rare_atom(), k, n_cal)
    together = sum_law(law, splits)
    for errors in sorted({0, 1, 3, *np.flatnonzero(together > 1e-9)[:: max(1, len(together) // 30)].tolist()}):
        exact = min(1.0, 2 * min(together[errors:].sum(), together[: errors + 1].sum()))
        assert law.p_value(errors, splits) == pytest.approx(exact, abs=1e-10)
    assert law.p_value(10**6, splits) == 0


def test_a_coarser_lattice_gives_nearly_the_same_p_values(monkeypatch):
    rng = np.random.default_rng(3)
    nu = rng.random(2000)
    law = SplitLaw.of(Evidence.of(nu, rng.random(2000) < nu), 20, 200)
    errors = [round(400 * law.n_test * (law.mean + z * law.sd / 20)) for z in (-3, -1, 0, 1, 3)]
    fine = [law.p_value(count, 400) for count in errors]
    monkeypatch.setattr(split_law, "_LATTICE", 2**17)
    coarse = [law.p_value(count, 400) for count in errors]
    assert coarse == pytest.approx(fine, rel=0.02)
    assert coarse != fine  # a lattice for one split would not be coarser, and that for a million questions not fit


@pytest.mark.parametrize("k", [1, 2, 3])
def test_rare_errors_raise_no_more_alarms_than_the_level_allows(k):
    """Summed over everything that can happen: P(p < level) ≤ level, where a normal law for z would err by far."""
    splits, level = 100, 1e-3
    law = SplitLaw.of(rare_atom(), k, 100)
    together = sum_law(law, splits)
    possible = np.flatnonzero(together > 1e-12)
    alarms = sum(together[errors] for errors in possible if law.p_value(int(errors), splits) < level)
    assert alarms <= level
    z = (possible / (splits * law.n_test) - law.mean) / (law.sd / np.sqrt(splits))
    normal = together[possible][2 * stats.norm.sf(np.abs(z)) < level].sum()
    assert normal > 3 * level or k > 2


@pytest.mark.parametrize("n_cal", [0, -1, 5, 6])
def test_a_split_has_rows_on_both_sides(n_cal):
    evidence = Evidence.of([0.2, 0.4, 0.6, 0.8, 0.9], [True, False, True, False, True])
    with pytest.raises(InvalidValue, match=f"n_cal must lie between 1 and 4, got {n_cal}"):
        SplitLaw.of(evidence, 1, n_cal)


def test_what_cannot_happen_has_the_p_value_zero():
    """All rows are wrong and all are answered: each split of ten has exactly six errors."""
    law = SplitLaw.of(Evidence.of([0.5] * 10, [False] * 10), 5, 4)
    assert [law.p_value(errors, 3) for errors in (0, 17, 18, 19)] == [0, 0, 1, 0]


def test_p_values_are_probabilities_out_to_the_last_error():
    law = SplitLaw.of(rare_atom(), 3, 100)
    p_values = [law.p_value(errors, 40) for errors in range(40 * 40 + 1)]
    assert min(p_values) >= 0
    assert max(p_values) <= 1


def test_the_hypergeometric_law_is_a_law_at_the_ends_of_its_range_too():
    """Every count of every small urn, the impossible ones included, in whole numbers."""
    for population in range(1, 13):
        for marked in range(population + 1):
            for drawn in range(population + 1):
                at_most = np.arange(population + 1)
                ways = [math.comb(marked, i) * math.comb(population - marked, drawn - i) for i in range(drawn + 1)]
                exact = np.cumsum(ways + [0] * (population - drawn)) / math.comb(population, drawn)
                law = hypergeometric_cdf(at_most, population, marked, drawn)
                np.testing.assert_allclose(law, exact, atol=1e-12)
                assert law.max() <= 1


def test_a_chance_is_never_above_one_however_its_terms_round():
    chances = hypergeometric_cdf(np.arange(2001), 5000, 2000, 1000)
    assert chances.max() == 1
    assert (np.diff(chances) >= -1e-12).all()
