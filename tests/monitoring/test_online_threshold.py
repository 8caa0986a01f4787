"""The online threshold: starts as the policy, keeps its bound on any sequence, and is worth having after a shift."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.errors import InfeasibleWarning, InvalidValue
from demur.evidence.counts import above_all, answer_all
from demur.monitoring import OnlineThreshold
from monitored import drawn, keys, policy_of, same

POLICY = policy_of(*drawn(0))


def run(online, stream, wrong, delays):
    """Decide each question, and give its label after so many more questions; the errors that were made."""
    due, errors = {}, []
    for at, (key, is_wrong, delay) in enumerate(zip(stream, wrong, delays, strict=True)):
        decision = online.decide(key)
        errors.append(decision.answered and is_wrong)
        if decision.label_wanted:
            due.setdefault(at + delay, []).append((decision.number, is_wrong))
        for number, label in due.pop(at, ()):
            online.update(number, label)
    return np.array(errors)


def test_it_starts_as_the_policy_decides_whatever_ties():
    for seed, decimals in itertools.product(range(20), (1, 12)):
        second, right = drawn(seed, n=50, wrong=0.2 + seed / 40)
        policy = policy_of(second.round(decimals), right, alpha=0.2)
        fresh = np.random.default_rng(seed).random(60).round(decimals)
        for key in [*keys(fresh), *keys(second.round(decimals))]:
            assert OnlineThreshold(policy).decide(key).answered == (tuple(key) > policy.point().threshold_key)
        assert OnlineThreshold(policy).start <= 1


def test_a_policy_that_answers_all_or_never_is_where_it_starts():
    all_right = policy_of(drawn(0)[0], np.ones(200, dtype=bool))
    assert OnlineThreshold(all_right).threshold_key == answer_all(2)
    assert OnlineThreshold(all_right).decide((1.0, -5.0)).answered
    assert not OnlineThreshold(all_right).decide((0.0, 5.0)).answered  # without confidence, never
    with pytest.warns(InfeasibleWarning):
        never = policy_of(*drawn(0, n=5))
    assert OnlineThreshold(never).threshold_key == above_all(2)


@pytest.mark.parametrize("decimals", [1, 12])
def test_each_step_is_the_rule_read_literally(decimals):
    calibrated, right = drawn(0)
    calibrated = calibrated.round(decimals)
    online = OnlineThreshold(policy_of(calibrated, right), step=0.03)
    threshold = online.threshold
    rng = np.random.default_rng(0)
    for second, wrong in zip(rng.random(400).round(decimals), rng.random(400) < 0.5, strict=True):
        place = (calibrated < second).sum() / 200  # the share of calibration keys that it exceeds
        decision = online.decide((1.0, second))
        assert decision.answered == (place > threshold)
        if decision.label_wanted:
            online.update(decision.number, wrong)
        threshold = max(threshold + 0.03 * ((decision.answered and wrong) - 0.1), -0.5 / 200)
        assert online.threshold == pytest.approx(threshold, abs=1e-12)


def test_it_falls_no_lower_than_where_all_is_answered_so_that_it_can_rise_again_at_once():
    online = OnlineThreshold(POLICY, step=0.05)
    run(online, [(1.0, 0.5)] * 500, [False] * 500, [0] * 500)
    assert (online.threshold, online.threshold_key) == (-0.5 / 200, answer_all(2))
    online.update(online.decide((1.0, -1.0)).number, True)
    assert not online.decide((1.0, -1.0)).answered


def test_a_vote_without_confidence_is_not_answered_however_low_the_threshold():
    answers = [[None, None]] * 50 + [["a", "a"]] * 50
    votes = dm.vote(answers, ids=list(map(str, range(100))), tie_break=dm.jitter(0))
    online = OnlineThreshold(dm.calibrate(votes, np.arange(100) >= 55, alpha=0.1), step=0.001)
    online.threshold = 0.1  # among the calibration keys that have no confidence either
    assert online.threshold_key[0] == 0
    assert not online.decide((0.0, 0.999)).answered
    assert online.decide((0.5, 0.0)).answered


def test_the_bound_is_the_formula():
    online = OnlineThreshold(POLICY, step=0.5, labelled_share=0.5, seed=1)
    run(online, [(1.0, 0.9)] * 400, [False] * 400, [3] * 400)
    awaited, most = len(online.awaited), online.most_awaited
    assert 0 < awaited < most
    slack = (1 - online.start) / 0.5 + most * (2 - 0.1) + awaited * 2
    assert online.bound() == pytest.approx(0.1 + slack / 400)
    assert online.bound(0.01) == pytest.approx(0.1 + slack / 400 + math.sqrt(math.log(100) / 800) * 2)


KEYS, DELAY = st.floats(0, 1), st.integers(0, 12)


@given(st.lists(st.tuples(KEYS, st.booleans(), DELAY), min_size=1, max_size=200), st.sampled_from([0.005, 0.05, 0.5]))
def test_the_bound_holds_on_any_sequence(questions, step):
    online = OnlineThreshold(POLICY, step=step)
    second, wrong, delays = zip(*questions, strict=True)
    errors = run(online, [(1.0, key) for key in second], wrong, delays)
    assert errors.mean() <= online.bound() + 1e-9
    longest = max(delays)
    stated = 0.1 + ((1 + step * (longest + 1) - online.start) / step + longest) / len(errors)
    assert online.bound() <= stated + 1e-9  # what theory states for delays of at most D


@pytest.mark.parametrize("delay", [0, 7])
def test_the_bound_holds_against_someone_who_makes_every_answer_wrong(delay):
    online = OnlineThreshold(POLICY, step=0.05)
    errors = run(online, [(1.0, 1.0)] * 4000, [True] * 4000, [delay] * 4000)
    most = 4000 * online.bound()
    assert most - 2 * delay - 2 <= errors.sum() <= most + 1e-6  # it is attained, so none can be smaller
    assert online.bound() < 0.12


def shifted(seed, n=6000):
    """Questions of which, from the middle on, more are wrong."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < np.where(np.arange(n) < n // 2, 0.4, 0.75)
    return rng.random(n), wrong


