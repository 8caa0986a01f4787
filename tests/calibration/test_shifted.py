"""Weighted risk control: the definition read literally, the theorem given the bag, simulations, and what breaks it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import demur as dm
from demur.calibration import forecast, settle_by_size
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.strata import Strata
from demur.voting.cases import Cases

ALPHAS = ("0.05", "0.1", "0.2", "0.29", "1/3", "0.5")
votes_with_weights = st.lists(
    st.tuples(st.integers(0, 6), st.booleans(), st.integers(0, 5)), min_size=1, max_size=14
).filter(lambda votes: any(weight for _, _, weight in votes))


def evidence_of(votes):
    nu, wrong, weights = (np.array(column) for column in zip(*votes, strict=True))
    right = ~wrong.astype(bool) & (nu > 0)
    return Evidence.of(nu / 6, right, None, weights.astype(float))


def literal(votes, weight, alpha):
    """The smallest λ with Σ{ω of wrong, ν > λ} + ω(x) ≤ α (Σω + ω(x)), in fractions; 1 where there is none."""
    level, total = Fraction(alpha), sum(w for _, _, w in votes) + weight
    for threshold in sorted({Fraction(0), *(Fraction(nu, 6) for nu, _, _ in votes), Fraction(1)}):
        errors = sum(w for nu, wrong, w in votes if wrong and Fraction(nu, 6) > threshold)
        if errors + weight <= level * total:
            return threshold
    return Fraction(1)


# --- the threshold -----------------------------------------------------------------------------------------------


def test_the_fixture_worked_out_by_hand():
    evidence = Evidence.of([0.9, 0.7, 0.5, 0.6], [False, False, False, True], None, np.array([1.0, 1.0, 2.0, 4.0]))
    rule = dm.Shifted(dm.Marginal(0.4)).settle(evidence)
    assert rule.threshold_of(0, (), 1.0) == (0.5,)
    assert rule.threshold_of(0, (), 10.0) == (1.0,)  # 10 > 0.4 · 18


@given(votes_with_weights, st.integers(1, 6), st.sampled_from(ALPHAS))
def test_the_threshold_is_the_definition_read_literally(votes, weight, alpha):
    rule = dm.Shifted(dm.Marginal(alpha)).settle(evidence_of(votes))
    expected = literal(votes, weight, alpha)
    keys = np.arange(7)[:, None] / 6
    answered = rule.answers(Cases(keys, np.zeros(7, dtype=np.intp), None, np.full(7, float(weight))))
    assert answered.tolist() == [Fraction(nu, 6) > expected for nu in range(7)]
    threshold = rule.threshold_of(0, (), float(weight))
    assert answered.tolist() == [tuple(key) > threshold for key in keys]


@given(votes_with_weights, st.integers(1, 6), st.sampled_from(ALPHAS))
def test_a_vote_is_answered_exactly_where_its_p_value_is_at_most_alpha(votes, weight, alpha):
    evidence = evidence_of(votes)
    rule = dm.Shifted(dm.Marginal(alpha)).settle(evidence)
    cases = Cases(np.arange(1, 7)[:, None] / 6, np.zeros(6, dtype=np.intp), None, np.full(6, float(weight)))
    p_value = rule.p_value(Strata({((), 0): evidence}), cases)
    assert rule.answers(cases).tolist() == (p_value <= float(Fraction(alpha)) + 1e-11).tolist()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([0.1, 1.0, 1 / 3, 7.0, 1e-9, 1e9]),
    st.sampled_from(ALPHAS),
)
def test_with_equal_weights_it_is_the_marginal_guarantee(votes, weight, alpha):
    nu, right = np.array([nu / 6 for nu, _ in votes]), np.array([good and nu > 0 for nu, good in votes])
    weighted = dm.Shifted(dm.Marginal(alpha)).settle(Evidence.of(nu, right, None, np.full(len(nu), weight)))
    plain = dm.Marginal(alpha).settle(Evidence.of(nu, right))
    assert weighted.threshold_of(0, (), weight) == plain.threshold_key
    assert weighted.feasible == plain.feasible


def test_rows_of_equal_weight_keep_every_rank_of_a_large_set():
    rng = np.random.default_rng(5)
    nu, right = rng.random(20_000), rng.random(20_000) < 0.6
    weighted = dm.Shifted(dm.Marginal("0.29")).settle(Evidence.of(nu, right, None, np.full(len(nu), 0.1)))
    assert weighted.threshold_of(0, (), 0.1) == dm.Marginal("0.29").settle(Evidence.of(nu, right)).threshold_key


def test_a_heavier_question_needs_more_confidence_and_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(6)
    nu, right, weights = rng.random(500), rng.random(500) < 0.6, rng.exponential(size=500)
    rule = dm.Shifted(dm.Marginal(0.1)).settle(Evidence.of(nu, right, None, weights))
    thresholds = [rule.threshold_of(0, (), weight) for weight in (0.1, 1.0, 5.0, 20.0, 500.0)]
    assert thresholds == sorted(thresholds)
    assert thresholds[0] < thresholds[-1] == (1.0,)
    order = rng.permutation(500)
    again = dm.Shifted(dm.Marginal(0.1)).settle(Evidence.of(nu[order], right[order], None, weights[order]))
    assert [again.threshold_of(0, (), weight) for weight in (0.1, 1.0, 5.0)] == thresholds[:3]


# --- the promise -------------------------------------------------------------------------------------------------


@given(votes_with_weights.filter(lambda votes: len(votes) > 1), st.sampled_from(ALPHAS))
def test_given_the_bag_the_weighted_error_is_at_most_alpha(votes, alpha):
    """The theorem: the new question is each of the bag with a chance in proportion to its weight."""
    total, error = sum(weight for _, _, weight in votes), Fraction(0)
    for row, (nu, wrong, weight) in enumerate(votes):
        rest = votes[:row] + votes[row + 1 :]
        if not weight or not any(w for _, _, w in rest):
            continue  # what is never drawn cannot err; and of nothing nothing is calibrated
        rule = dm.Shifted(dm.Marginal(alpha)).settle(evidence_of(rest))
        error += Fraction(weight, total) * ((wrong and nu > 0) and (nu / 6,) > rule.threshold_of(0, (), float(weight)))
    assert error <= Fraction(alpha)


def test_forgetting_to_pay_for_the_question_itself_breaks_the_theorem():
    """A mutant: the threshold of a question that weighs nothing, used for all."""
    rng, broken = np.random.default_rng(8), 0
    for _ in range(200):
        votes = [(int(nu), bool(rng.random() < 0.6), int(w)) for nu, w in rng.integers(1, 6, (8, 2))]
        total, error = sum(weight for _, _, weight in votes), Fraction(0)
        for row, (nu, wrong, weight) in enumerate(votes):
            rule = dm.Shifted(dm.Marginal(0.2)).settle(evidence_of(votes[:row] + votes[row + 1 :]))
            error += Fraction(weight, total) * (wrong and (nu / 6,) > rule.threshold_of(0, (), 1e-12))
        broken += error > Fraction(1, 5)
    assert broken > 20


def easy(threshold):
    """Of votes with ν uniform that are wrong with chance (1 − ν) / 4: how many are answered wrongly."""
    return (1 - threshold) ** 2 / 8


def hard(threshold):
    """The same where they are wrong with chance 0.9 − ν / 2."""
    return 0.9 * (1 - threshold) - (1 - threshold**2) / 4


def shifted_mix(seed, sets=1500, n=400, alpha=0.1):
    """The error of plain and of weighted control, and the yield, on a mix of 30:70 where calibration has 80:20."""
    rng = np.random.default_rng(seed)
    light, heavy = 0.3 / 0.8, 0.7 / 0.2
    rows = []
    for _ in range(sets):
        is_easy, nu = rng.random(n) < 0.8, rng.random(n)
        right = rng.random(n) >= np.where(is_easy, (1 - nu) / 4, 0.9 - nu / 2)
        plain = dm.Marginal(alpha).settle(Evidence.of(nu, right)).threshold
        weighted = Evidence.of(nu, right, None, np.where(is_easy, light, heavy))
        rule = dm.Shifted(dm.Marginal(alpha)).settle(weighted)
        one, other = (rule.threshold_of(0, (), weight)[0] for weight in (light, heavy))
        rows.append(
            (
                0.3 * easy(plain) + 0.7 * hard(plain),
                0.3 * easy(one) + 0.7 * hard(other),
                0.3 * (1 - one) + 0.7 * (1 - other),
            )
        )
    return np.array(rows)


def test_on_a_shifted_mix_plain_control_breaks_its_promise_and_weighted_control_keeps_it_and_answers():
    plain, weighted, answered = shifted_mix(11).T
    error = weighted.std(ddof=1) / np.sqrt(len(weighted))
    assert weighted.mean() <= 0.1 + 4 * error
    assert weighted.mean() > 0.085  # abstaining always would keep it too
    assert answered.mean() > 0.15
    assert plain.mean() > 0.15  # the negative control


def test_an_audit_of_a_promise_that_holds_seldom_speaks_against_it():
    """No exact law is known; that of as many votes as the weights are worth must not cry wolf."""
    rng, alarms, sets = np.random.default_rng(12), 0, 800
    light, heavy = 0.3 / 0.8, 0.7 / 0.2
    for _ in range(sets):
        is_easy, nu = rng.random(300) < 0.8, rng.random(300)
        right = rng.random(300) >= np.where(is_easy, (1 - nu) / 4, 0.9 - nu / 2)
        rule = dm.Shifted(dm.Marginal(0.1)).settle(Evidence.of(nu, right, None, np.where(is_easy, light, heavy)))
        one, other = (rule.threshold_of(0, (), weight)[0] for weight in (light, heavy))
        errors = rng.binomial(500, 0.3 * easy(one) + 0.7 * hard(other))
        alarms += rule.law.upper_tail(int(errors), 500) < 0.05
    assert stats.binomtest(alarms, sets, 0.05, alternative="greater").pvalue > 1e-3
    assert rule.law.upper_tail(200, 500) < 0.001  # and it does speak where errors are many
    assert rule.law.n < rule.effective < 300


def test_votes_without_a_label_count_as_wrong_and_the_theorem_holds_still():
    rng = np.random.default_rng(13)
    nu, right, weights = rng.random(300), rng.random(300) < 0.7, rng.exponential(size=300)
    known = rng.random(300) < 0.5
    partly = dm.Shifted(dm.Marginal(0.2)).settle(Evidence.of(nu, right, known, weights))
    fully = dm.Shifted(dm.Marginal(0.2)).settle(Evidence.of(nu, right, None, weights))
    for weight in (0.1, 1.0, 4.0):
        assert partly.threshold_of(0, (), weight) >= fully.threshold_of(0, (), weight)


# --- sizes, forecasts, bad input ---------------------------------------------------------------------------------


def test_where_pools_differ_in_size_a_vote_passes_among_all_and_among_those_of_its_size():
    rng = np.random.default_rng(14)
    nu, right, weights = rng.random((400, 1)), rng.random(400) < 0.6, rng.exponential(size=400)
    sizes = rng.choice([4, 8, 9], 400, p=[0.5, 0.48, 0.02])
    cases = Cases(nu, sizes, None, weights)
    strata = Strata.of(cases, right)
    rule = settle_by_size(dm.Shifted(dm.Marginal(0.1)), strata)
    assert not rule.takes(9)
    assert not rule.answers(cases)[sizes == 9].any()
    for size in (4, 8):
        own = dm.Shifted(dm.Marginal(0.1)).settle(strata.by_size[size])
        pooled = dm.Shifted(dm.Marginal(0.1)).settle(strata.pooled)
        expected = max(own.threshold_of(0, (), 2.0), pooled.threshold_of(0, (), 2.0))
        assert rule.threshold_of(size, (), 2.0) == expected
    p_value = rule.p_value(strata, cases)
    taken = sizes != 9
    assert (rule.answers(cases)[taken] == (p_value <= 0.1)[taken]).all()


def test_a_forecast_speaks_of_questions_as_they_occur_in_use():
    rng = np.random.default_rng(15)
    is_easy, nu = rng.random(4000) < 0.8, rng.random(4000)
    right = rng.random(4000) >= np.where(is_easy, (1 - nu) / 4, 0.9 - nu / 2)
    evidence = Evidence.of(nu, right, None, np.where(is_easy, 0.3 / 0.8, 0.7 / 0.2))
    rule = dm.Shifted(dm.Marginal(0.1)).settle(evidence)
    one, other = (rule.threshold_of(0, (), weight)[0] for weight in (0.3 / 0.8, 0.7 / 0.2))
    expected = forecast(evidence, rule)
    assert expected.answered == pytest.approx(0.3 * (1 - one) + 0.7 * (1 - other), abs=0.03)
    assert expected.expected_confident_error == pytest.approx(0.1, abs=0.01)
    assert evidence.effective_size == pytest.approx(4000 / (0.8 * (0.3 / 0.8) ** 2 + 0.2 * 3.5**2), rel=0.05)


def test_a_question_of_weight_0_is_said_not_to_occur_and_is_not_answered():
    rule = dm.Shifted(dm.Marginal(0.5)).settle(Evidence.of([0.9, 0.8], [True, True], None, np.array([1.0, 1.0])))
    cases = Cases(np.array([[0.9], [0.9]]), np.zeros(2, dtype=np.intp), None, np.array([0.0, 1.0]))
    assert rule.answers(cases).tolist() == [False, True]
    assert "said not to occur" in rule.refused_weight(0.0)
    assert "too rare" in rule.refused_weight(1000.0)


@pytest.mark.parametrize("other", [dm.HighProbability(0.1, 0.1), dm.Smoothed(0.1, 1), dm.Selective(0.1, 0.1), "x"])
def test_only_the_marginal_guarantee_can_be_weighted_and_others_say_why(other):
    with pytest.raises(InvalidValue, match="rests on ranks or on a binomial law"):
        dm.Shifted(other)


def test_a_choice_by_the_same_labels_cannot_be_paid_for_under_weights_and_is_refused():
    with pytest.raises(
        InvalidValue, match=r"a choice among 4 ways to vote .* choose the way to vote on other problems"
    ):
        dm.Shifted(dm.Marginal(0.1, choices=4))


def test_weights_that_are_none_are_refused_in_one_line():
    answers = [["a"], ["b"]]
    for bad, told in (
        ([1.0, -1.0], "got -1.0 for vote 1"),
        ([np.inf, 1.0], "got inf for vote 0"),
        ([1.0, np.nan], "got nan for vote 1"),
        ([0.0, 0.0], "must not all be 0"),
        ([1.0], "2 of them"),
        ([1e200, 1.0], "got 1e\\+200 for vote 0"),
    ):
        with pytest.raises(InvalidValue, match=told):
            dm.vote(answers, importance=bad)
    with pytest.raises(InvalidValue, match="needs a weight per question"):
        dm.calibrate(dm.vote(answers), [True, False], guarantee=dm.Shifted(dm.Marginal(0.5)))
    with pytest.raises(InvalidValue, match="the name of a field"):
        dm.Shifted(dm.Marginal(0.1), 3)
