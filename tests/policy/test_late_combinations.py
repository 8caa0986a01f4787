"""Promises that pay for a late choice, beside weights, answer sets, audits and monitors."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.calibration import forecast
from demur.errors import InvalidValue


def voted(n=400, seed=1):
    pools = dm.simulate_pools(n, n_paths=12, seed=seed)
    names = [f"{seed}-{row}" for row in range(n)]
    return dm.VotedPools.of(dm.vote(pools.answers, pools.scores, ids=names), gold=pools.gold)


def test_a_choice_by_labels_is_not_paid_for_under_weights_and_so_refused():
    with pytest.raises(InvalidValue, match="choice among 5 ways to vote means nothing under weights"):
        dm.Shifted(dm.Marginal(0.1, choices=5))


@pytest.mark.parametrize(
    "guarantee",
    [dm.Marginal(0.1, choices=5), dm.Grouped(dm.Marginal(0.1, choices=5)), dm.Selective(0.1, 0.1, choices=5)],
)
def test_answer_sets_know_no_correction_for_a_choice_by_labels(guarantee):
    with pytest.raises(InvalidValue, match="no correction for a choice from 5 ways to vote"):
        dm.calibrate(voted(), guarantee=[dm.Marginal(0.05), guarantee], answer_sets=dm.AnswerSets(0.2))


def test_answer_sets_are_for_the_alphas_that_a_policy_names():
    """What a late alpha abstains from is another part of the questions than the sets were calibrated on."""
    policy = dm.calibrate(voted(), guarantee=dm.Simultaneous(0.1, 0.1), answer_sets=dm.AnswerSets(0.2))
    new = voted(50, seed=2)
    assert policy.decide_votes(new.votes).sets is policy.sets[0]
    with pytest.raises(InvalidValue, match=r"0\.2 was chosen late"):
        policy.decide_votes(new.votes, alpha=0.2)
    assert policy.point(0.2).threshold <= policy.threshold  # the threshold itself is promised all the same


def test_a_size_that_is_too_rare_under_weights_has_a_p_value_that_says_so():
    """As without weights: it is the larger of that among all votes and that among those of its own size."""
    answers = [["a"] * 8] * 60 + [["a"] * 4] * 3
    right = np.arange(63) % 20 > 0
    ids = [str(row) for row in range(63)]
    votes = dm.vote(answers, ids=ids, importance=np.ones(63))
    weighted = dm.calibrate(votes, right, guarantee=dm.Shifted(dm.Marginal(0.1)))
    plain = dm.calibrate(votes, right, alpha=0.1)
    new = dm.vote([["a"] * 4] * 5, ids=[f"new {row}" for row in range(5)], importance=np.ones(5))
    found, expected = weighted.decide_votes(new), plain.decide_votes(new)
    assert not found.answered.any()
    assert found.p_value == pytest.approx(expected.p_value)
    assert (found.p_value > 0.1).all()


def test_what_is_expected_of_the_best_of_several_ways_to_vote_is_no_lower_than_what_comes():
    """Errors of the one that the labels chose are few among them by luck: one more among one more is too few."""
    n, ways, rng = 100, 20, np.random.default_rng(0)
    guarantee, found, told, plain = dm.Marginal(0.15, choices=ways), [], [], []
    for _ in range(300):
        right = rng.random(n) < 0.5
        keys = rng.random((ways, n))
        wrong = np.sort(np.where(right, 0, keys), axis=1)[:, ::-1]
        thresholds = wrong[:, guarantee.rank(n) - 1]
        best = int(thresholds.argmin())  # the noise that answers most
        evidence = dm.Evidence.of(keys[best][:, None], right)
        rule = guarantee.settle(evidence)
        told.append(forecast(evidence, rule).expected_confident_error)
        plain.append(guarantee.rank(n) / (n + 1))
        found.append(0.5 * (1 - rule.threshold))
    error = np.std(found, ddof=1) / np.sqrt(300)
    assert np.mean(plain) + 4 * error < np.mean(found) <= np.mean(told) <= 0.15


def test_a_plan_knows_no_weights_and_a_queue_no_judge():
    with pytest.raises(InvalidValue, match="which a plan does not know"):
        dm.plan(voted(), guarantee=dm.Shifted(dm.Marginal(0.1)))
    with pytest.raises(InvalidValue, match="needs a judge's labels of all votes"):
        dm.LabelQueue(voted(), [dm.JudgeMarginal(0.1)])
