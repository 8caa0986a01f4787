"""Audits in order: a monitor may take what arrived before, and waits for labels; what becomes known first misleads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from demur.errors import InvalidValue
from demur.monitoring import AuditedQuestion, ErrorMonitor, settled
from monitored import drawn, policy_of, same

DELTA, RUNS = 0.1, 200
TOO_MANY = int(stats.binom.isf(1e-6, RUNS, DELTA))


def test_audits_are_taken_up_to_the_first_whose_label_is_to_come():
    abstained, right, wrong, awaited = (
        AuditedQuestion(False),
        AuditedQuestion(True, False),
        AuditedQuestion(True, True),
        AuditedQuestion(True),
    )
    assert settled([abstained, wrong, right, awaited, abstained, wrong]) == [False, True, False]
    assert settled([awaited, wrong]) == []
    assert settled([]) == []


def test_a_label_that_will_never_come_counts_as_no_error_and_holds_up_nothing():
    assert settled([AuditedQuestion(True, given_up=True), AuditedQuestion(True, True)]) == [False, True]
    assert AuditedQuestion(True, given_up=True).awaited
    assert not AuditedQuestion(False).awaited


def test_what_was_not_answered_was_not_answered_wrongly():
    with pytest.raises(InvalidValue, match="a question that was not answered was not answered wrongly"):
        AuditedQuestion(False, True)


def test_a_monitor_takes_what_is_new_as_labels_come_in_any_order():
    rng, policy = np.random.default_rng(0), policy_of(*drawn(0))
    truth = [
        AuditedQuestion(bool(answered), bool(answered and wrong)) for answered, wrong in rng.random((200, 2)) < 0.4
    ]
    known = [audit if not audit.answered else AuditedQuestion(True) for audit in truth]
    monitor = ErrorMonitor(policy).update(settled(known))
    for at in rng.permutation(200).tolist():
        known[at] = truth[at]
        monitor.update(settled(known)[monitor.n :])
    assert same(monitor, ErrorMonitor(policy).update(settled(truth)))
    assert monitor.n == 200


def alarms(order):
    """Alarms without any drift, at the true rate, half of the questions being answered."""
    count = 0
    for seed in range(RUNS):
        second, right = drawn(seed, n=200, wrong=0.2)
        policy = policy_of(second, right)
        threshold = max(0.0, policy.point().threshold_key[1])
        rng = np.random.default_rng(50_000 + seed)
        answered = rng.random(800) > threshold
        wrong = answered & (rng.random(800) < 0.2)
        count += ErrorMonitor(policy, delta=DELTA).update(wrong[order(answered)]).alarm
    return count


def test_in_the_order_of_arrival_false_alarms_are_as_rare_as_promised():
    assert alarms(lambda answered: np.arange(len(answered))) <= TOO_MANY


def test_in_the_order_in_which_they_become_known_they_are_not():
    """The negative control: abstentions need no label, and are known first."""
    assert alarms(lambda answered: np.argsort(answered, kind="stable")) > TOO_MANY
