"""Rates among audits: counts by hand, awaited labels either way, limits by the formula, sentences word for word."""

from __future__ import annotations

import math

import pytest

from demur.errors import InvalidValue
from demur.monitoring import AuditedQuestion, audited_rates
from demur.monitoring.confidence import limits_at_all_times
from monitored import drawn, policy_of

POLICY = policy_of(*drawn(0), alpha=[0.05, 0.1])
ABSTAINED, RIGHT, WRONG, AWAITED = (
    AuditedQuestion(False),
    AuditedQuestion(True, False),
    AuditedQuestion(True, True),
    AuditedQuestion(True),
)


def test_rates_are_shares_of_what_they_are_about():
    rates = audited_rates([ABSTAINED] * 60 + [RIGHT] * 36 + [WRONG] * 4, POLICY, alpha=0.1)
    assert (rates.audited, rates.answered, rates.right, rates.wrong, rates.awaited) == (100, 40, 36, 4, 0)
    assert (rates.accuracy, rates.answered_share) == (0.9, 0.4)
    assert rates.confident_error == pytest.approx(0.04)
    assert rates.accuracy_limits == limits_at_all_times(36, 40)
    assert rates.confident_error_limits == limits_at_all_times(4, 100)
    expected = POLICY.forecast(0.1)
    assert (rates.predicted_accuracy, rates.alpha) == (expected.selective_accuracy_corrected, 0.1)
    assert rates.predicted_answered == expected.answered


def test_limits_allow_for_whatever_awaited_labels_will_say():
    waiting = [ABSTAINED] * 60 + [RIGHT] * 26 + [WRONG] * 4 + [AWAITED] * 8 + [AuditedQuestion(True, given_up=True)] * 2
    rates = audited_rates(waiting, POLICY)
    assert rates.awaited == 10
    assert rates.accuracy == pytest.approx(26 / 30)
    assert rates.confident_error == pytest.approx(0.4 * 4 / 30)
    for right in range(26, 37):
        outcome = audited_rates([ABSTAINED] * 60 + [RIGHT] * right + [WRONG] * (40 - right), POLICY)
        assert rates.accuracy_limits.low <= outcome.accuracy_limits.low
        assert rates.accuracy_limits.high >= outcome.accuracy_limits.high
        assert rates.confident_error_limits.low <= outcome.confident_error_limits.low
        assert rates.confident_error_limits.high >= outcome.confident_error_limits.high


def test_the_order_does_not_matter_and_all_audits_count():
    audits = [WRONG, ABSTAINED, RIGHT, AWAITED, RIGHT]
    assert audited_rates(audits, POLICY) == audited_rates(audits[::-1], POLICY)


def test_of_nothing_there_are_no_rates():
    none = audited_rates([], POLICY)
    assert all(map(math.isnan, (none.accuracy, none.confident_error, none.answered_share)))
    assert (none.accuracy_limits.low, none.accuracy_limits.high) == (0, 1)
    assert none.sentences == ("Nothing was audited yet.",)
    quiet = audited_rates([ABSTAINED] * 9, POLICY)
    assert quiet.confident_error == 0
    assert quiet.sentences[0] == "No audited question was answered."
    assert audited_rates([AWAITED], POLICY).sentences[0] == "None of 1 audited answers has a label yet."
    assert math.isnan(audited_rates([AWAITED], POLICY).confident_error)


def test_they_are_told_word_for_word():
    rates = audited_rates([ABSTAINED] * 60 + [RIGHT] * 30 + [WRONG] * 2 + [AWAITED] * 8, POLICY, alpha=0.1)
    low, high = rates.accuracy_limits.low, rates.accuracy_limits.high
    least, most = rates.confident_error_limits.low, rates.confident_error_limits.high
    assert rates.sentences == (
        f"30 of 32 audited answers with a label are right (93.8%; {low:.1%} to {high:.1%}, 95% limits, at all times at "
        f"once); calibration predicted {rates.predicted_accuracy:.1%}.",
        f"2 of 100 audited questions were answered wrongly ({least:.1%} to {most:.1%}); the promise is about an alpha "
        "of 0.1. 8 of the answers have no label yet: limits allow for either.",
    )


def test_where_labels_are_missing_calibration_predicts_at_least_so_much():
    second, right = drawn(0)
    known = [bool(label) if row % 3 else None for row, label in enumerate(right)]
    policy = policy_of(second, known, alpha=0.5, partly_labelled=True)
    rates = audited_rates([RIGHT], policy)
    assert rates.predicted_at_least
    assert rates.sentences[0].endswith(f"calibration predicted at least {rates.predicted_accuracy:.1%}.")
    assert not audited_rates([RIGHT], POLICY).predicted_at_least


@pytest.mark.parametrize("delta", [0, 1, "0.05", None])
def test_a_level_lies_between_zero_and_one(delta):
    with pytest.raises(InvalidValue, match="delta must be a number strictly between 0 and 1"):
        audited_rates([RIGHT], POLICY, delta=delta)


def test_an_alpha_that_was_not_calibrated_is_refused():
    with pytest.raises(InvalidValue, match="was not calibrated for alpha"):
        audited_rates([RIGHT], POLICY, alpha=0.3)
