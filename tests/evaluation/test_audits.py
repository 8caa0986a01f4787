"""The audit: rates by hand, the exact p-value, verdicts, and refusal of calibration problems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import CalibrationLeak, InfeasibleWarning, InvalidValue
from demur.evaluation.audit import Consistency
from demur.evaluation.verdicts import CONSISTENT, MORE_THAN_USUAL, NOT_CONSISTENT, verdict_of


def binary_votes(confident, ids=None):
    """Pools of ten paths with a given number of votes for the winner."""
    return dm.vote([["a"] * k + ["b"] * (10 - k) for k in confident], ids=ids, tie_break="none")


@pytest.fixture
def policy():
    confident = np.tile([6, 7, 8, 9, 10], 40)
    votes = binary_votes(confident, ids=[f"c{i}" for i in range(200)])
    return dm.calibrate(votes, np.tile([False, True, True, True, True], 40), alpha=[0.1, 0.3])


def test_rates_by_hand(policy):
    votes = binary_votes([6, 6, 10, 10, 10], ids=list("vwxyz"))
    audit = dm.audit_policy(policy, votes, [True, False, True, True, False])[0]
    assert policy.threshold == 0.6
    assert (audit.n, audit.errors) == (5, 1)
    assert audit.answered == 0.6
    assert audit.selective_accuracy == pytest.approx(2 / 3)
    assert audit.confident_error == 0.2
    assert audit.false_abstention == 0.2
    assert audit.expected_confident_error == 1 / 201  # none of the 200 lay above the tied ones that set the threshold
    assert audit.p_value == pytest.approx(stats.betabinom.sf(0, 5, 20, 181))
    many = dm.audit_policy(policy, binary_votes([10] * 400), [True] * 400)[0]
    assert many.interval == tuple(stats.betabinom.ppf([0.025, 0.975], 400, 20, 181) / 400)
    assert many.usual_at_most == stats.betabinom.ppf(0.95, 400, 20, 181) / 400
    assert "Consistent" in audit.verdict


def test_too_many_errors_are_called_inconsistent_and_calibration_problems_refused(policy):
    votes = binary_votes([10] * 100)
    audit = dm.audit_policy(policy, votes, np.arange(100) >= 40)[0]
    assert not audit.consistent
    assert "probably not exchangeable" in audit.verdict
    with pytest.raises(CalibrationLeak, match="'c3'"):
        dm.audit_policy(policy, binary_votes([10, 10], ids=["c3", "new"]), [True, True])


def test_calibration_questions_and_clusters_are_known_under_other_ids():
    votes = binary_votes([10] * 30)
    policy = dm.calibrate(
        votes, [True] * 30, alpha=0.1, questions=[f"Q{i}" for i in range(30)], clusters=["c"] + [None] * 29
    )
    fresh = binary_votes([10], ids=["new"])
    with pytest.raises(CalibrationLeak):
        dm.audit_policy(policy, fresh, [True], questions=["Q7"])
    with pytest.raises(CalibrationLeak):
        dm.audit_policy(policy, fresh, [True], clusters=["c"])
    dm.audit_policy(policy, fresh, [True], questions=["Q99"], clusters=["d"])


def test_the_verdict_between_luck_and_evidence_says_so(policy):
    labels = np.arange(100) >= 19
    audit = dm.audit_policy(policy, binary_votes([10] * 100), labels)[0]
    assert 0.005 < audit.p_value < 0.05
    assert audit.consistent
    assert "More errors than usual" in audit.verdict


def test_more_than_usual_is_what_exceeds_the_usual_limit(policy):
    for rule in policy.points:
        for n in (60, 333):
            for errors in range(n + 1):
                check = Consistency.of(rule, errors, n)
                assert check.verdict.startswith("Consistent") == (errors / n <= check.usual_at_most)


@pytest.mark.parametrize("guarantee", [dm.Marginal(0.1), dm.Smoothed(0.1, 3), dm.HighProbability(0.1, 0.1)])
def test_an_audit_expects_what_the_forecast_foretold(guarantee):
    confident = np.tile([6, 7, 8, 9, 10], 40)
    correct = np.random.default_rng(1).random(200) < confident / 10
    policy = dm.calibrate(binary_votes(confident), correct, guarantee=[guarantee, dm.Marginal(0.3)])
    for point in dm.audit_policy(policy, binary_votes([10] * 50), [True] * 50):
        foretold = policy.forecast(point.rule.alpha, point.rule.guarantee.name)
        assert point.expected_confident_error == foretold.expected_confident_error
        assert point.document()["expected_confident_error"] == foretold.expected_confident_error


def test_the_level_is_shared_among_operating_points(policy):
    """Two alphas: suspicion starts at 0.005 each, not at 0.01."""
    for errors in range(10, 40):
        audit = dm.audit_policy(policy, binary_votes([10] * 100), np.arange(100) >= errors)[0]
        if 0.005 < audit.p_value < 0.01:
            assert audit.consistent
            return
    raise AssertionError("no count of errors falls between the two levels")


def test_a_p_value_is_said_in_three_ways():
    assert [verdict_of(p, 1) for p in (1.0, 0.05, 0.049, 0.01, 0.0099)] == [
        CONSISTENT, CONSISTENT, MORE_THAN_USUAL, MORE_THAN_USUAL, NOT_CONSISTENT,
    ]  # fmt: skip
    assert [verdict_of(p, 5) for p in (0.009, 0.002, 0.0019)] == [MORE_THAN_USUAL, MORE_THAN_USUAL, NOT_CONSISTENT]


@pytest.mark.parametrize(("errors", "n"), [(-1, 5), (6, 5), (0, 0), (1, 0), (5, -1)])
def test_errors_that_cannot_be_are_refused(policy, errors, n):
    with pytest.raises(InvalidValue, match="between 0 and the number of questions"):
        Consistency.of(policy.points[0], errors, n)
    assert Consistency.of(policy.points[0], 5, 5).confident_error == 1


def test_two_guarantees_of_one_alpha_are_audited_each_by_itself():
    confident = np.tile([6, 7, 8, 9, 10], 40)
    correct = np.random.default_rng(2).random(200) < confident / 10
    policy = dm.calibrate(binary_votes(confident), correct, guarantee=[dm.Marginal(0.2), dm.HighProbability(0.2, 1e-6)])
    careful, marginal = dm.audit_policy(policy, binary_votes(confident), correct)
    assert (careful.rule.guarantee.name, marginal.rule.guarantee.name) == ("high_probability", "marginal")
    assert careful.answered < marginal.answered
    assert careful.usual_at_most < marginal.usual_at_most


def test_nothing_answered_has_no_accuracy(policy):
    audit = dm.audit_policy(policy, binary_votes([6]), [True])[0]
    assert np.isnan(audit.selective_accuracy)
    assert audit.p_value == 1.0


def test_an_infeasible_policy_is_audited_as_abstaining():
    with pytest.warns(InfeasibleWarning):
        policy = dm.calibrate(binary_votes([10]), [True], alpha=0.1)
    audit = dm.audit_policy(policy, binary_votes([10]), [False])[0]
    assert (audit.errors, audit.p_value) == (0, 1.0)
    assert "Abstains always" in audit.verdict


def test_labels_must_be_booleans(policy):
    with pytest.raises(InvalidValue, match="booleans"):
        dm.audit_policy(policy, binary_votes([10]), [2])


def test_p_values_of_honest_audits_are_rarely_small_and_those_of_shifted_data_are():
    """Fresh exchangeable data: P(p ≤ 0.05) ≤ 0.05. Harder data: nearly always small."""
    rng = np.random.default_rng(7)
    honest, shifted = [], []
    for _ in range(300):
        nu, fresh = rng.integers(500, 1001, 100), rng.integers(500, 1001, 200)
        policy = dm.calibrate(_votes(nu), rng.random(100) < nu / 1000, alpha=0.1)
        honest.append(dm.audit_policy(policy, _votes(fresh), rng.random(200) < fresh / 1000)[0].p_value)
        shifted.append(dm.audit_policy(policy, _votes(fresh), rng.random(200) < 0.5)[0].p_value)
    assert np.mean(np.array(honest) <= 0.05) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(np.array(shifted) <= 0.05) > 0.8


def _votes(thousandths):
    """Votes of any confidence: two paths with linear weights."""
    share = np.asarray(thousandths, dtype=float)
    return dm.vote(np.tile([0, 1], (len(share), 1)), np.stack([share, 1000 - share + 1e-9], axis=1), weight=dm.linear())
