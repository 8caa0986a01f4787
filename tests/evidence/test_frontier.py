"""The frontier: one point per distinct key, areas by hand, invariance to the order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.frontier import Frontier, common_auc

NU = np.array([0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5, 0.45, 0.3])
WRONG = np.array([0, 1, 0, 0, 1, 0, 0, 1, 1], dtype=bool)

votes = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40)


def test_the_areas_of_the_fixture():
    curve = Frontier.of(Evidence.of(NU, ~WRONG))
    assert curve.auc == pytest.approx(0.5889330, abs=5e-8)
    assert curve.auc_normalised == pytest.approx(0.6625496, abs=5e-8)
    assert (curve.answered[0], curve.answered[-1]) == (pytest.approx(1 / 9), 1.0)


def test_a_curve_of_two_points_is_one_trapezoid():
    curve = Frontier.of(Evidence.of([0.9, 0.9, 0.4, 0.4], [True, True, True, False]))
    assert curve.answered.tolist() == [0.5, 1.0]
    assert curve.selective_accuracy.tolist() == [1.0, 0.75]
    assert curve.auc == pytest.approx(0.5 * 0.875)
    assert curve.aurc == pytest.approx((0 + 0 + 0.25 + 0.25) / 4)
    assert curve.auroc == pytest.approx((1 + 1 + 0.5) / 3)


def test_aurc_weighs_each_level_by_its_votes():
    curve = Frontier.of(Evidence.of([0.9, 0.4, 0.4, 0.4], [False, True, True, True]))
    assert curve.aurc == pytest.approx((1 + 3 * 0.25) / 4)


@given(votes, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(table, random):
    first, second = (
        Frontier.of(Evidence.of([v / 8 for v, _ in rows], np.array([c for _, c in rows], dtype=bool)))
        for rows in (table, random.sample(table, len(table)))
    )
    np.testing.assert_array_equal(first.answered, second.answered)
    np.testing.assert_array_equal(first.selective_accuracy, second.selective_accuracy)
    for area in ("auc", "auc_normalised", "aurc", "auroc"):
        np.testing.assert_equal(getattr(first, area), getattr(second, area))


@given(votes)
def test_each_point_is_the_share_answered_and_the_share_right_read_literally(table):
    nu, correct = np.array([v / 8 for v, _ in table]), np.array([c for _, c in table], dtype=bool)
    curve = Frontier.of(Evidence.of(nu, correct))
    levels = sorted({v for v in nu if v > 0}, reverse=True)
    assert curve.threshold.tolist() == levels
    for level, x, y in zip(levels, curve.answered, curve.selective_accuracy, strict=True):
        assert x == pytest.approx(np.mean(nu >= level))
        assert y == pytest.approx(correct[nu >= level].mean())


@given(votes)
def test_auroc_counts_pairs_with_ties_half(table):
    right = [v for v, c in table if c]
    wrong = [v for v, c in table if not c]
    curve = Frontier.of(Evidence.of([v / 8 for v, _ in table], np.array([c for _, c in table], dtype=bool)))
    if not right or not wrong:
        assert np.isnan(curve.auroc)
        return
    pairs = [1.0 if r > w else 0.5 if r == w else 0.0 for r in right for w in wrong]
    assert curve.auroc == pytest.approx(np.mean(pairs))


def test_votes_without_confidence_make_no_point_because_no_threshold_answers_them():
    curve = Frontier.of(Evidence.of([0.0, 0.5], [False, True]))
    assert curve.answered.tolist() == [0.5]
    assert curve.auc == 0.0
    assert curve.auc_normalised == 1.0
    nothing = Frontier.of(Evidence.of([0.0], [False]))
    assert len(nothing.answered) == 0
    assert np.isnan(nothing.auc_normalised)


def test_the_common_area_compares_frontiers_where_all_of_them_reach():
    fine = Frontier.of(Evidence.of([0.9, 0.7, 0.5, 0.3], [True, True, False, False]))
    coarse = Frontier.of(Evidence.of([0.9, 0.9, 0.3, 0.3], [True, True, False, False]))
    # Shared yields [1/2, 1]: accuracies fall 1 → 2/3 → 1/2 on the fine curve and straight from 1 to 1/2 on the other.
    assert common_auc([fine, coarse]) == [
        pytest.approx((0.25 * (1 + 2 / 3) / 2 + 0.25 * (2 / 3 + 1 / 2) / 2) / 0.5),
        pytest.approx(0.75),
    ]
    point = Frontier.of(Evidence.of([0.5, 0.5], [True, False]))
    assert common_auc([fine, point]) == [0.5, 0.5]
    with pytest.raises(InvalidValue, match="at least one"):
        common_auc([])
    with pytest.raises(InvalidValue, match="without points"):
        common_auc([fine, Frontier.of(Evidence.of([0.0], [False]))])


@given(st.lists(votes, min_size=2, max_size=3))
def test_the_common_area_is_the_mean_accuracy_over_the_shared_yields(tables):
    """By a fine sum over the shared range, straight lines in between; where nothing is shared, there is no area."""
    curves = [
        Frontier.of(Evidence.of([(1 + v) / 9 for v, _ in table], np.array([c for _, c in table], dtype=bool)))
        for table in tables
    ]
    low, high = max(curve.answered[0] for curve in curves), min(curve.answered[-1] for curve in curves)
    middles = low + (high - low) * (np.arange(20_000) + 0.5) / 20_000
    means = [np.interp(middles, curve.answered, curve.selective_accuracy).mean() for curve in curves]
    assert common_auc(curves) == pytest.approx(means, abs=1e-6)


def test_frontiers_that_share_no_yield_have_no_common_area():
    low = Frontier.of(Evidence.of([0.9, 0.0, 0.0, 0.0], [True, False, False, False]))  # answers a quarter
    high = Frontier.of(Evidence.of([0.9, 0.9, 0.9, 0.5], [True, True, True, False]))  # from three quarters on
    with pytest.raises(InvalidValue, match=r"share no yield: .* \[0.75, 0.25\]"):
        common_auc([low, high])
