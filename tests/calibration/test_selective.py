"""Selective error: the boundary against the exact walk, the promise in exact fractions, and rules that break it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import bdtr

import demur as dm
from demur.calibration.boundary import boundary, fewest_votes
from demur.errors import InfeasibleWarning, InvalidValue
from demur.evidence.counts import Evidence

LEVELS = [
    (30, 0.1, 0.1),
    (60, 0.1, 0.1),
    (40, 0.3, 0.2),
    (25, 0.5, 0.05),
    (50, 0.2, 0.5),
    (20, 0.05, 0.9),
    (30, 0.9, 0.1),
]


def allowed(n, alpha, delta):
    return boundary(n, alpha, delta).allowed(np.arange(n + 1))


def crossing(n, alpha, most):
    """P(S_j ≤ c_j for any j ≤ n), in exact fractions."""
    alive, crossed = {0: Fraction(1)}, Fraction(0)
    for j in range(1, n + 1):
        moved: dict[int, Fraction] = {}
        for s, chance in alive.items():
            moved[s] = moved.get(s, Fraction(0)) + chance * (1 - alpha)
            moved[s + 1] = moved.get(s + 1, Fraction(0)) + chance * alpha
        crossed += sum((chance for s, chance in moved.items() if s <= most[j]), Fraction(0))
        alive = {s: chance for s, chance in moved.items() if s > most[j]}
    return crossed


# --- the boundary ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "alpha", "delta"), LEVELS)
def test_a_walk_at_alpha_crosses_the_boundary_with_at_most_delta_and_almost_that(n, alpha, delta):
    exact = crossing(n, Fraction(str(alpha)), allowed(n, alpha, delta))
    assert exact <= Fraction(str(delta))
    assert float(exact) == pytest.approx(boundary(n, alpha, delta).spent, rel=1e-9)
    assert exact >= Fraction(3, 4) * Fraction(str(delta))  # one that never answers spends nothing


def test_ranks_that_are_passed_over_add_nothing():
    found = boundary(350, 0.1, 0.1)
    assert len(found.looks) < 250
    assert float(crossing(350, Fraction(1, 10), allowed(350, 0.1, 0.1))) == pytest.approx(found.spent, rel=1e-9)


def test_the_boundary_by_enumeration_of_all_labels():
    n, alpha, delta = 10, Fraction(2, 5), Fraction(3, 10)
    most = allowed(n, 0.4, 0.3)
    total = Fraction(0)
    for labels in product((0, 1), repeat=n):
        if any(sum(labels[:j]) <= most[j] for j in range(1, n + 1)):
            total += alpha ** sum(labels) * (1 - alpha) ** (n - sum(labels))
    assert delta / 2 < total <= delta


@pytest.mark.parametrize(("n", "alpha", "delta"), LEVELS)
def test_the_boundary_rises_by_no_more_than_one_error_per_vote(n, alpha, delta):
    """What the proof asks of it: another right vote never hurts, another wrong vote never helps."""
    assert set(np.diff(allowed(n, alpha, delta)).tolist()) <= {0, 1}


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.29, 0.5, 0.9])
@pytest.mark.parametrize("delta", [0.001, 0.05, 0.1, 0.5, 0.99])
def test_the_n_that_is_needed_is_the_first_at_which_anything_is_allowed(alpha, delta):
    needed = dm.Selective(alpha, delta).n_needed()
    assert needed == fewest_votes(alpha, delta)
    assert allowed(needed, alpha, delta)[-1] >= 0
    assert needed == 1 or (allowed(needed - 1, alpha, delta) == -1).all()


# --- the promise -------------------------------------------------------------------------------------------------


def threshold_level(wrong_above, votes_above, most):
    """The definition read literally: the lowest level down to which errors are within the boundary; None for none."""
    within = [at for at, (e, j) in enumerate(zip(wrong_above, votes_above, strict=True)) if j and e <= most[j]]
    return max(within, default=None)


def exact_violation(population, n, alpha, most):
    """P(the rate among answers exceeds α), over all calibration sets of n from levels of (chance, rate of errors).

    Levels are the most confident first. Each calibration set is a composition of n over the cells right and wrong of
    each level.
    """
    cells = [share for chance, rate in population for share in (chance * (1 - rate), chance * rate)]
    rates, mass, errors = [], Fraction(0), Fraction(0)
    for chance, rate in population:
        mass, errors = mass + chance, errors + chance * rate
        rates.append(errors / mass)
    violated, answered = Fraction(0), Fraction(0)
    for counts in compositions(n, len(cells)):
        chance = Fraction(factorial(n))
        for share, count in zip(cells, counts, strict=True):
            chance *= share**count / factorial(count)
        wrong, votes = np.cumsum(counts[1::2]), np.cumsum(np.add(counts[0::2], counts[1::2]))
        at = threshold_level(wrong.tolist(), votes.tolist(), most)
        if at is not None:
            answered += chance
            violated += chance * (rates[at] > alpha)
    return violated, answered


def compositions(n, cells):
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, cells - 1):
            yield (first, *rest)


ALPHA, DELTA = Fraction(2, 5), Fraction(3, 10)
shares = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 10)), min_size=3, max_size=3)


def population_of(levels):
    total = sum(weight for weight, _ in levels)
    return [(Fraction(weight, total), Fraction(rate, 10)) for weight, rate in levels]


@settings(max_examples=40)
@given(shares)
def test_the_promise_holds_exactly_whatever_the_law_of_errors(levels):
    """Rates among answers that fall, rise or do both as more is answered; all calibration sets of eight votes."""
    violated, _ = exact_violation(population_of(levels), 8, ALPHA, allowed(8, 0.4, 0.3))
    assert violated <= DELTA


def test_always_right_is_always_answered():
    always_right = [(Fraction(1, 3), Fraction(0))] * 3
    assert exact_violation(always_right, 8, ALPHA, allowed(8, 0.4, 0.3)) == (0, 1)


def test_accuracy_chosen_on_labels_and_clopper_pearson_at_the_best_threshold_break_it():
    """No ties, and confidence says nothing: each vote is wrong with a chance just above α."""
    n, just_above, delta = 100, Fraction(1001, 10000), Fraction(1, 10)
    plug_in = [-1, *(j // 10 for j in range(1, n + 1))]
    pointwise = [max((e for e in range(j + 1) if bdtr(e, j, 0.1) <= 0.1), default=-1) for j in range(n + 1)]
    assert delta / 2 < crossing(n, just_above, allowed(n, 0.1, 0.1)) <= delta
    assert crossing(n, just_above, pointwise) > 2 * delta
    assert crossing(n, just_above, plug_in) > 9 * delta


votes = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2), st.booleans()), min_size=1, max_size=60)


@given(votes, st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.1, 0.5]))
def test_the_threshold_is_the_definition_read_literally(table, alpha, delta):
    keys, right = [(nu / 8, float(s)) for nu, s, _ in table], [not wrong for _, _, wrong in table]
    rule = dm.Selective(alpha, delta).settle(Evidence.of(keys, right))
    most = allowed(len(table), alpha, delta)
    best = 0
    for cut in {key for key in keys if key[0] > 0}:
        above = [is_right for key, is_right in zip(keys, right, strict=True) if key >= cut]
        if above.count(False) <= most[len(above)]:
            best = max(best, len(above))
    assert sum(key > rule.threshold_key for key in keys if key[0] > 0) == best
    assert not any(key > rule.threshold_key for key in keys if key[0] == 0)


def draws(rng, sets, n, rate_at):
    """Confidences ~ U(0, 1), wrong with a chance that depends on them."""
    confidence = rng.random((sets, n))
    return confidence, rng.random((sets, n)) < rate_at(confidence)


def settled(guarantee, confidence, wrong):
    return np.array([guarantee.settle(Evidence.of(c, ~w)).threshold for c, w in zip(confidence, wrong, strict=True)])


def at_best(confidence, wrong, most):
    """The smallest threshold above which calibration errors are within `most`, of each set; 1 for none."""
    thresholds = []
    for c, w in zip(confidence, wrong, strict=True):
        order = np.argsort(-c)
        within = np.flatnonzero(np.cumsum(w[order]) <= most[1:])
        down_to = within[-1] + 1 if len(within) else 0
        thresholds.append(1.0 if not down_to else 0.0 if down_to == len(c) else c[order[down_to]])
    return np.array(thresholds)


SETS, N = 2000, 200
TOO_MANY = int(stats.binom.isf(1e-6, SETS, 0.1))
"""Violations in so many sets that a rate of δ = 0.1 would hardly ever show more."""


def test_violations_are_at_most_delta_and_the_rules_of_others_have_more():
    """Confidence says nothing, and a little over α is wrong: whoever answers at all violates."""
    confidence, wrong = draws(np.random.default_rng(0), SETS, N, lambda c: np.full_like(c, 0.1001))
    ours = settled(dm.Selective(0.1, 0.1), confidence, wrong)
    assert (ours < 1).sum() <= TOO_MANY
    assert (ours < 1).sum() > 100  # it answers where it may
    pointwise = np.array([-1] + [stats.binom.ppf(0.1, j, 0.1) - 1 for j in range(1, N + 1)])
    assert (at_best(confidence, wrong, pointwise) < 1).sum() > 2 * TOO_MANY
    plug_in = np.floor(0.1 * np.arange(N + 1) + 1e-9)
    assert (at_best(confidence, wrong, plug_in) < 1).sum() > 3 * TOO_MANY


def test_it_answers_most_of_what_can_be_answered_where_confidence_says_something():
    """Wrong with chance 0.4·(1 − ν): the rate above λ is 0.2·(1 − λ), so that λ = 0.5 is the best there is at 0.1."""
    confidence, wrong = draws(np.random.default_rng(1), 400, 500, lambda c: 0.4 * (1 - c))
    thresholds = settled(dm.Selective(0.1, 0.1), confidence, wrong)
    assert (1 - thresholds).mean() > 0.2
    assert (thresholds < 0.5).mean() <= stats.binom.isf(1e-6, 400, 0.1) / 400


def test_a_rate_that_falls_as_more_is_answered_is_no_harm():
    """The most confident tenth is wrong three times in ten, the rest seldom: tests in order from there stop there."""
    confidence, wrong = draws(np.random.default_rng(2), 300, 300, lambda c: np.where(c > 0.9, 0.3, 0.02))
    thresholds = settled(dm.Selective(0.1, 0.1), confidence, wrong)
    answered = np.minimum(1 - thresholds, 0.1)
    wrong_share = 0.3 * answered + 0.02 * (1 - thresholds - answered)
    assert (wrong_share > 0.1 * (1 - thresholds)).sum() <= stats.binom.isf(1e-6, 300, 0.1)
    assert (thresholds < 0.2).mean() > 0.8


# --- edges -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, "nothing", float("nan")])
@pytest.mark.parametrize("name", ["alpha", "delta"])
def test_levels_outside_of_0_and_1_are_refused_by_name(name, value):
    with pytest.raises(InvalidValue, match=name):
        dm.Selective(**{"alpha": 0.1, "delta": 0.1, name: value})


def test_all_right_votes_are_all_answered_and_one_too_few_are_not():
    guarantee = dm.Selective(0.1, 0.1)
    assert guarantee.n_needed() == 22
    enough = guarantee.settle(Evidence.of(np.linspace(0.5, 1, 22), np.ones(22, bool)))
    assert (enough.threshold, enough.feasible, enough.told) == (0.0, True, "always answers")
    few = guarantee.settle(Evidence.of(np.linspace(0.5, 1, 21), np.ones(21, bool)))
    assert (few.threshold, few.feasible) == (1.0, False)
    assert "21 calibration questions are too few" in few.too_few
    assert "needs 22" in few.too_few


def test_one_vote_more_or_less_confident_changes_nothing_but_its_place():
    evidence = Evidence.of([0.9] * 50 + [0.4] * 50, [True] * 50 + [False] * 50)
    rule = dm.Selective(0.1, 0.1).settle(evidence)
    assert rule.threshold == 0.4
    assert rule.answered(evidence) == (50, 0)
    assert dm.Selective(0.1, 0.1).settle(Evidence.of([0.9] * 50, [False] * 50)).never_answers


@pytest.mark.parametrize(
    ("alpha", "delta"), [(1e-9, 0.1), (0.999999, 0.1), (0.1, 1e-12), (0.1, 0.9999999), (1e-40, 0.5)]
)
def test_extreme_levels_settle(alpha, delta):
    rule = dm.Selective(alpha, delta).settle(Evidence.of(np.linspace(0.1, 1, 300), np.arange(300) % 3 > 0))
    assert 0 <= rule.threshold <= 1
    assert boundary(300, alpha, delta).spent <= delta


def test_what_floats_or_memory_cannot_hold_is_refused():
    with pytest.raises(InvalidValue, match="too close to 1"):
        dm.Selective(1 - Fraction(1, 10**30), 0.1)
    with pytest.raises(InvalidValue, match="up to 10,000,000 calibration votes"):
        boundary(10**15, 0.1, 0.1)
    assert boundary(10**7, 0.1, 0.1).spent <= 0.1


def test_levels_stay_exact():
    third = dm.Selective("1/3", Fraction(1, 7))
    assert third.parameters() == {"alpha": "1/3", "delta": "1/7"}
    assert third == dm.Selective(Fraction(1, 3), "1/7")
    assert "at most a share 1/3 is wrong" in third.promise(50)
    assert "one question of each new cluster" in third.promise(50, "cluster")


def test_too_few_votes_warn_and_strict_raises():
    pools = dm.simulate_pools(15, seed=1)
    votes = dm.vote(pools.answers)
    with pytest.warns(InfeasibleWarning, match="selective"):
        policy = dm.calibrate(votes, votes.answer == pools.gold, guarantee=dm.Selective(0.1, 0.1))
    assert not policy.feasible
