"""The forecast: each figure by hand from the fixture, and where nothing is answered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.calibration import Marginal, settle_by_size
from demur.calibration.forecast import forecast
from demur.evidence.counts import Evidence
from demur.evidence.strata import Strata
from demur.voting.cases import Cases

NU = [0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5, 0.45, 0.3]
WRONG = np.array([0, 1, 0, 0, 1, 0, 0, 1, 1], dtype=bool)


def forecast_at(alpha, nu=NU, wrong=WRONG):
    evidence = Evidence.of(nu, ~wrong)
    return forecast(evidence, Marginal(alpha).settle(evidence))


def test_the_fixture_at_alpha_02():
    expected = forecast_at(0.2)  # k = 2, threshold 0.65: four answered, one of them wrong
    assert (expected.alpha, expected.threshold) == (0.2, 0.65)
    assert expected.answered == pytest.approx(4 / 9)
    assert expected.selective_accuracy == 0.75
    assert expected.selective_accuracy_corrected == pytest.approx(1 - (2 / 10) / (4 / 9))
    assert expected.confident_error == pytest.approx(1 / 9)
    assert expected.expected_confident_error == pytest.approx(2 / 10)  # k / (n + 1)
    assert expected.false_abstention == pytest.approx(2 / 9)
    assert expected.accuracy_at_least == 0.0  # nine votes promise nothing


def test_the_lower_bound_is_the_uniform_one():
    rng = np.random.default_rng(0)
    nu = rng.random(2000)
    wrong = rng.random(2000) > nu
    expected = forecast_at(0.1, nu, wrong)
    margin = math.sqrt(math.log(2 / 0.05) / 4000) / expected.answered
    assert expected.accuracy_at_least == pytest.approx(expected.selective_accuracy - margin)
    assert 0 < expected.accuracy_at_least < expected.selective_accuracy_corrected < expected.selective_accuracy


def test_scarce_errors_leave_nothing_to_correct():
    expected = forecast_at(0.5)  # fewer than k wrong: everything is answered
    assert expected.answered == 1
    assert expected.selective_accuracy_corrected == pytest.approx(expected.selective_accuracy)


def test_nothing_answered_has_no_accuracy():
    expected = forecast_at(0.05)
    assert expected.answered == 0
    assert math.isnan(expected.selective_accuracy)
    assert math.isnan(expected.accuracy_at_least)
    assert math.isnan(expected.selective_accuracy_corrected)


def test_ties_and_errors_without_confidence_are_not_overcorrected():
    tied = forecast_at(0.3, [0.9] * 8 + [0.5] * 12, np.array([False] * 8 + [True] * 12))
    assert tied.selective_accuracy_corrected == pytest.approx(1 - (1 / 21) / (8 / 20))  # one error more, not k of them
    silent = forecast_at(0.1, [0.9] * 17 + [0.0] * 2, np.array([False] * 17 + [True] * 2))
    assert silent.threshold == 0
    assert silent.selective_accuracy_corrected == 1.0


def literal_expectation(rule, rows):
    """Each threshold was set by an error, which a new question may make too: by hand, from (size, key, right)."""
    groups = {}
    for size, key, right in rows:
        threshold = rule.threshold_of(size)
        groups.setdefault(size if size in rule.by_size else None, []).append((key > threshold, right, threshold[0]))
    expected = 0.0
    for group, votes in groups.items():
        wrong = sum(answered and not right for answered, right, _ in votes)
        own = rule.by_size[group][0] if group is not None else rule.threshold
        set_by_an_error = own > 0 and any(answered for answered, *_ in votes)
        expected += len(votes) * ((1 + wrong) / (len(votes) + 1) if set_by_an_error else wrong / len(votes))
    return expected / len(rows)


sized = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.booleans()), min_size=3, max_size=40)


@given(sized, st.sampled_from([0.1, 0.25, 0.4, 0.6]), st.booleans())
def test_what_to_expect_of_pools_of_several_sizes_counts_an_error_more_for_each_threshold(table, alpha, secondary):
    nu = np.array([level / 4 for _, level, _ in table])
    sizes, right = np.array([size for size, *_ in table]), np.array([label for *_, label in table])
    keys = np.stack([nu, -nu], axis=1) if secondary else nu[:, None]
    strata = Strata.of(Cases(keys, sizes), right)
    rule = settle_by_size(Marginal(alpha), strata)
    rows = list(zip(sizes.tolist(), map(tuple, keys.tolist()), right.tolist(), strict=True))
    assert forecast(strata, rule).expected_confident_error == pytest.approx(literal_expectation(rule, rows), abs=1e-12)


def test_two_sizes_with_thresholds_of_their_own_each_count_an_error_more():
    """200 pools of eight paths are right; those of two and four paths are wrong at every tenth and fifth level."""
    rows = [(size, (level + 1) / 20, level % step > 0) for size, step in ((2, 5), (4, 4)) for level in range(20)] * 2
    rows += [(8, 1.0, True)] * 200
    sizes, nu, right = (np.array(column) for column in zip(*rows, strict=True))
    strata = Strata.of(Cases(nu[:, None], sizes), right)
    rule = settle_by_size(Marginal(0.1), strata)
    assert set(rule.by_size) == {2, 4}
    expected = forecast(strata, rule)
    literal = literal_expectation(rule, [(size, (key,), label) for size, key, label in rows])
    assert expected.expected_confident_error == pytest.approx(literal)
    margin = 3 * math.sqrt(math.log(2 * 3 / 0.05) / (2 * len(rows)))  # three thresholds share the 5 %
    assert expected.accuracy_at_least == pytest.approx(expected.selective_accuracy - margin / expected.answered)


def test_a_threshold_that_lets_as_many_wrong_votes_through_as_right_ones_is_corrected_too():
    expected = forecast_at(
        0.4, [0.9, 0.8, 0.5, 0.4], np.array([True, False, True, True])
    )  # k = 2: one of each above 0.5
    assert (expected.answered, expected.selective_accuracy) == (0.5, 0.5)
    assert expected.expected_confident_error == pytest.approx(2 / 5)


def test_sizes_of_which_nothing_is_answered_have_nothing_to_correct():
    """98 pools of four paths have k = 9 by themselves and k = 10 with three of two paths, which are too few to pass."""
    nu = np.append(np.linspace(0.01, 0.98, 98), [1.0] * 3)
    right = np.append(np.arange(98) % 5 > 0, [True] * 3)
    strata = Strata.of(Cases(nu[:, None], np.array([4] * 98 + [2] * 3)), right)
    rule = settle_by_size(Marginal(0.1), strata)
    assert (set(rule.by_size), rule.takes(2)) == ({4}, False)
    assert forecast(strata, rule).expected_confident_error == pytest.approx(98 * 9 / 99 / 101)
