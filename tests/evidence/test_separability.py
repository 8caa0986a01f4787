"""Separability, hazards, the predictor and its band: fixtures, identities, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.predictor import AccuracyBand, Interval, predicted_accuracy
from demur.evidence.separability import Hazards, Separability

NU = np.array([0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5, 0.45, 0.3])
WRONG = np.array([0, 1, 0, 0, 1, 0, 0, 1, 1], dtype=bool)

votes = st.lists(st.tuples(st.integers(1, 16), st.booleans()), min_size=1, max_size=40)


def evidence_of(table):
    return Evidence.of([v / 16 for v, _ in table], np.array([c for _, c in table], dtype=bool))


def test_the_fixture_at_065():
    at = Separability.of(Evidence.of(NU, ~WRONG), [0.65])
    assert at.answered[0] == pytest.approx(4 / 9)
    assert at.confident_error[0] == pytest.approx(1 / 9)
    assert at.selective_accuracy[0] == 0.75
    assert at.vote_accuracy == pytest.approx(5 / 9)
    assert (at.survival_right[0], at.survival_wrong[0]) == (0.6, 0.25)
    assert at.separability_gap[0] == pytest.approx(0.35)
    assert at.false_abstention[0] == pytest.approx(2 / 9)
    assert predicted_accuracy(at.vote_accuracy, at.survival_right, at.survival_wrong)[0] == pytest.approx(0.75)


@given(votes)
def test_the_closed_form_is_the_empirical_selective_accuracy(table):
    at = Separability.of(evidence_of(table))
    if 0 < at.vote_accuracy < 1:
        closed = predicted_accuracy(at.vote_accuracy, at.survival_right, at.survival_wrong)
        np.testing.assert_allclose(closed, at.selective_accuracy, atol=1e-12)
    np.testing.assert_allclose(at.answered, at.confident_error + (at.vote_accuracy - at.false_abstention), atol=1e-12)


@given(votes)
def test_discrete_hazards_recover_both_survival_functions_exactly(table):
    evidence = evidence_of(table)
    hazard = Hazards.of(evidence)
    at = Separability.of(evidence, hazard.edges)
    for rate, survival in ((hazard.hazard_right, at.survival_right), (hazard.hazard_wrong, at.survival_wrong)):
        if np.isnan(survival).all():
            assert np.isnan(rate).all()
            continue
        np.testing.assert_allclose(np.cumprod(1 - np.where(np.isnan(rate), 0, rate)), survival, atol=1e-12)


def test_discrete_hazards_of_the_fixture_and_the_product_below_lambda_is_another_quantity():
    nu, correct = [0.25, 0.5, 0.5, 1.0], np.ones(4, dtype=bool)
    hazard = Hazards.of(Evidence.of(nu, correct))
    np.testing.assert_allclose(hazard.hazard_right, [0.25, 2 / 3, 1])
    np.testing.assert_allclose(np.cumprod(1 - hazard.hazard_right), [0.75, 0.25, 0])  # v ≤ λ: P(ν > λ)
    assert np.prod(1 - hazard.hazard_right[:1]) == 0.75  # v < λ at 0.5: P(ν ≥ λ), the paper's slip
    assert np.isnan(hazard.hazard_gap).all()  # no wrong votes: no gap


@given(votes, st.integers(1, 9))
def test_binned_hazards_recover_the_survival_functions_at_every_edge(table, bins):
    evidence = evidence_of(table)
    edges = np.linspace(0, 1, bins + 1)
    hazard = Hazards.binned(evidence, edges)
    at = Separability.of(evidence, edges[1:])
    for rate, survival in ((hazard.hazard_right, at.survival_right), (hazard.hazard_wrong, at.survival_wrong)):
        if np.isnan(survival).all():
            continue
        with np.errstate(invalid="ignore"):
            recovered = np.exp(-np.cumsum(np.where(np.isnan(rate), 0, rate) * np.diff(edges)))
        np.testing.assert_allclose(recovered, survival, atol=1e-12)


def test_binned_hazards_refuse_edges_that_do_not_ascend_or_start_too_high():
    evidence = Evidence.of(NU, ~WRONG)
    with pytest.raises(InvalidValue, match="ascending"):
        Hazards.binned(evidence, [0.0, 0.5, 0.5])
    with pytest.raises(InvalidValue, match="below every confidence"):
        Hazards.binned(evidence, [0.3, 1.0])


def test_an_empty_class_gives_nan_and_no_error():
    for labels in (np.ones(3, bool), np.zeros(3, bool)):
        at = Separability.of(Evidence.of([0.2, 0.5, 0.9], labels))
        assert np.isnan(at.separability_gap).all()
        assert np.isfinite(at.answered).all()
    nothing = Separability.of(Evidence.of([0.2], [True]), [0.2])
    assert np.isnan(nothing.selective_accuracy[0])


def test_the_band_is_that_of_the_theory_beside_the_papers():
    rng = np.random.default_rng(0)
    nu = rng.random(200)
    evidence = Evidence.of(nu, rng.random(200) < nu)
    band = AccuracyBand.of(evidence, delta=0.05, threshold=[0.25])
    at = Separability.of(evidence, [0.25])
    eps, eps_one = np.sqrt(np.log(80) / 400), np.sqrt(np.log(40) / 400)
    assert band.upper[0] - band.predicted[0] == pytest.approx(eps / at.answered[0]) or band.upper[0] == 1
    assert band.predicted[0] - band.lower[0] == pytest.approx(eps / at.answered[0])
    assert band.predicted[0] - band.lower_one_sided[0] == pytest.approx(eps_one / at.answered[0])
    assert band.paper_half_width[0] == pytest.approx(4 * eps / at.answered[0])
    # theory 1.3: ours .14 at yield .75 and n = 200
    assert eps / 0.75 == pytest.approx(0.1396, abs=1e-4)


def test_the_paper_bound_is_infinite_where_its_condition_on_n_fails_and_nan_where_nothing_is_answered():
    needed = int(np.ceil(2 * np.log(4 / 0.05)))  # at yield 1
    for n, known in ((needed, True), (needed - 1, False)):
        full = AccuracyBand.of(Evidence.of(np.full(n, 0.5), np.ones(n, bool)), threshold=[0.0])
        assert np.isfinite(full.paper_half_width[0]) == known
    band = AccuracyBand.of(Evidence.of([0.2, 0.8], [True, False]), threshold=[0.0, 0.9])
    assert np.isinf(band.paper_half_width[0])
    assert np.isnan(band.paper_half_width[1])
    assert np.isnan(band.lower[1])


def test_the_band_covers_the_truth_at_all_thresholds_at_once_as_often_as_promised():
    """ν ~ U(0, 1), correct with probability ν: A_c(λ) = (1 + λ)/2. 400 sets of 150; delta = 0.2."""
    rng = np.random.default_rng(11)
    grid = np.linspace(0, 0.9, 40)
    two, one = 0, 0
    for _ in range(400):
        nu = rng.random(150)
        band = AccuracyBand.of(Evidence.of(nu, rng.random(150) < nu), delta=0.2, threshold=grid)
        truth = (1 + grid) / 2
        seen = ~np.isnan(band.predicted)
        two += bool(((band.lower <= truth) & (truth <= band.upper))[seen].all())
        one += bool((band.lower_one_sided <= truth)[seen].all())
    slack = 4 * np.sqrt(0.2 * 0.8 / 400)
    assert two / 400 >= 0.8 - slack
    assert one / 400 >= 0.8 - slack
    assert one / 400 < 1  # negative control: the bound is not vacuous


def test_exact_intervals_by_hand():
    assert Interval.exact(0, 10).lower == 0
    assert Interval.exact(10, 10).upper == 1
    half = Interval.exact(5, 10, delta=0.05)
    assert (half.lower, half.upper) == (pytest.approx(0.1871, abs=1e-4), pytest.approx(0.8129, abs=1e-4))
    empty = Interval.exact(0, 0)
    assert np.isnan(empty.estimate)
    with pytest.raises(InvalidValue, match="between 0 and trials"):
        Interval.exact(3, 2)
    with pytest.raises(InvalidValue, match="delta must lie"):
        Interval.exact(1, 2, delta=0)
    with pytest.raises(InvalidValue, match="delta must lie"):
        AccuracyBand.of(Evidence.of([0.5], [True]), delta=1)


@pytest.mark.parametrize(("s_right", "s_wrong"), [(0.8, 0.3), (0.9, 0.1), (0.5, 0.4)])
def test_the_largest_gain_at_fixed_survival_is_where_the_theory_says(s_right, s_wrong):
    p = np.linspace(0.001, 0.999, 99_801)
    gain = predicted_accuracy(p, s_right, s_wrong) - p
    assert p[gain.argmax()] == pytest.approx(np.sqrt(s_wrong) / (np.sqrt(s_right) + np.sqrt(s_wrong)), abs=1e-4)


@given(votes)
def test_without_thresholds_the_table_is_at_zero_and_every_distinct_confidence(table):
    evidence = evidence_of(table)
    at = Separability.of(evidence)
    assert at.threshold.tolist() == [0.0, *sorted({v / 16 for v, _ in table})]
    assert at.n == len(table)
    assert at.answered[0] == 1
    assert AccuracyBand.of(evidence).threshold.tolist() == at.threshold.tolist()


@given(votes, st.integers(1, 9))
def test_hazard_gaps_are_wrong_minus_right_and_belong_to_their_edges(table, bins):
    evidence = evidence_of(table)
    edges = np.linspace(0, 1, bins + 1)
    discrete, binned = Hazards.of(evidence), Hazards.binned(evidence, edges)
    assert discrete.edges.tolist() == sorted({v / 16 for v, _ in table})
    assert binned.edges.tolist() == edges[1:].tolist()
    for hazard in (discrete, binned):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(hazard.hazard_gap, hazard.hazard_wrong - hazard.hazard_right)


@pytest.mark.parametrize("edges", [[], [0.0], [[0.0, 0.5], [0.5, 1.0]], [0.0, 0.5, 0.4], 0.5])
def test_bins_need_two_ends(edges):
    with pytest.raises(InvalidValue, match="edges must be at least two ascending numbers"):
        Hazards.binned(Evidence.of(NU, ~WRONG), edges)


def test_the_first_edge_is_named_where_it_lies_too_high():
    with pytest.raises(InvalidValue, match=r"the first edge, 0.3, must"):
        Hazards.binned(Evidence.of(NU, ~WRONG), [0.3, 1.0])


@pytest.mark.parametrize("share", [0.2, 0.4, 0.8])
def test_the_condition_of_the_paper_bound_is_on_the_yield_squared(share):
    """n ≥ 2 log(4/δ) / s₀²: on either side of it, with a share of the votes answered."""
    needed = 2 * np.log(4 / 0.05) / share**2
    for n in (5 * int(needed // 5), 5 * int(needed // 5 + 1)):
        nu = np.where(np.arange(n) < round(share * n), 0.9, 0.4)
        band = AccuracyBand.of(Evidence.of(nu, np.ones(n, bool)), threshold=[0.5])
        assert np.isfinite(band.paper_half_width[0]) == (n >= needed)


def test_the_ends_of_a_band_and_of_an_interval_are_rates():
    band = AccuracyBand.of(Evidence.of([0.9, 0.8, 0.2], [True, True, False]))
    answered = ~np.isnan(band.predicted)
    assert (band.upper[answered] == 1).all()  # three votes know nothing
    assert (band.lower[answered] == 0).all()
    nothing = Interval.exact(0, 0)
    assert (nothing.lower, nothing.upper) == (0.0, 1.0)
    assert Interval.exact(3, 4).estimate == 0.75


@pytest.mark.parametrize("delta", [0, 1, 1.5, -0.1, float("nan")])
def test_a_delta_outside_the_open_unit_interval_is_refused(delta):
    with pytest.raises(InvalidValue, match=r"delta must lie strictly between 0 and 1, got"):
        Interval.exact(1, 2, delta=delta)
    with pytest.raises(InvalidValue, match=r"delta must lie strictly between 0 and 1, got"):
        AccuracyBand.of(Evidence.of([0.5], [True]), delta=delta)


def test_the_closed_form_says_nothing_where_the_yield_is_lost_to_rounding():
    assert np.isnan(predicted_accuracy([1e-20, 0.5, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0])).all()
