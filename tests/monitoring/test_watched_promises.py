"""Which promises a stream can watch: those about all questions alike; clusters are counted as in calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import InvalidValue
from demur.monitoring import DriftMonitor, ErrorMonitor, OnlineThreshold
from demur.voting.key import Column


def votes_of(n=300, **known):
    pools = dm.simulate_pools(n, n_paths=8, seed=0)
    names = list(map(str, range(n)))
    return dm.VotedPools.of(dm.vote(pools.answers, pools.scores, ids=names, **known), gold=pools.gold)


def test_a_threshold_that_follows_labels_keeps_no_alpha_of_the_answers_given():
    policy = dm.calibrate(votes_of(), guarantee=[dm.Marginal(0.1), dm.Selective(0.2, 0.2)])
    with pytest.raises(InvalidValue, match="is about the answers given"):
        OnlineThreshold(policy, guarantee="selective")
    assert OnlineThreshold(policy, guarantee="marginal").alpha == 0.1


def test_a_threshold_that_follows_labels_knows_no_weights():
    weighted = dm.calibrate(votes_of(importance=np.ones(300)), guarantee=dm.Shifted(dm.Marginal(0.1)))
    with pytest.raises(InvalidValue, match="the same for all questions, and this promise is by their weights"):
        OnlineThreshold(weighted)


def test_monitors_of_a_policy_that_counts_clusters_say_that_one_question_of_each_counts():
    voted = votes_of()
    pairs = [str(row // 2) for row in range(300)]
    clustered = dm.calibrate(voted.votes, voted.labelled, clusters=pairs, alpha=0.1)
    plain = dm.calibrate(voted, alpha=0.1)
    for monitor in (ErrorMonitor, DriftMonitor):
        assert "One question of each cluster counts" in monitor(clustered).sentence
        assert "cluster" not in monitor(plain).sentence
    alarmed = ErrorMonitor(clustered).update_counts(90, 100)
    assert "One question of each cluster counts" in alarmed.sentence
    drifted = DriftMonitor(clustered).update(np.tile(voted.votes.key.min(axis=0), (200, 1)))
    assert "Keys have drifted" in drifted.sentence
    assert "One question of each cluster counts" in drifted.sentence


def test_p_values_without_weights_are_not_those_of_a_policy_by_weights():
    voted = votes_of(importance=np.ones(300))
    weighted = dm.calibrate(voted, guarantee=dm.Shifted(dm.Marginal(0.1)))
    with pytest.raises(InvalidValue, match="has no p-values without them"):
        weighted.p_value(voted.votes)
    both = dm.calibrate(voted, guarantee=[dm.Marginal(0.1), dm.Shifted(dm.Marginal(0.1))])
    assert len(both.p_value(voted.votes)) == 300


def test_labels_from_the_top_are_not_asked_for_under_weights():
    with pytest.raises(InvalidValue, match="under weights there are no ranks"):
        dm.LabelQueue(votes_of(importance=np.ones(300)), [dm.Shifted(dm.Marginal(0.1))])


def test_the_bound_on_accuracy_allows_for_a_choice_by_labels():
    """With probability 95 % for the one chosen, so for all that might have been."""
    voted = votes_of()
    one, many = (dm.calibrate(voted, guarantee=dm.HighProbability(0.2, 0.1, choices=j)) for j in (1, 4))
    told = many.forecast()
    margin = np.sqrt(np.log(2 * 4 / 0.05) / (2 * 300)) / told.answered
    assert told.accuracy_at_least == pytest.approx(told.selective_accuracy - margin)
    assert told.accuracy_at_least < one.forecast().accuracy_at_least or told.answered != one.forecast().answered


def test_drift_of_a_vote_that_was_chosen_by_calibration_is_no_drift_by_that_alone():
    """Of many ways to vote the one with the highest calibration keys has lower ones in use, though nothing changed."""
    n, ways, delta, runs, rng = 100, 500, 0.1, 80, np.random.default_rng(0)
    alarms = {1: 0, ways: 0}
    for _ in range(runs):
        keys = rng.random((ways, n + 300))
        chosen = keys[int(keys[:, :n].mean(axis=1).argmax())]
        votes = dm.vote([["a"]] * n, tie_break=(Column(chosen[:n]), "none"), ids=list(map(str, range(n))))
        right = np.arange(n) % 20 > 0
        for choices in alarms:
            policy = dm.calibrate(votes, right, guarantee=dm.Marginal(0.2, choices=choices))
            monitor = DriftMonitor(policy, delta=delta).update(np.column_stack([np.ones(300), chosen[n:]]))
            assert monitor.alarm == (monitor.p_value <= delta)
            alarms[choices] += monitor.alarm
    assert alarms[ways] <= stats.binom.isf(1e-6, runs, delta) < alarms[1]
