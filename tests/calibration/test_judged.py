"""Labels by a judge of which people checked a random part: what is promised holds of what people call wrong."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import demur as dm
from demur.errors import InfeasibleWarning, InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.laws import ErrorLaw, TwoPartLaw
from demur.evidence.region import Region, RegionLaw, region

RIGHT, SEEN, MISSED, FALSE_WRONG = range(4)
"""Of a vote: right by both, wrong by both, wrong though the judge says right, right though it says wrong."""


@pytest.fixture(autouse=True)
def _small_samples():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        yield


def calibrated(confidence, kinds, drawn, guarantee):
    """A policy of votes that a judge labelled and of which these rows were checked."""
    votes = votes_of(confidence)
    truth, judged = np.isin(kinds, (RIGHT, FALSE_WRONG)), np.isin(kinds, (RIGHT, MISSED))
    checked = np.full(len(kinds), None, dtype=object)
    checked[drawn] = truth[drawn]
    return dm.calibrate(votes, judged, guarantee=guarantee, checked=checked)


def votes_of(confidence, most=20):
    """Votes of these confidences, which are multiples of a twentieth."""
    shares = np.round(np.asarray(confidence) * most).astype(int)
    return dm.vote([["a"] * share + [None] * (most - share) for share in shares], tie_break="none")


def lost(policy, confidence, kind):
    return policy.threshold < confidence and kind in (SEEN, MISSED)


@pytest.mark.parametrize("guarantee", [dm.Marginal("1/3"), dm.JudgeMarginal("2/3", "1/2"), dm.JudgeMarginal("3/4")])
def test_the_average_held_out_loss_is_at_most_alpha_whichever_part_is_checked(guarantee):
    """Bags of five votes with ties, each held out in turn, and every part of the others checked."""
    rng = np.random.default_rng(3)
    answered = 0
    for _ in range(60):
        confidence, kinds = rng.integers(1, 5, 5) / 5, rng.choice(4, 5, p=[0.2, 0.25, 0.4, 0.15])
        losses = trials = 0
        for out in range(5):
            others = np.array([row for row in range(5) if row != out])
            for drawn in itertools.combinations(range(4), 2 if guarantee.alpha < 0.5 else 3):
                policy = calibrated(confidence[others], kinds[others], list(drawn), guarantee)
                losses += lost(policy, confidence[out], kinds[out])
                answered += policy.threshold < confidence[out]
                trials += 1
        assert Fraction(losses, trials) <= guarantee.level
    assert answered > 0


def test_the_thresholds_are_the_two_order_statistics_read_literally():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(12, 60))
        confidence, kinds = rng.integers(1, 20, n) / 20, rng.choice(4, n, p=[0.5, 0.2, 0.2, 0.1])
        drawn = rng.choice(n, int(rng.integers(5, n)), replace=False)
        guarantee = dm.JudgeMarginal("0.4", "1/4")
        policy = calibrated(confidence, kinds, drawn, guarantee)
        checked = np.isin(np.arange(n), drawn)
        seen = np.sort(confidence[(kinds == SEEN) | ((kinds == FALSE_WRONG) & ~checked)])[::-1]
        missed = np.sort(confidence[(kinds == MISSED) & checked])[::-1]
        first, second = int((n + 1) * Fraction(3, 10)), int((len(drawn) + 1) * Fraction(1, 10))
        expected = [
            1.0 if k == 0 else 0.0 if k > len(keys) else keys[k - 1] for k, keys in ((first, seen), (second, missed))
        ]
        assert policy.threshold == max(expected)


def test_the_checked_votes_alone_are_an_ordinary_calibration_on_them():
    rng = np.random.default_rng(1)
    confidence, kinds = rng.integers(1, 20, 80) / 20, rng.choice(4, 80)
    drawn = np.sort(rng.choice(80, 40, replace=False))
    policy = calibrated(confidence, kinds, drawn, [dm.Marginal(0.1), dm.Selective(0.3, 0.2)])
    plain = dm.calibrate(
        votes_of(confidence[drawn]),
        np.isin(kinds[drawn], (RIGHT, FALSE_WRONG)),
        guarantee=[dm.Marginal(0.1), dm.Selective(0.3, 0.2)],
    )
    assert [rule.threshold_key for rule in policy.points] == [rule.threshold_key for rule in plain.points]
    assert policy.n == 40


# Judges, as (share of wrong votes called right, share of right ones called wrong) by the vote's confidence.
JUDGES = {
    "even": (lambda u: np.full(len(u), 0.2), lambda u: np.full(len(u), 0.1)),
    "false rights at the top": (lambda u: np.where(u > 0.7, 0.9, 0.05), lambda u: np.zeros(len(u))),
    "false rights at the bottom": (lambda u: np.where(u < 0.3, 0.8, 0.0), lambda u: np.full(len(u), 0.05)),
    "never right": (lambda u: np.zeros(len(u)), lambda u: np.ones(len(u))),
    "always right": (lambda u: np.ones(len(u)), lambda u: np.zeros(len(u))),
    "perfect": (lambda u: np.zeros(len(u)), lambda u: np.zeros(len(u))),
}


def drawn_sets(judge, sets, n, seed):
    """Confidences, whether votes are wrong, and whether the judge says so, of many calibration sets."""
    rng = np.random.default_rng(seed)
    u = rng.random((sets, n))
    wrong = rng.random((sets, n)) < chance_wrong(u)
    false_right, false_wrong = (part(u.ravel()).reshape(u.shape) for part in JUDGES[judge])
    draw = rng.random((sets, n))
    return u, wrong, np.where(wrong, draw >= false_right, draw < false_wrong)


def chance_wrong(u):
    return 0.5 - 0.4 * u


def true_rate(threshold):
    """P(above the threshold and wrong)."""
    t = np.asarray(threshold)
    return 0.5 * (1 - t) - 0.2 * (1 - t**2)


def thresholds(keys, bad, k):
    """The k-th largest bad key of each set."""
    if k == 0:
        return np.ones(len(keys))
    ordered = -np.sort(-np.where(bad, keys, -1.0), axis=1)
    return np.maximum(ordered[:, k - 1], 0.0) if k <= keys.shape[1] else np.zeros(len(keys))


def ways(judge, alpha, delta=None, *, sets=4000, n=200, checked=60, seed=0):
    """Thresholds of each way to calibrate on the same sets; the first so many votes of each are the checked ones."""
    u, wrong, said_wrong = drawn_sets(judge, sets, n, seed)
    plain = dm.Marginal(alpha) if delta is None else dm.HighProbability(alpha, delta)
    is_checked = np.arange(n) < checked
    seen, missed = said_wrong & (wrong | ~is_checked), (wrong & ~said_wrong) & is_checked
    if delta is None:
        first, second = dm.JudgeMarginal(alpha).settled(checked).parts()
        both = np.maximum(thresholds(u, seen, first.rank(n)), thresholds(u, missed, second.rank(checked)))
    else:
        both = region_thresholds(u, seen, missed, region(n, checked, alpha, delta))
    return {
        "judge's labels": thresholds(u, said_wrong, plain.rank(n)),
        "checked": thresholds(u[:, :checked], wrong[:, :checked], plain.rank(checked)),
        "judge and checks": both,
    }


def region_thresholds(keys, seen, missed, allowed):
    """The largest key at which errors of both kinds leave a region, of each set."""
    order = np.argsort(-keys, axis=1)
    ordered, counts = (
        np.take_along_axis(keys, order, 1),
        [np.cumsum(np.take_along_axis(bad, order, 1), axis=1) for bad in (seen, missed)],
    )
    beyond = ~allowed.allows(*counts)
    return np.where(beyond.any(axis=1), ordered[np.arange(len(keys)), beyond.argmax(axis=1)], 0.0)


@pytest.mark.parametrize("judge", JUDGES)
def test_the_marginal_promise_holds_whatever_the_judge_does(judge):
    rates = {name: true_rate(found) for name, found in ways(judge, 0.1).items()}
    for name in ("checked", "judge and checks"):
        error = rates[name].std() / math.sqrt(len(rates[name]))
        assert rates[name].mean() <= 0.1 + 4 * error, name
        if judge != "never right":  # it leaves a judge's part nothing to answer
            assert rates[name].mean() > (0.08 if name == "checked" else 0.02), name  # it does not just abstain
    if judge != "never right":
        assert rates["checked"].mean() > rates["judge and checks"].mean()  # even where the judge is perfect


@pytest.mark.parametrize("judge", JUDGES)
def test_the_high_probability_promise_holds_whatever_the_judge_does(judge):
    sizes = {"n": 400, "checked": 100}
    violations = {name: (true_rate(found) > 0.1) for name, found in ways(judge, 0.1, 0.1, **sizes).items()}
    for name in ("checked", "judge and checks"):
        sets = len(violations[name])
        assert violations[name].sum() <= binom.ppf(0.9999, sets, 0.1), name
    assert violations["checked"].mean() > 0.02  # it does not just abstain
    if judge == "always right":  # all errors are missed: nothing but the checks is left
        assert violations["judge and checks"].mean() > 0.02
    if judge == "perfect":  # what a good judge is worth
        rates = {name: true_rate(found).mean() for name, found in ways(judge, 0.1, 0.1, **sizes).items()}
        assert rates["judge and checks"] > rates["checked"] + 0.005


@pytest.mark.parametrize("judge", ["false rights at the top", "always right"])
def test_a_judges_labels_taken_for_true_ones_break_both_promises(judge):
    naive = true_rate(ways(judge, 0.1)["judge's labels"])
    assert naive.mean() > 0.1 + 10 * naive.std() / math.sqrt(len(naive))
    sure = true_rate(ways(judge, 0.1, 0.1, n=400, checked=100)["judge's labels"])
    assert (sure > 0.1).mean() > 0.2


def test_a_judge_that_misses_one_error_in_five_and_errs_no_other_way_breaks_the_promise():
    u, wrong, _ = drawn_sets("perfect", 4000, 200, 5)
    said_wrong = wrong & (np.random.default_rng(6).random(u.shape) > 0.2)
    naive = true_rate(thresholds(u, said_wrong, dm.Marginal(0.1).rank(200)))
    assert naive.mean() > 0.1 + 10 * naive.std() / math.sqrt(len(naive))


def test_all_of_alpha_for_each_part_breaks_the_promise():
    """The negative control of the split: both kinds of error add up."""
    u, wrong, _ = drawn_sets("perfect", 4000, 400, 7)
    said_wrong = wrong & (np.random.default_rng(1).random(u.shape) < 0.5)
    k = dm.Marginal(0.1).rank(400), dm.Marginal(0.1).rank(100)
    both = np.maximum(thresholds(u, said_wrong, k[0]), thresholds(u[:, :100], (wrong & ~said_wrong)[:, :100], k[1]))
    assert true_rate(both).mean() > 0.15


def test_the_default_share_depends_on_the_number_of_checks_and_alpha_alone():
    for checked, alpha in itertools.product((5, 20, 60, 100, 1000), (0.01, 0.05, 0.1, "1/3")):
        wanted = dm.JudgeMarginal(alpha)
        settled = wanted.settled(checked)
        seen, missed = settled.parts()
        assert seen.level + missed.level == wanted.level
        assert 0 < settled.share < 1
        assert dm.JudgeMarginal(**settled.parameters()) == settled
        if (checked + 1) * wanted.level > 1:  # a rank that alpha 2 pays for to the last bit
            assert missed.level * (checked + 1) == missed.rank(checked) >= 1


@pytest.mark.parametrize("share", [0, 1, 1.2, -0.1, "a"])
def test_a_split_outside_alpha_is_refused(share):
    with pytest.raises(InvalidValue, match="share must"):
        dm.JudgeMarginal(0.1, share)


def test_the_law_of_two_parts_bounds_any_sum_of_them():
    law, fresh = TwoPartLaw(ErrorLaw(9, 199), ErrorLaw(2, 60)), 50
    rng = np.random.default_rng(0)
    seen, missed = rng.beta(9, 191, 40_000), rng.beta(2, 59, 40_000)
    for other in (
        missed,
        np.sort(missed)[np.argsort(np.argsort(seen))],
        np.sort(missed)[::-1][np.argsort(np.argsort(seen))],
    ):
        errors = rng.binomial(fresh, np.minimum(1.0, seen + other))
        for count in range(fresh + 1):
            assert (errors >= count).mean() <= law.upper_tail(count, fresh) + 0.01
    counts = law.counts(fresh)
    assert counts.sum() == pytest.approx(1)
    assert counts.min() >= 0
    assert law.upper_tail(20, fresh) < 0.01  # it says something
    assert law.interval(fresh)[0] == 0


def test_p_values_of_two_parts_are_at_most_alpha_no_more_often_than_alpha():
    """Twice the larger of two: one part or the other is at most half of it."""
    u, wrong, said_wrong = drawn_sets("false rights at the top", 800, 101, 2)
    hits = 0
    for keys, bad, said in zip(u, wrong, said_wrong, strict=True):
        missed = Evidence.of(keys[:40], ~(bad & ~said)[:40])
        evidence = Evidence(*vars_of(Evidence.of(keys[:-1], ~said[:-1])), missed=missed)
        p_value = evidence.p_value(keys[-1:])[0]
        assert p_value == evidence.p_value_of((keys[-1],))
        hits += bool(bad[-1]) and p_value <= 0.2
    assert hits <= binom.ppf(0.9999, 800, 0.2)
    assert hits > 0


def vars_of(evidence):
    return evidence.levels, evidence.right, evidence.wrong


def exact_chance(allowed, n, checked, seen, missed):
    """P(a ≤ c_b) in whole numbers: checked votes are of three kinds, the others of two."""
    total = Fraction(0)
    for b, most in enumerate(allowed.most.tolist()):
        for own in range(checked - b + 1):
            ways = math.comb(checked, b) * math.comb(checked - b, own)
            first = ways * missed**b * seen**own * (1 - seen - missed) ** (checked - b - own)
            others = n - checked
            for more in range(min(others, most - own) + 1):
                total += first * math.comb(others, more) * seen**more * (1 - seen) ** (others - more)
    return total


@pytest.mark.parametrize(
    ("n", "checked", "alpha", "delta"), [(12, 6, 0.4, 0.3), (15, 15, 0.3, 0.2), (20, 8, 0.35, 0.2)]
)
def test_the_region_keeps_delta_at_every_split_of_a_rate_in_fractions(n, checked, alpha, delta):
    allowed = region(n, checked, alpha, delta)
    assert len(allowed.most)
    assert (np.diff(allowed.most) <= -1).all()
    level = Fraction(str(alpha))
    for part in range(21):
        seen = level * part / 20
        exact = exact_chance(allowed, n, checked, seen, level - seen)
        assert exact <= Fraction(str(delta))
        assert float(exact) <= allowed.chance(alpha) + 1e-12
    # The next larger region of the same kind would not: the check can fail.
    larger = Region(n, checked, np.append(allowed.most + 2, 0))
    assert max(exact_chance(larger, n, checked, level * p / 20, level - level * p / 20) for p in range(21)) > delta


def test_the_rule_of_a_region_is_read_literally():
    """The smallest threshold above which the errors of both kinds are within the region."""
    rng = np.random.default_rng(0)
    guarantee = dm.JudgeHighProbability(0.3, 0.2)
    for _ in range(60):
        n = int(rng.integers(20, 60))
        confidence, kinds = rng.integers(1, 20, n) / 20, rng.choice(4, n, p=[0.7, 0.1, 0.1, 0.1])
        drawn = rng.choice(n, int(rng.integers(15, n)), replace=False)
        policy = calibrated(confidence, kinds, drawn, guarantee)
        checked = np.isin(np.arange(n), drawn)
        seen = (kinds == SEEN) | ((kinds == FALSE_WRONG) & ~checked)
        missed = (kinds == MISSED) & checked
        most = region(n, len(drawn), 0.3, 0.2).most.tolist()

        def within(threshold, seen=seen, missed=missed, most=most, confidence=confidence):
            a, b = (int((bad & (confidence > threshold)).sum()) for bad in (seen, missed))
            return b < len(most) and a <= most[b]

        candidates = [0.0, *np.unique(confidence).tolist(), 1.0]
        expected = next(threshold for threshold in candidates if within(threshold) or threshold == 1.0)
        assert policy.threshold == expected


def test_the_law_of_a_region_bounds_the_errors_of_new_votes():
    n, checked, fresh = 200, 60, 80
    law, rng = RegionLaw(n, checked, 0.1, 0.1), np.random.default_rng(3)
    assert law.counts(fresh).sum() == pytest.approx(1)
    for judge in ("even", "always right", "perfect"):
        errors = rng.binomial(fresh, true_rate(ways(judge, 0.1, 0.1, n=n, checked=checked)["judge and checks"]))
        for count in range(0, fresh + 1, 4):
            assert (errors >= count).mean() <= law.upper_tail(count, fresh) + 0.02
    assert law.upper_tail(25, fresh) < 0.01


def test_a_normal_margin_breaks_where_errors_are_missed_at_the_top():
    """Prediction-powered estimates with a normal limit are no promise at these sizes."""
    u, wrong, said_wrong = drawn_sets("false rights at the top", 2000, 400, 11)
    checked, alpha, violated = 60, 0.05, 0
    for keys, bad, said in zip(u, wrong, said_wrong, strict=True):
        order, own = np.argsort(-keys), np.argsort(-keys[:checked])
        off = (bad[:checked].astype(int) - said[:checked].astype(int))[own]
        place = np.searchsorted(-keys[:checked][own], -keys[order], side="right")
        judged = np.cumsum(said[order]) / len(keys)
        mean, square = (np.append(0, np.cumsum(column))[place] / checked for column in (off, off**2))
        spread = np.sqrt((square - mean**2) / checked + judged * (1 - judged) / len(keys))
        above = judged + mean + 1.2816 * spread > alpha
        violated += true_rate(keys[order][above.argmax()] if above.any() else 0.0) > alpha
    assert violated > binom.ppf(0.9999, len(u), 0.1)