def test_after_a_shift_it_comes_back_to_alpha_where_the_fixed_threshold_does_not():
    second, wrong = shifted(1)
    online = OnlineThreshold(POLICY, step=0.01)
    errors = run(online, keys(second), wrong.tolist(), [20] * len(second))
    fixed = (second > POLICY.point().threshold_key[1]) & wrong
    assert fixed[3000:].mean() > 0.15
    assert abs(errors[3500:].mean() - 0.1) < 0.02
    assert online.answered > 0.1 * len(second)  # a threshold that never answers has no errors either


def test_labels_for_a_part_keep_the_rate_and_the_bound_with_chance():
    means, bounds = [], []
    for seed in range(20):
        second, wrong = shifted(seed, n=4000)
        online = OnlineThreshold(POLICY, step=0.01, labelled_share=0.2, seed=seed)
        errors = run(online, keys(second), wrong.tolist(), [5] * len(second))
        assert online.estimated_error <= online.bound()  # this one surely
        means.append(errors.mean())
        bounds.append(online.bound())
        assert errors.mean() <= online.bound(1e-6)
        assert abs(online.labelled / online.answered - 0.2) < 5 * math.sqrt(0.16 / online.answered)
    assert np.mean(means) <= np.mean(bounds)
    assert 0.08 < np.mean(means) < 0.12


def test_labels_that_only_come_from_complaints_break_it():
    """The negative control: half of the wrong answers are never reported, and their labels come as right."""
    second, wrong = shifted(1, n=20_000)
    reported = wrong & (np.random.default_rng(2).random(20_000) < 0.5)
    online = OnlineThreshold(POLICY, step=0.01)
    answered = [False] * 20_000
    for at, key in enumerate(keys(second)):
        decision = online.decide(key)
        answered[at] = decision.answered
        if decision.label_wanted:
            online.update(decision.number, reported[at])
    assert (np.array(answered) & wrong).mean() > online.bound()


