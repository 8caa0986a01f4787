"""Audited errors: the calibrated level, bets by their definition, few false alarms, and what must fail fails."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import InfeasibleWarning, InvalidValue
from demur.monitoring import ErrorMonitor, audited_errors
from demur.monitoring.audited_errors import calibrated_level
from demur.voting.key import Column
from monitored import drawn, policy_of, same

DELTA, RUNS = 0.1, 300
TOO_MANY = int(stats.binom.isf(1e-6, RUNS, DELTA))
"""A monitor that keeps its level has more alarms than this once in a million."""


def test_the_level_is_the_upper_point_of_the_law_of_the_true_rate():
    policy = policy_of(*drawn(0))
    assert ErrorMonitor(policy, delta=0.1).level == pytest.approx(stats.beta.isf(0.05, 20, 181), rel=1e-9)
    assert calibrated_level(policy, policy.point(), 0.05) == pytest.approx(0.13630, abs=1e-4)  # theory, f2


def test_for_a_promise_with_high_probability_the_level_is_near_its_alpha():
    second, right = drawn(0, n=1000)
    policy = dm.calibrate(
        dm.vote([["a"]] * 1000, tie_break=(Column(second), "none"), ids=range(1000)),
        right,
        guarantee=dm.HighProbability(0.1, delta=0.05),
    )
    assert 0.095 < ErrorMonitor(policy, delta=0.1).level <= 0.1


def test_where_sizes_are_kept_apart_the_largest_level_counts():
    second, right = drawn(3)
    answers = [["a"] * 4] * 60 + [["a"] * 6] * 140
    votes = dm.vote(answers, tie_break=(Column(second), "none"), ids=list(map(str, range(200))))
    apart = dm.calibrate(votes, right, alpha=0.2)
    levels = [stats.beta.isf(0.05 / 2, math.floor((n + 1) * 0.2), n + 1 - math.floor((n + 1) * 0.2)) for n in (60, 140)]
    assert ErrorMonitor(apart, delta=0.1).level == pytest.approx(max(levels), rel=1e-9)
    chance = dm.calibrate(votes, right, alpha=0.2, sizes_by_chance=True)
    assert ErrorMonitor(chance, delta=0.1).level == pytest.approx(stats.beta.isf(0.05, 40, 161), rel=1e-9)


def value_by_definition(events, level):
    """The mixture of likelihood ratios over rates and starts, read literally."""

    def cash(seen):
        return 1 / (1 + math.log2(1 + seen))

    value = cash(len(events))
    for start, odds in itertools.product(range(len(events)), (1.25, 1.5, 2, 3, 5, 10)):
        rate = odds * level / (1 - level + odds * level)
        ratio = math.prod(rate / level if event else (1 - rate) / (1 - level) for event in events[start:])
        value += (cash(start) - cash(start + 1)) / 6 * ratio
    return value


def test_the_evidence_is_the_mixture_of_likelihood_ratios():
    events = (np.random.default_rng(0).random(150) < 0.3).tolist()
    monitor = ErrorMonitor(policy_of(*drawn(0)))
    for at, event in enumerate(events, start=1):
        monitor.update(event)
        if at in (1, 2, 10, 150):
            assert monitor.log_e == pytest.approx(math.log(value_by_definition(events[:at], monitor.level)), abs=1e-9)
    assert monitor.errors == sum(events)


def test_the_alarm_is_the_first_time_that_the_evidence_reaches_two_over_delta():
    events = (np.random.default_rng(3).random(120) < 0.35).tolist()
    monitor = ErrorMonitor(policy_of(*drawn(0)), delta=0.1)
    values = [value_by_definition(events[:at], monitor.level) for at in range(1, 121)]
    monitor.update(np.array(events))
    assert monitor.alarm_at == 1 + next(at for at, value in enumerate(values) if value >= 20)
    assert monitor.p_value == pytest.approx(1 / max(values))
    known = monitor.p_value
    assert monitor.update(np.zeros(500, dtype=bool)).p_value == known  # what was found is not unfound
    assert monitor.log_e < 0


@pytest.mark.parametrize(("factor", "fair"), [(1.0, True), (0.7, True), (1.5, False)])
def test_its_mean_is_one_at_the_level_less_below_and_more_above(factor, fair):
    """Over all 2¹⁰ sequences; so the level is where evidence begins, exactly."""
    policy = policy_of(*drawn(0))
    level = ErrorMonitor(policy).level
    rate, mean = factor * level, 0.0
    for events in itertools.product((False, True), repeat=10):
        weight = rate ** sum(events) * (1 - rate) ** (10 - sum(events))
        mean += weight * math.exp(ErrorMonitor(policy).update(np.array(events)).log_e)
    assert mean == pytest.approx(1) if factor == 1 else (mean < 1) == fair


def alarms(n=100, audits=3000, wrong=0.4):
    """Alarms without any drift, over calibrations, each with the true rate that its threshold has."""
    count, rates = 0, []
    for seed in range(RUNS):
        policy = policy_of(*drawn(seed, n=n, wrong=wrong))
        rate = wrong * (1 - max(0.0, policy.point().threshold_key[1]))
        audited = np.random.default_rng(10_000 + seed).random(audits) < rate
        count += ErrorMonitor(policy, delta=DELTA).update(audited).alarm
        rates.append(rate)
    return count, np.array(rates)


def test_false_alarms_are_as_rare_as_promised_over_calibrations_and_audits():
    count, rates = alarms()
    assert count <= TOO_MANY
    assert 0.35 < (rates > 0.1).mean() < 0.55  # almost half of the policies lie above alpha, and none is to blame


def test_testing_alpha_itself_breaks_the_promise(monkeypatch):
    """The negative control: the level everybody would take."""
    monkeypatch.setattr(audited_errors, "calibrated_level", lambda policy, rule, delta: rule.alpha)
    assert alarms()[0] > TOO_MANY


def test_rates_above_the_level_are_found():
    found = []
    for seed in range(40):
        monitor = ErrorMonitor(policy_of(*drawn(seed)), delta=0.05)
        rng = np.random.default_rng(seed)
        monitor.update(rng.random(500) < 0.09)
        before = monitor.alarm
        monitor.update(rng.random(500) < 0.3)
        found.append(monitor.alarm and not before)
    assert sum(found) >= 38


def test_a_change_after_a_long_time_is_found_though_the_mean_is_still_low():
    monitor = ErrorMonitor(policy_of(*drawn(0)), delta=0.05)
    rng = np.random.default_rng(1)
    monitor.update(rng.random(50_000) < 0.05)
    assert not monitor.alarm
    monitor.update(rng.random(1000) < 0.3)
    assert monitor.alarm
    assert monitor.errors / monitor.n < 0.06 < monitor.level


def test_one_by_one_in_batches_and_after_a_pause_is_the_same(tmp_path):
    policy = policy_of(*drawn(0))
    audited = np.random.default_rng(1).random(600) < 0.2
    whole, single, paused = (ErrorMonitor(policy) for _ in range(3))
    whole.update(audited)
    for event in audited.tolist():
        single.update(event)
    for start in range(0, 600, 130):
        paused.update(audited[start : start + 130])
        paused.save(tmp_path / "errors.json")
        paused = ErrorMonitor.load(tmp_path / "errors.json", policy)
    assert same(whole, single)
    assert same(whole, paused)
    assert (whole.alarm_at, whole.log_e) == (paused.alarm_at, paused.log_e)


def test_a_tally_is_the_product_of_its_questions_with_a_start_at_its_first():
    policy = policy_of(*drawn(0))
    tallied = ErrorMonitor(policy).update_counts(9, 40)

    def ratio(odds):
        rate = odds * tallied.level / (1 - tallied.level + odds * tallied.level)
        return (rate / tallied.level) ** 9 * ((1 - rate) / (1 - tallied.level)) ** 31

    cash = 1 / (1 + math.log2(41))
    mixture = cash + (1 - cash) / 6 * sum(map(ratio, (1.25, 1.5, 2, 3, 5, 10)))
    assert math.exp(tallied.log_e) == pytest.approx(mixture, rel=1e-9)
    assert (tallied.n, tallied.errors) == (40, 9)
    assert same(ErrorMonitor(policy).update_counts(1, 1), ErrorMonitor(policy).update_counts(0, 0).update_counts(1, 1))
    assert ErrorMonitor(policy).update_counts(1, 1).log_e == pytest.approx(ErrorMonitor(policy).update(True).log_e)
    assert ErrorMonitor(policy).update_counts(10**6, 10**6).alarm_at == 10**6  # and nothing overflows


def test_a_mean_over_tallies_is_one_at_the_level():
    policy = policy_of(*drawn(0))
    level = ErrorMonitor(policy).level
    weights = stats.binom.pmf(np.arange(31), 30, level)
    values = [math.exp(ErrorMonitor(policy).update_counts(errors, 30).log_e) for errors in range(31)]
    assert weights @ values == pytest.approx(1)


@pytest.mark.parametrize(
    ("errors", "audited", "said"),
    [
        (-1, 10, "errors must be a count, a whole number from 0 on, got -1"),
        (2.5, 10, "errors must be a count, a whole number from 0 on, got 2.5"),
        (float("nan"), 10, "errors must be a count, a whole number from 0 on, got nan"),
        (True, 10, "errors must be a count, a whole number from 0 on, got True"),
        ("3", 10, "errors must be a count, a whole number from 0 on, got '3'"),
        (3, None, "audited must be a count, a whole number from 0 on, got None"),
        (11, 10, "errors must be among the audited questions, got 11 of 10"),
    ],
)
def test_counts_that_are_no_counts_are_refused(errors, audited, said):
    monitor = ErrorMonitor(policy_of(*drawn(0)))
    with pytest.raises(InvalidValue, match=said):
        monitor.update_counts(errors, audited)
    assert monitor.n == 0


@pytest.mark.parametrize("odd", [1, 0.5, [1, 0], "wrong", None, [[True]], np.array([0.0, 1.0])])
def test_labels_that_are_not_booleans_are_refused(odd):
    with pytest.raises(InvalidValue, match="audited questions must be booleans, True where answered wrongly, got"):
        ErrorMonitor(policy_of(*drawn(0))).update(odd)


def test_a_policy_that_never_answers_or_bounds_nothing_has_nothing_to_audit():
    with pytest.warns(InfeasibleWarning):
        never = policy_of(*drawn(0, n=5))
    with pytest.raises(
        InvalidValue, match="never answers, so that there is no error to audit: 5 calibration questions"
    ):
        ErrorMonitor(never)
    loose = next(
        policy
        for policy in (policy_of(*drawn(0, n=1), guarantee=dm.Smoothed(0.9, seed=seed)) for seed in range(50))
        if policy.point().law.k == 2
    )
    with pytest.raises(InvalidValue, match=r"alpha = 0\.9 with 1 calibration questions bounds no error rate"):
        ErrorMonitor(loose)


def test_it_watches_the_operating_point_that_is_named():
    policy = policy_of(*drawn(0), alpha=[0.05, 0.1])
    assert ErrorMonitor(policy).rule.alpha == 0.05
    assert ErrorMonitor(policy, alpha=0.1).rule.alpha == 0.1
    with pytest.raises(InvalidValue, match=r"was not calibrated for alpha = 0\.3"):
        ErrorMonitor(policy, alpha=0.3)


def test_it_says_what_it_found_and_what_that_means():
    monitor = ErrorMonitor(policy_of(*drawn(0)), delta=0.1)
    assert monitor.update_counts(9, 100).sentence.startswith(
        "9 wrong answers in 100 audited questions: no sign of a rate above 0.136, the most that calibration allows at "
        "alpha = 0.1 (p = "
    )
    monitor.update(np.ones(30, dtype=bool))
    assert f"alarm at question {monitor.alarm_at}" in monitor.sentence
    assert "calibrate again" in monitor.sentence
