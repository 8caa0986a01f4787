"""The forecast: each figure by hand from the fixture, and where nothing is answered."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.calibration import Marginal
from demur.calibration.forecast import forecast
from demur.evidence.counts import Evidence

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
