"""What an audit may find, said beforehand: against scipy, against simulated audits, and where errors are scarce."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import InfeasibleWarning, InvalidValue
from demur.voting.key import Column


def policy_of(confidence, right, alpha=0.1, **how):
    """A policy on votes of one path each, ordered by a number of their own."""
    n = len(confidence)
    votes = dm.vote([["a"]] * n, tie_break=(Column(confidence), "none"), ids=[f"c{row}" for row in range(n)])
    return dm.calibrate(votes, right, alpha=alpha, **how)


def drawn(seed, n=200, wrong=0.4):
    rng = np.random.default_rng(seed)
    return rng.random(n), rng.random(n) > wrong


def test_without_ties_it_is_the_law_that_audits_are_judged_by():
    policy = policy_of(*drawn(0))
    ahead = dm.audit_outlook(policy, 500)
    np.testing.assert_allclose(ahead.counts, stats.betabinom.pmf(np.arange(501), 500, 20, 181), rtol=1e-9)
    assert ahead.above_alpha == pytest.approx(stats.betabinom.sf(50, 500, 20, 181))
    assert ahead.surprising_above == stats.betabinom.ppf(0.95, 500, 20, 181)
    assert ahead.sentence == (
        "Of 100 audits of 500 questions about 45 would find more than alpha = 0.1 answered wrongly though the promise "
        "holds: it is about the average. One is surprising above 72 wrong (14.4%)."
    )


def test_simulated_audits_lie_above_alpha_as_often_as_foretold():
    above, foretold = [], None
    for seed in range(400):
        policy = policy_of(*drawn(seed, n=100), alpha=0.1)
        confidence, right = drawn(10_000 + seed, n=100)
        votes = dm.vote([["a"]] * 100, tie_break=(Column(confidence), "none"))
        (point,) = dm.audit_policy(policy, votes, right)
        above.append(point.errors > 10)
        foretold = point.outlook.above_alpha
    assert abs(np.mean(above) - foretold) < 4 * np.sqrt(foretold * (1 - foretold) / 400)


def test_where_votes_tie_or_all_are_answered_fewer_audits_lie_above_alpha():
    tied = np.repeat([0.2, 0.9], 100)
    policy = policy_of(tied, np.tile([True] * 19 + [False], 10))  # 5 wrong ones above, and the next five tie
    plain, few = dm.audit_outlook(policy_of(*drawn(0)), 200), dm.audit_outlook(policy, 200)
    assert few.above_alpha < plain.above_alpha
    always = dm.audit_outlook(policy_of(*drawn(1, wrong=0.02)), 200)
    assert always.rule.threshold_key[0] < 1  # of votes that are all unanimous, so all are answered
    assert always.above_alpha < 1e-3
    assert "fewer than 1 would find" in always.sentence
    assert always.surprising_above == plain.surprising_above  # what surprises is judged by the promise alone


def test_alpha_is_compared_exactly():
    policy = policy_of(*drawn(0), alpha=Fraction(1, 3))
    ahead = dm.audit_outlook(policy, 3)
    assert ahead.above_alpha == pytest.approx(float(ahead.counts[2:].sum()))  # 1 of 3 is not above a third
    tenth = dm.audit_outlook(policy_of(*drawn(0)), 10)
    assert tenth.above_alpha == pytest.approx(float(tenth.counts[2:].sum()))


def test_sizes_of_their_own_add_up():
    answers = [["a"] * 4] * 100 + [["a"] * 6] * 100
    confidence, right = drawn(3)
    votes = dm.vote(answers, tie_break=(Column(confidence), "none"), ids=[str(row) for row in range(200)])
    policy = dm.calibrate(votes, right, alpha=0.2)
    ahead = dm.audit_outlook(policy, {4: 30, 6: 20})
    assert (ahead.n, len(ahead.counts)) == (50, 51)
    assert ahead.counts.sum() == pytest.approx(1)
    assert ahead.surprising_above == policy.law_on(policy.points[0], {4: 30, 6: 20}).usual_at_most(50)
    unknown = dm.audit_outlook(policy, {4: 30, 9: 20})
    assert unknown.counts[31:].sum() == 0  # pools of a size that calibration did not see are not answered


def test_nothing_answered_and_nothing_asked():
    with pytest.warns(InfeasibleWarning):
        policy = policy_of([0.1, 0.2], [True, False], alpha=0.1)
    ahead = dm.audit_outlook(policy, 20)
    assert (ahead.above_alpha, ahead.surprising_above) == (0, 0)
    assert ahead.sentence.startswith("Nothing will be answered: 2 calibration questions are too few")
    with pytest.raises(InvalidValue, match="at least one question, got 0"):
        dm.audit_outlook(policy, 0)


def test_groups_that_take_the_threshold_of_all_may_be_answered_wrongly():
    rng = np.random.default_rng(5)
    confidence = rng.uniform(0.2, 1, 420)
    pools = [["a"] * int(20 * one) + ["b"] * (20 - int(20 * one)) for one in confidence]
    votes = dm.vote(pools, ids=range(420), groups=[f"g{row % 14}" for row in range(420)])
    right = rng.uniform(size=420) < confidence
    guarantees = [dm.Marginal(0.02), dm.Grouped(dm.Marginal(0.02), fallback="pooled")]
    policy = dm.calibrate(votes, right, guarantee=guarantees)
    by_group, plain = (dm.audit_outlook(policy, 420, guarantee=one.name) for one in reversed(guarantees))
    assert by_group.surprising_above == plain.surprising_above
    assert by_group.above_alpha == pytest.approx(plain.above_alpha, abs=0.05)
