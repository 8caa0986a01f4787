"""Each guarantee: the definition read literally, the exact law, the edge cases by hand, and mutants that must fail."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betainc

import demur as dm
from brute_force import literal_threshold
from demur.calibration import CLUSTER, QUESTION, HighProbability, Marginal, Smoothed, exact_alpha
from demur.calibration.high_probability import _binomial_cdf
from demur.errors import InfeasibleWarning, InvalidValue
from demur.evidence.counts import Evidence

NU = [0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5, 0.45, 0.3]
WRONG = np.array([0, 1, 0, 0, 1, 0, 0, 1, 1], dtype=bool)

votes = st.lists(st.tuples(st.integers(0, 16), st.booleans()), min_size=1, max_size=40)
alphas = st.integers(1, 99).map(lambda a: a / 100)


def threshold_of(guarantee, confidence, wrong):
    return guarantee.settle(Evidence.of(confidence, ~np.asarray(wrong, dtype=bool))).threshold


# --- marginal (conformal risk control) ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "threshold"), [(0.05, 1.0), (0.1, 0.9), (0.2, 0.65), (0.3, 0.45), (0.4, 0.3), (0.5, 0.0)]
)
def test_the_thresholds_of_the_fixture(alpha, threshold):
    assert threshold_of(Marginal(alpha), NU, WRONG) == threshold


@given(votes, alphas)
def test_the_order_statistic_is_the_papers_infimum(table, alpha):
    confidence, wrong = [Fraction(v, 16) for v, _ in table], [w for _, w in table]
    literal = literal_threshold(confidence, wrong, Fraction(str(alpha)))
    assert threshold_of(Marginal(alpha), [float(c) for c in confidence], wrong) == literal


@given(votes, alphas)
def test_answering_is_the_same_as_a_p_value_of_at_most_alpha(table, alpha):
    evidence = Evidence.of([v / 16 for v, _ in table], ~np.array([w for _, w in table], dtype=bool))
    point = Marginal(alpha).settle(evidence)
    grid = np.arange(1, 17) / 16
    p_at_most_alpha = [
        Fraction(1 + int(count), evidence.n + 1) <= Fraction(str(alpha)) for count in evidence.wrong_at_least(grid)
    ]
    assert (grid > point.threshold).tolist() == p_at_most_alpha


@given(votes, alphas, alphas)
def test_a_larger_alpha_never_raises_the_threshold_and_another_right_vote_never_does(table, first, second):
    confidence, wrong = [v / 16 for v, _ in table], [w for _, w in table]
    low, high = sorted([first, second])
    assert threshold_of(Marginal(high), confidence, wrong) <= threshold_of(Marginal(low), confidence, wrong)
    more = threshold_of(Marginal(low), [*confidence, 0.5], [*wrong, False])
    assert more <= threshold_of(Marginal(low), confidence, wrong)


@given(votes, alphas)
def test_fewer_than_k_calibration_votes_are_confident_errors(table, alpha):
    evidence = Evidence.of([v / 16 for v, _ in table], ~np.array([w for _, w in table], dtype=bool))
    point = Marginal(alpha).settle(evidence)
    assert point.answered(evidence)[1] <= max(point.law.k - 1, 0)


def test_a_fraction_keeps_its_exact_value():
    third = Marginal(Fraction(1, 3))
    assert (third.rank(2), third.n_needed()) == (1, 2)
    assert Marginal(1 / 3).rank(2) == 0  # the decimal it prints as is smaller
    assert third.level == Fraction(1, 3)
    assert third.alpha == 1 / 3
    assert "at most 1/3," in third.promise(2)
    assert "at most 0.25," in Marginal(Fraction(1, 4)).promise(9)
    assert Marginal("1/3") == third
    assert Marginal(1 / 3) != third
    assert Smoothed(Fraction(1, 3), seed=1).rank(2) == 1
    assert Smoothed(Fraction(1, 3), seed=1).n_needed() == 2
    # P(Bin(1, 2/3) ≤ 0) is 1/3, which a delta of a third allows, and the decimal below it does not.
    assert HighProbability(Fraction(2, 3), Fraction(1, 3)).rank(1) == 1
    assert HighProbability(Fraction(2, 3), 0.3333333333333333).rank(1) == 0


def test_the_rank_is_exact_where_floats_are_not():
    assert Marginal(0.29).rank(99) == 29
    assert int((99 + 1) * 0.29) == 28  # the mutant: a float count loses one allowed error
    assert Marginal(0.29).rank(199) == 58
    assert Marginal(0.03).rank(99) == 3
    assert Marginal(np.float32(0.1)).rank(9) == 1
    assert (Marginal(0.1).rank(200), Marginal(0.05).rank(200)) == (20, 10)


@pytest.mark.parametrize(("alpha", "needed"), [(0.01, 99), (0.02, 49), (0.05, 19), (0.1, 9), (0.2, 4), (0.3, 3)])
def test_the_smallest_n_that_can_answer(alpha, needed):
    guarantee = Marginal(alpha)
    assert guarantee.n_needed() == needed
    assert guarantee.rank(needed) == 1
    assert guarantee.rank(needed - 1) == 0


def uniform_confidences(rng, sets, n, error_rate=0.5):
    """ν ~ U(0, 1) whatever the label, wrong at a known rate: P(wrong, ν > λ) = rate · (1 − λ)."""
    return rng.random((sets, n)), rng.random((sets, n)) < error_rate


def risks(guarantee, confidence, wrong, error_rate=0.5):
    """The true error rate of the policy calibrated on each row."""
    thresholds = [threshold_of(guarantee, c, w) for c, w in zip(confidence, wrong, strict=True)]
    return error_rate * (1 - np.array(thresholds))


@pytest.mark.parametrize(("n", "alpha"), [(20, 0.1), (50, 0.1), (200, 0.05), (99, 0.29)])
def test_the_true_risk_has_the_beta_law(n, alpha):
    rng = np.random.default_rng(n)
    realised = risks(Marginal(alpha), *uniform_confidences(rng, 1500, n))
    k = Marginal(alpha).rank(n)
    law = stats.beta(k, n + 1 - k)
    assert stats.kstest(np.minimum(realised, 0.499999), law.cdf).pvalue > 1e-4
    assert abs(realised.mean() - k / (n + 1)) < 4 * law.std() / np.sqrt(1500)


def test_the_beta_law_test_can_fail():
    """Negative control: one rank more is a different law, and the test above sees it."""
    rng = np.random.default_rng(50)
    confidence, wrong = uniform_confidences(rng, 1500, 50)
    shifted = [
        Evidence.of(c, ~w).threshold(Marginal(0.1).rank(50) + 1)[0] for c, w in zip(confidence, wrong, strict=True)
    ]
    assert stats.kstest(0.5 * (1 - np.array(shifted)), stats.beta(5, 46).cdf).pvalue < 1e-4


def test_the_mean_risk_is_capped_where_errors_are_scarce():
    """c = P(wrong) = 0.12 near alpha = 0.1: mean k/(n+1) · I_c(k+1, n+1−k) + c (1 − I_c(k, n+1−k))."""
    n, alpha, c, sets = 200, 0.1, 0.12, 1500
    realised = risks(Marginal(alpha), *uniform_confidences(np.random.default_rng(3), sets, n, c), c)
    k = Marginal(alpha).rank(n)
    exact = k / (n + 1) * betainc(k + 1, n + 1 - k, c) + c * (1 - betainc(k, n + 1 - k, c))
    assert abs(realised.mean() - exact) < 4 * realised.std() / np.sqrt(sets)
    assert exact < k / (n + 1) - 0.001  # the cap matters here


def test_ties_follow_the_law_of_atoms():
    """ν uniform on {1/4, 2/4, 3/4, 1}: R = max{S_j ≤ V}, V ~ Beta(k, n + 1 − k), S_j = P(wrong, ν > level)."""
    n, alpha, sets, rng = 100, 0.1, 3000, np.random.default_rng(4)
    confidence = rng.integers(1, 5, (sets, n)) / 4
    wrong = rng.random((sets, n)) < 0.5
    realised = risks(Marginal(alpha), np.where(confidence == 1, 1.0, confidence), wrong)
    survival = np.array([0, 0.125, 0.25, 0.375, 0.5])
    k = Marginal(alpha).rank(n)
    below = betainc(k, n + 1 - k, survival)
    exact = float((survival * np.diff(np.append(below, 1.0))).sum())
    assert abs(realised.mean() - exact) < 4 * realised.std() / np.sqrt(sets)
    assert exact < k / (n + 1)  # ties cost power


# --- smoothed ----------------------------------------------------------------------------------------------------


def test_the_smoothed_rank_is_drawn_once_from_the_seed_with_the_right_odds():
    n, alpha = 52, 0.1  # (n + 1)α = 5.3
    ranks = [Smoothed(alpha, seed).rank(n) for seed in range(2000)]
    assert set(ranks) == {5, 6}
    assert abs(np.mean([r == 6 for r in ranks]) - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 2000)
    assert Smoothed(alpha, 7).rank(n) == Smoothed(alpha, 7).rank(n)
    unseeded = [Smoothed(alpha) for _ in range(200)]
    assert len({guarantee.seed for guarantee in unseeded}) == 200  # a default that is always the same is no draw
    assert {guarantee.rank(n) for guarantee in unseeded} == {5, 6}
    assert {Smoothed(alpha, seed).rank(49) for seed in range(50)} == {5}  # nothing to draw: (n + 1)α is whole


def test_the_smoothed_risk_is_alpha_on_average():
    n, alpha, sets = 24, 0.1, 4000  # (n + 1)α = 2.5: the plain rule spends only 2/25
    confidence, wrong = uniform_confidences(np.random.default_rng(5), sets, n)
    thresholds = [
        threshold_of(Smoothed(alpha, s), c, w) for s, (c, w) in enumerate(zip(confidence, wrong, strict=True))
    ]
    realised = 0.5 * (1 - np.array(thresholds))
    assert abs(realised.mean() - alpha) < 4 * realised.std() / np.sqrt(sets)
    plain = risks(Marginal(alpha), confidence, wrong)
    assert plain.mean() < alpha - 0.01


# --- high probability --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "alpha", "delta", "rank"),
    [(200, 0.1, 0.1, 15), (200, 0.05, 0.1, 6), (59, 0.05, 0.05, 1), (58, 0.05, 0.05, 0), (1000, 0.1, 0.1, 88)],
)
def test_the_high_probability_ranks_of_the_theory(n, alpha, delta, rank):
    assert HighProbability(alpha, delta).rank(n) == rank


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 50))
def test_the_high_probability_rank_read_literally_in_fractions(n, alpha, delta):
    alpha, delta = alpha / 100, delta / 100
    literal = sum(_literal_cdf(j, n, Fraction(str(alpha))) <= Fraction(str(delta)) for j in range(n))
    assert HighProbability(alpha, delta).rank(n) == literal


def _literal_cdf(j, n, alpha):
    from math import comb

    return sum(comb(n, i) * alpha**i * (1 - alpha) ** (n - i) for i in range(j + 1))


def test_the_rank_may_be_all_of_n_and_too_close_to_tell_is_the_smaller_rank(monkeypatch):
    assert HighProbability(0.99, 0.5).rank(1) == 1
    from demur.calibration import high_probability

    monkeypatch.setattr(high_probability, "_EXACT_LIMIT", 0)
    assert HighProbability(0.5, 0.25).rank(2) == 0  # exactly 1/4, but not to be told in floats


def test_a_tie_with_delta_counts_as_kept():
    # P(Bin(2, 1/2) ≤ 0) is exactly 1/4; in floats or with "<" the rank would be 0.
    assert HighProbability(0.5, 0.25).rank(2) == 1
    assert _binomial_cdf(3, 80, Fraction(1, 10)) == _literal_cdf(3, 80, Fraction(1, 10))
    assert float(_binomial_cdf(3, 80, Fraction(1, 10))) == pytest.approx(0.03531, abs=5e-6)
    assert float(_binomial_cdf(0, 22, Fraction(1, 10))) == pytest.approx(0.09848, abs=5e-6)


@pytest.mark.parametrize(
    ("alpha", "delta", "needed"),
    [(0.01, 0.05, 299), (0.02, 0.05, 149), (0.05, 0.05, 59), (0.1, 0.05, 29), (0.2, 0.05, 14),
     (0.01, 0.1, 230), (0.05, 0.1, 45), (0.1, 0.1, 22), (0.5, 0.25, 2)],
)  # fmt: skip
def test_the_smallest_n_of_the_high_probability_promise(alpha, delta, needed):
    guarantee = HighProbability(alpha, delta)
    assert guarantee.n_needed() == needed
    assert guarantee.rank(needed) >= 1
    assert guarantee.rank(needed - 1) == 0


def test_violations_are_as_rare_as_promised_and_no_rarer_than_exactness_allows():
    n, alpha, delta, sets = 100, 0.1, 0.1, 3000
    confidence, wrong = uniform_confidences(np.random.default_rng(6), sets, n)
    broken = np.mean(risks(HighProbability(alpha, delta), confidence, wrong) > alpha)
    k = HighProbability(alpha, delta).rank(n)
    exact = stats.beta.sf(alpha, k, n + 1 - k)
    assert exact <= delta
    assert abs(broken - exact) < 4 * np.sqrt(exact * (1 - exact) / sets)
    marginal = np.mean(risks(Marginal(alpha), confidence, wrong) > alpha)
    assert marginal > 0.4  # why one would want this: the marginal promise is about the average


# --- shared ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan"), float("inf"), "x", None, True, "1/0"])
def test_alpha_outside_the_open_unit_interval_is_refused(alpha):
    for make in (Marginal, Smoothed, lambda a: HighProbability(a, 0.1), lambda a: HighProbability(0.1, a)):
        with pytest.raises(InvalidValue, match="strictly between 0 and 1"):
            make(alpha)


def test_levels_are_read_as_the_decimals_they_print_as():
    assert exact_alpha(0.1) == Fraction(1, 10)
    assert exact_alpha(1e-05) == Fraction(1, 100_000)
    assert exact_alpha(np.float64(0.05)) == Fraction(1, 20)


def test_promises_name_their_scope():
    assert "averaged over calibration sets" in Marginal(0.05).promise(200)
    assert "one random draw" in Smoothed(0.05).promise(200)
    assert "independent questions" in HighProbability(0.05, 0.1).promise(200)


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1, 3), Fraction(1, 5), Fraction(1, 10), Fraction(3, 100)])
def test_the_smallest_n_is_exact_where_delta_is_a_power(alpha):
    """δ = (1 − α)ⁿ is allowed from that very n on, where logarithms in floats land on either side."""
    for n in range(1, 20):
        promise = HighProbability(alpha, (1 - alpha) ** n)
        assert promise.n_needed() == n
        assert (promise.rank(n - 1), promise.rank(n)) == (0, 1)


def test_thresholds_of_many_sets_are_those_of_each():
    rng = np.random.default_rng(4)
    keys, right = rng.integers(1, 9, (40, 12)) / 8, rng.random((40, 12)) < 0.5
    ranks = np.sort(np.where(right, 0, (8 * keys).astype(np.int32)), axis=1)
    for guarantee in (Marginal(0.05), Marginal(0.2), Marginal(0.5), Marginal(0.95), Smoothed(0.99, seed=1)):
        k = guarantee.rank(12)
        each = [Evidence.of(row, labels).threshold(k)[0] for row, labels in zip(keys, right, strict=True)]
        assert (guarantee.settle_many(ranks, 8) / 8).tolist() == each


def test_alphas_of_any_size_that_is_taken_can_be_stored_and_others_are_refused(tmp_path):
    for alpha in (Fraction(0.001), Fraction(1, 10**40), 1e-5):
        with pytest.warns(InfeasibleWarning):
            policy = dm.calibrate(dm.vote([["a"]] * 30), [True] * 30, alpha=alpha)
        policy.save(tmp_path / "p.json")
        assert dm.Policy.load(tmp_path / "p.json").point().guarantee == policy.point().guarantee
    with pytest.raises(InvalidValue, match="of moderate size"):
        Marginal(Fraction(1, 10**40 + 1))


def test_alphas_of_an_array_are_what_they_print_as():
    policy = dm.calibrate(dm.vote([["a"]] * 30), [True] * 30, alpha=np.array([0.1, 0.25], dtype=np.float32))
    assert [rule.guarantee.level for rule in policy.points] == [Fraction(1, 10), Fraction(1, 4)]


@pytest.mark.parametrize(
    ("unit", "marginal", "strict"),
    [
        (
            QUESTION,
            "On a new question exchangeable with the 200 calibration questions, the probability of answering it "
            "wrongly is at most 0.05, averaged over calibration sets",
            "For all but a share 0.1 of calibration sets of 200 independent questions, the rate of wrong answers on "
            "new questions like them is at most 0.05; which sets those are cannot be known.",
        ),
        (
            CLUSTER,
            "On one question of a new cluster, exchangeable with the 200 calibration clusters, the probability of "
            "answering it wrongly is at most 0.05, averaged over calibration sets",
            "For all but a share 0.1 of calibration sets of 200 independent clusters, the rate of wrong answers on one "
            "question of each new cluster like them is at most 0.05; which sets those are cannot be known.",
        ),
    ],
)
def test_promises_word_for_word(unit, marginal, strict):
    assert Marginal(0.05).promise(200, unit) == f"{marginal}."
    assert Smoothed(0.05, seed=1).promise(200, unit) == f"{marginal} and the one random draw of the rank."
    assert HighProbability(0.05, 0.1).promise(200, unit) == strict


def test_a_promise_says_alpha_to_the_last_digit():
    """Rounded to fewer, it would promise a little more than was calibrated, or less."""
    assert "at most 0.1234561," in Marginal(0.1234561).promise(50)
    assert "a share 0.0123456789 of" in HighProbability(0.5, 0.0123456789).promise(50)
    assert "at most 1e-07," in Marginal(1e-7).promise(50)


def test_a_wrong_delta_is_called_delta():
    for delta in (0, 1, "x"):
        with pytest.raises(InvalidValue, match=r"^delta must"):
            HighProbability(0.1, delta)
    with pytest.raises(InvalidValue, match=r"^delta must be a decimal or a fraction of moderate size"):
        HighProbability(0.1, Fraction(1, 10**40 + 1))
    with pytest.raises(InvalidValue, match=r"^alpha must"):
        HighProbability(0, 0.1)


@pytest.mark.parametrize(("alpha", "n"), [(Fraction(1, 2), 1), (Fraction(1, 2), 9), (Fraction(1, 10), 7)])
def test_a_delta_a_hair_below_a_power_needs_one_question_more(alpha, n):
    """Floats cannot tell it from the power: the first guess is one too small."""
    promise = HighProbability(alpha, (1 - alpha) ** n - Fraction(1, 10**30))
    assert promise.n_needed() == n + 1
    assert (promise.rank(n), promise.rank(n + 1)) == (0, 1)


@pytest.mark.parametrize(("alpha", "delta"), [(0.05, 1e-6), (0.1, 1e-3), (0.3, 0.5)])
@pytest.mark.parametrize("n", [20_001, 50_000])
def test_ranks_of_large_samples_are_those_of_the_binomial_law(n, alpha, delta):
    rank = HighProbability(alpha, delta).rank(n)
    assert stats.binom.cdf(rank - 1, n, alpha) <= delta < stats.binom.cdf(rank, n, alpha)


def test_a_tie_with_delta_is_settled_up_to_the_largest_size_that_is_counted_out(monkeypatch):
    from demur.calibration import high_probability

    monkeypatch.setattr(high_probability, "_EXACT_LIMIT", 2)
    assert HighProbability(0.5, 0.25).rank(2) == 1
    assert HighProbability(0.5, 0.125).rank(3) == 0  # one larger: not to be told, so the smaller rank


def test_a_set_that_is_wrong_throughout_has_its_lowest_vote_as_the_threshold_of_the_rank_n():
    ranks = np.array([[2, 3, 5, 8], [0, 3, 5, 8], [0, 0, 0, 0]], dtype=np.int32)
    assert Marginal(0.8).rank(4) == 4
    assert Marginal(0.8).settle_many(ranks, 8).tolist() == [2, 0, 0]
    assert Smoothed(0.99, seed=next(s for s in range(99) if Smoothed(0.99, s).rank(4) == 5)).settle_many(
        ranks, 8
    ).tolist() == [0, 0, 0]