def test_labels_for_a_part_that_are_not_weighted_break_it(monkeypatch):
    """The negative control of 1/ρ: with each error counted once, a fifth of the labels allows five times the errors."""
    move = OnlineThreshold._move
    monkeypatch.setattr(OnlineThreshold, "_move", lambda self, error: move(self, min(error, 1.0)))
    rng = np.random.default_rng(0)
    online = OnlineThreshold(POLICY, step=0.01, labelled_share=0.2)
    errors = run(online, keys(rng.random(6000)), (rng.random(6000) < 0.9).tolist(), [0] * 6000)
    assert errors.mean() > online.bound(1e-6)


def test_in_one_go_and_after_pauses_is_the_same_with_labels_still_to_come(tmp_path):
    path = tmp_path / "online.json"
    second, wrong = shifted(3, n=400)
    whole, paused = (OnlineThreshold(POLICY, step=0.02, labelled_share=0.5, seed=4) for _ in range(2))
    due = []
    for at, key in enumerate(keys(second)):
        decision = whole.decide(key)
        assert decision == paused.decide(key)
        if decision.label_wanted:
            due.append((decision.number, wrong[at]))
        if at % 37 == 36:
            paused.save(path)
            paused = OnlineThreshold.load(path, POLICY)
            for number, label in reversed(due):  # in whatever order labels come
                whole.update(number, label)
                paused.update(number, label)
            due = []
    assert same(whole, paused)
    assert whole.awaited
    assert whole.bound() == paused.bound()


@pytest.mark.parametrize("number", [0, 5, -1, 1.0, "0", None])
def test_a_label_that_nobody_awaits_is_refused(number):
    online = OnlineThreshold(POLICY)
    online.decide((1.0, 0.0))  # not answered, so no label is wanted
    with pytest.raises(InvalidValue, match=r"no label is awaited for question|number must be a count"):
        online.update(number, True)


def test_a_label_comes_once_and_is_true_or_false():
    online = OnlineThreshold(POLICY)
    number = online.decide((1.0, 1.0)).number
    with pytest.raises(InvalidValue, match="a label must be True where the answer is wrong, else False, got 1"):
        online.update(number, 1)
    online.update(number, np.True_)
    with pytest.raises(
        InvalidValue, match="no label is awaited for question 0: none was wanted, or it has come already"
    ):
        online.update(number, True)


@pytest.mark.parametrize("key", [(1.0,), (1.0, math.nan), (math.nan, 0.5), (1.5, 0.5), "ab", None, 0.5, (1.0, "x")])
def test_a_key_that_is_none_is_refused(key):
    online = OnlineThreshold(POLICY)
    with pytest.raises(InvalidValue, match=r"a key of this policy is 2 numbers|a key must be numbers"):
        online.decide(key)
    assert online.n == 0


@pytest.mark.parametrize("setting", ["step", "labelled_share"])
@pytest.mark.parametrize("value", [0, -0.1, 1.5, math.nan, "0.5", None])
def test_settings_lie_between_zero_and_one(setting, value):
    with pytest.raises(InvalidValue, match=f"{setting} must be a number strictly between 0 and 1, got"):
        OnlineThreshold(POLICY, **{setting: value})


def test_it_claims_no_more_than_its_bound():
    online = OnlineThreshold(POLICY)
    assert (online.bound(), math.isnan(online.estimated_error)) == (1.0, True)
    run(online, keys(np.random.default_rng(0).random(2000)), [False] * 2000, [0] * 2000)
    assert "The share answered wrongly so far is at most 0.1" in online.sentence
    assert "Nothing is promised of a single question." in online.sentence
    assert "is expected to be at most" in OnlineThreshold(POLICY, labelled_share=0.5).sentence
