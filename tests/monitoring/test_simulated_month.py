"""A month of a service: quiet months raise alarms as rarely as stated, and what changed is named by the first alarm."""

from __future__ import annotations

import numpy as np
import pytest
from diagnosis_results import CASES, QUESTIONS, Month, counted, simulate_month
from monitoring_results import (
    CHANGED,
    HARDER,
    LEVELS,
    MODELS,
    OTHERWISE,
    QUIET,
    RUNS_OF_ONE,
    STRONGER,
    WEAKER,
    Recorded,
    halves,
    months,
    swaps,
)
from scipy import stats

MONTHS, QUIET_MONTHS = 40, 400


def too_many(level, runs):
    """More alarms than this come once in a million while a level is kept."""
    return int(stats.binom.isf(1e-6, runs, level))


def test_exchangeable_traffic_and_a_model_as_it_was_raise_alarms_at_most_at_the_stated_rate():
    days = months(QUIET, QUIET_MONTHS)
    for name, level in LEVELS.items():
        assert (days[name] < np.inf).sum() <= too_many(level, QUIET_MONTHS), name
    assert sum((day < np.inf).sum() for day in days.values()) > 0  # they can


@pytest.mark.parametrize("change", [WEAKER, STRONGER])
def test_another_model_raises_the_canary_alarm_first(change):
    days = months(change, MONTHS)
    assert (days["canaries"] < days["drift"]).mean() >= 0.8
    assert np.median(days["canaries"]) - CHANGED <= 4
    assert np.quantile(days["canaries"], 0.9) - CHANGED <= 6


def test_other_answers_that_are_as_clear_raise_the_canary_alarm_and_never_that_of_drift():
    days = months(OTHERWISE, MONTHS)
    assert np.quantile(days["canaries"], 0.9) - CHANGED <= 6
    assert (days["drift"] < np.inf).sum() <= too_many(LEVELS["drift"], MONTHS)
    assert (days["errors"] < np.inf).all()


def test_other_questions_raise_the_drift_alarm_first_and_the_canary_alarm_not_beyond_its_level():
    days = months(HARDER, MONTHS)
    assert (days["drift"] < np.minimum(days["canaries"], days["errors"])).mean() >= 0.8
    assert np.quantile(days["drift"], 0.9) - CHANGED <= 6
    assert (days["canaries"] < np.inf).sum() <= too_many(LEVELS["canaries"], MONTHS)


@pytest.mark.parametrize("case", range(1, len(CASES)), ids=[change.name for change, *_ in CASES[1:]])
def test_what_changed_at_a_random_time_is_rarely_named_wrongly(case):
    (change, share, truth), n = CASES[case], 30
    seen = [simulate_month(seed, change, share) for seed in range(n)]
    right, wrong, _ = counted(seen, truth, Month.says)
    assert wrong <= stats.binom.isf(1e-6, n, 1 / 20)
    alarms = [month for month in seen if len(month.looks())]
    assert right >= 0.8 * len(alarms) > 0
    if truth != QUESTIONS:  # the negative control: canaries from before the change speak for the model
        assert counted(seen, truth, Month.said_before)[1] > wrong


@pytest.mark.real_data
def test_two_halves_of_the_runs_of_one_model_raise_alarms_at_most_at_the_stated_rate(recorded_pools):
    recorded = Recorded.of(recorded_pools, *RUNS_OF_ONE)
    assert halves(recorded, runs=100) <= too_many(LEVELS["canaries"], 100)
    first, last = recorded.answers[:, :5], recorded.answers[:, 5:]
    assert not recorded.compare(first, last, np.arange(len(recorded.ids)), alike=True).alarm


@pytest.mark.real_data
@pytest.mark.parametrize("new", ["gpt4", "gpt-3.5-turbo", "code001"])
def test_another_model_on_the_same_recorded_questions_is_found(recorded_pools, new):
    found = swaps(Recorded.of(recorded_pools, *MODELS), "text003", new, runs=8)
    assert (found < np.inf).all()
