"""Canaries: fair coins exactly, few false alarms whatever is asked, changed models found, and what must fail fails."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import InvalidValue, MonitorFileError
from demur.monitoring import CanaryMonitor
from demur.monitoring.canaries import _BETS, _SIGN_BETS
from demur.monitoring.diagnosis import Moved
from demur.voting.key import Column
from demur.voting.problems import Problems
from monitored import drawn, policy_of, same

DELTA, RUNS, PATHS = 0.1, 300, 8
TOO_MANY = int(stats.binom.isf(1e-6, RUNS, DELTA))
"""A monitor that keeps its level has more alarms than this once in a million."""


def calibrated(seed=0, **how):
    rng = np.random.default_rng(seed)
    answers = rng.choice(list("aaabc"), (100, PATHS)).tolist()
    votes = dm.vote(answers, ids=list(map(str, range(100))))
    return dm.calibrate(votes, rng.random(100) < 0.8, **(how or {"alpha": 0.1}))


POLICY = calibrated()


def key_of(answers):
    """Of a majority vote; the jitter is that of the question."""
    return max(answers.count(one) for one in set(answers)) / len(answers), 0.5


def pools(rng, chances):
    return np.repeat(np.arange(len(chances)), rng.multinomial(PATHS, chances)).tolist()


def watched(rng, n=200, change=lambda chances: chances, with_answers=True, policy=POLICY, delta=DELTA, seed=0):
    """Questions of every difficulty asked twice, the second time of a model that may have changed."""
    monitor = CanaryMonitor(policy, delta=delta, seed=seed)
    for number in range(n):
        chances = rng.dirichlet([0.5] * 4)
        old, new = pools(rng, chances), pools(rng, change(chances))
        answers = {"old_answers": old, "new_answers": new} if with_answers else {}
        monitor.update(key_of(old), key_of(new), id=str(number), **answers)
    return monitor


@pytest.mark.parametrize(("n", "alarm"), [(11, False), (12, True)])
def test_keys_that_all_move_one_way_raise_an_alarm_once_there_are_enough(n, alarm):
    monitor = CanaryMonitor(POLICY)
    for number in range(n):
        monitor.update((0.9, 0.5), (0.1, 0.5), id=str(number))
    assert monitor.alarm == alarm


def test_the_mean_of_the_evidence_is_one_over_all_signs():
    """Over all 3⁷ sequences of signs and ties, fair coins where keys differ."""
    total = 0.0
    for signs in itertools.product((-1, 0, 1), repeat=7):
        monitor = CanaryMonitor(POLICY)
        for sign in signs:
            monitor.update((0.5, 0.2), (0.5 + sign / 4, 0.2))
        total += math.exp(monitor.log_e) / 4 ** (7 - signs.count(0)) / 2 ** signs.count(0)
    assert total == pytest.approx(1)


def test_the_evidence_is_the_mixture_over_bets_and_starts():
    signs = np.random.default_rng(0).choice([-1, 0, 1, 1], 40).tolist()
    monitor, value = CanaryMonitor(POLICY), 1 / (1 + math.log2(41))
    for sign in signs:
        monitor.update((0.5, 0.2), (0.5 + sign / 4, 0.2))
    for start, bet in itertools.product(range(40), [*_SIGN_BETS, 0, 0, 0]):
        weight = (1 / (1 + math.log2(1 + start)) - 1 / (1 + math.log2(2 + start))) / len(_BETS)
        value += weight * math.prod(1 + bet * sign for sign in signs[start:])
    assert math.exp(monitor.log_e) == pytest.approx(value)
    assert (monitor.higher, monitor.lower, monitor.equal) == (signs.count(1), signs.count(-1), signs.count(0))


@pytest.mark.parametrize("with_answers", [True, False])
def test_false_alarms_are_as_rare_as_promised_but_not_impossible(with_answers):
    count = sum(watched(np.random.default_rng(run), with_answers=with_answers, seed=run).alarm for run in range(RUNS))
    assert 0 < count <= TOO_MANY


def towards_one(chances):
    return chances**2 / (chances**2).sum()


def towards_all(chances):
    return (chances + 0.15) / (chances + 0.15).sum()


@pytest.mark.parametrize(
    ("change", "said"),
    [(towards_one, "keys lie higher"), (towards_all, "keys lie lower"), (np.flip, "answers differ")],
)
def test_a_changed_model_is_found_and_how_it_changed(change, said):
    monitors = [watched(np.random.default_rng(run), n=400, change=change, delta=0.01) for run in range(20)]
    assert all(monitor.alarm for monitor in monitors)
    assert sum(monitor.change == said for monitor in monitors) >= 18


def test_answers_that_win_as_clearly_as_others_did_are_not_seen_by_keys_alone():
    """The price of signs; why answers are compared too."""
    monitors = [watched(np.random.default_rng(run), change=np.flip, with_answers=False) for run in range(40)]
    assert sum(monitor.alarm for monitor in monitors) <= stats.binom.isf(1e-6, 40, DELTA)


def test_a_change_after_many_quiet_canaries_is_found_too():
    rng, monitor = np.random.default_rng(0), CanaryMonitor(POLICY)
    for _ in range(3000):
        chances = rng.dirichlet([0.5] * 4)
        monitor.update(key_of(pools(rng, chances)), key_of(pools(rng, chances)))
    assert not monitor.alarm
    while not monitor.alarm:
        chances = rng.dirichlet([0.5] * 4)
        monitor.update(key_of(pools(rng, chances)), key_of(pools(rng, towards_all(chances))))
    assert monitor.alarm_at < 3200


def test_questions_may_become_others_without_any_alarm():
    """Shifted traffic is none of its business: pairs stay exchangeable question by question."""
    count = 0
    for run in range(RUNS):
        rng, monitor = np.random.default_rng(run), CanaryMonitor(POLICY, delta=DELTA)
        for number in range(200):
            chances = rng.dirichlet([0.1 if number < 100 else 3.0] * 4)
            monitor.update(key_of(pools(rng, chances)), key_of(pools(rng, chances)))
        count += monitor.alarm
    assert count <= TOO_MANY


def test_one_question_asked_again_and_again_breaks_the_promise():
    """The negative control: its old pool is in every pair, so that signs know of each other."""
    count = 0
    for run in range(RUNS // 2):
        rng, monitor = np.random.default_rng(run), CanaryMonitor(POLICY, delta=DELTA)
        chances = rng.dirichlet([2.0] * 4)
        old = key_of(pools(rng, chances))
        for _ in range(100):
            monitor.update(old, key_of(pools(rng, chances)))
        count += monitor.alarm
    assert count > TOO_MANY


def test_canaries_chosen_by_how_their_old_pool_came_out_break_the_promise():
    """The negative control: what was clearest by luck is less clear the second time."""
    count = 0
    for run in range(RUNS // 2):
        rng, monitor = np.random.default_rng(run), CanaryMonitor(POLICY, delta=DELTA)
        while monitor.n < 100:
            chances = rng.dirichlet([2.0] * 4)
            old = key_of(pools(rng, chances))
            if old[0] >= 0.75:
                monitor.update(old, key_of(pools(rng, chances)))
        count += monitor.alarm
    assert count > TOO_MANY


def test_a_vote_that_old_pools_chose_needs_more_evidence():
    """Of many ways to vote the one with the highest old keys has lower new ones, though nothing changed."""
    ways, alarms = 200, {1: 0, 200: 0}
    for run in range(60):
        rng = np.random.default_rng(run)
        old = rng.random((ways, 100))
        best = old[old.mean(axis=1).argmax()]
        votes = dm.vote([["a"]] * 100, tie_break=(Column(best), "none"), ids=list(map(str, range(100))))
        for choices in alarms:
            policy = dm.calibrate(votes, np.arange(100) % 20 > 0, guarantee=dm.Marginal(0.2, choices=choices))
            monitor = CanaryMonitor(policy, delta=0.3)
            for before, after in zip(best, rng.random(100), strict=True):
                monitor.update((1.0, before), (1.0, after))
            assert monitor.alarm == (monitor.p_value <= 0.3)
            alarms[choices] += monitor.alarm
    assert alarms[200] <= stats.binom.isf(1e-6, 60, 0.3)
    assert alarms[200] < alarms[1]


def test_jitter_is_not_compared():
    monitor = CanaryMonitor(POLICY).update((0.5, 0.2), (0.5, 0.9))
    assert (monitor.equal, monitor.log_e) == (1, pytest.approx(0))
    other = CanaryMonitor(policy_of(*drawn(0))).update((1.0, 0.2), (1.0, 0.9))  # there it is no draw
    assert other.higher == 1


def test_pools_that_are_the_same_path_by_path_are_a_tie_and_no_evidence():
    monitor = CanaryMonitor(POLICY)
    for number in range(50):
        pool = ["a"] * 5 + ["b"] * 3
        monitor.update(key_of(pool), key_of(pool), id=str(number), old_answers=pool, new_answers=pool)
    assert monitor.equal == 50
    assert monitor.log_e < 0


def test_replicas_go_on_from_each_others_documents_to_the_last_bit(tmp_path):
    rng, whole, shared = np.random.default_rng(0), CanaryMonitor(POLICY, seed=3), CanaryMonitor(POLICY, seed=3)
    for number in range(60):
        chances = rng.dirichlet([0.5] * 4)
        old, new = pools(rng, chances), pools(rng, towards_all(chances))
        given = {"id": f"q{number}", "old_answers": old, "new_answers": new}
        whole.update(key_of(old), key_of(new), **given)
        shared = CanaryMonitor.of_document(json.loads(json.dumps(shared.document())), POLICY)
        shared.update(key_of(old), key_of(new), **given)
    assert same(whole, shared)
    whole.save(tmp_path / "canaries.json")
    assert same(CanaryMonitor.load(tmp_path / "canaries.json", POLICY), whole)


def test_it_knows_which_keys_moved_and_which_way():
    monitor = CanaryMonitor(POLICY)
    for number, new in enumerate((0.6, 0.6, 0.4, 0.5, 0.6)):
        monitor.update((0.5, 0.1), (new, 0.1), id=f"q{number}" if number < 4 else None)
    assert monitor.moved(["q0", "q1", "q2", "q3", "q9"]) == Moved(2, 1, 1)
    assert monitor.moved(["q2"]) == Moved(0, 1, 0)
    again = CanaryMonitor.of_document(json.loads(json.dumps(monitor.document())), POLICY)
    assert again.moved(monitor.asked) == Moved(2, 1, 1)


def test_a_file_from_before_signs_were_kept_is_read_and_says_nothing_of_them():
    monitor = CanaryMonitor(POLICY).update((0.5, 0.1), (0.6, 0.1), id="q0")
    document = monitor.document()
    del document["state"]["signs"]
    assert CanaryMonitor.of_document(document, POLICY).moved(["q0"]) == Moved(0, 0, 0)
    document["state"]["signs"] = [2]
    with pytest.raises(MonitorFileError, match="its signs must be -1, 0 or 1 for each question asked, got"):
        CanaryMonitor.of_document(document, POLICY)


def test_a_question_asked_a_third_time_is_refused():
    monitor = CanaryMonitor(POLICY).update((0.5, 0.1), (0.6, 0.1), id="q1").update((0.5, 0.1), (0.6, 0.1))
    with pytest.raises(InvalidValue, match="question 'q1' was asked again before, and its old pool must not count"):
        monitor.update((0.5, 0.1), (0.6, 0.1), id="q1")
    assert (monitor.n, monitor.asked) == (2, ["q1"])


def test_a_question_that_the_key_was_fitted_on_is_refused():
    learned = dm.Learned(0.0, {"confidence": 1.0}, fitted_on=Problems.of(["f1"]))
    monitor = CanaryMonitor(replace(POLICY, recipe=POLICY.recipe.led_by(learned)))
    with pytest.raises(InvalidValue, match="the key was fitted on the old pool of question 'f1'"):
        monitor.update((0.5, 0.1), (0.6, 0.1), id="f1")
    assert monitor.update((0.5, 0.1), (0.6, 0.1), id="f2").n == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"old_key": "high"}, "a key must be numbers, got 'high'"),
        ({"new_key": (1.5, 0.2)}, "a key of this policy is 2 numbers, a confidence in"),
        ({"new_key": (0.5, float("nan"))}, "none of them NaN"),
        ({"new_key": 0.5}, "a key of this policy is 2 numbers"),
        ({"id": ""}, "an id must be a text, got ''"),
        ({"id": 3}, "an id must be a text, got 3"),
        ({"old_answers": ["a"]}, "pools of the same number of paths are compared, got 1 and none"),
        ({"old_answers": ["a"], "new_answers": ["a", "b"]}, "got 1 and 2; give old_answers and new_answers"),
        ({"old_answers": "ab", "new_answers": "ab"}, "one answer per path, or neither"),
        ({"old_answers": [], "new_answers": []}, "answers of pools of 1 to 128 paths are compared, got 0"),
        ({"old_answers": ["a"] * 200, "new_answers": ["a"] * 200}, "got 200; leave them out"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_taken(given, said):
    monitor = CanaryMonitor(POLICY)
    with pytest.raises(InvalidValue, match=said):
        monitor.update(**{"old_key": (0.5, 0.2), "new_key": (0.5, 0.2), **given})
    assert same(monitor, CanaryMonitor(POLICY))


def test_it_says_what_it_found_and_what_that_does_not_mean():
    monitor = CanaryMonitor(POLICY, delta=0.05).update((0.5, 0.1), (0.6, 0.1)).update((0.5, 0.1), (0.5, 0.1))
    assert monitor.sentence == (
        f"No sign of a changed model in 2 questions asked again: 1 keys higher, 0 lower and 1 as they were "
        f"(p = {monitor.p_value:.3g}, alarm at 0.05). This says nothing of changes that these questions do not show."
    )
    for _ in range(30):
        monitor.update((0.9, 0.1), (0.6, 0.1))
    assert monitor.sentence == (
        f"The model or its server changed: alarm at question {monitor.alarm_at} of 32 asked again "
        f"(p = {monitor.p_value:.3g}), keys lie lower; 1 keys higher, 30 lower and 1 as they were. The promise was "
        "about the model as it was; calibrate again."
    )
