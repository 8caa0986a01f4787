"""A promise per group: for each group by itself, whatever the others are, where groups overlap too."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demur as dm
from demur.calibration import Grouped, exact_alpha, settle_by_size
from demur.calibration.forecast import forecast, forecast_of_group
from demur.calibration.laws_on import law_on, laws_by_group
from demur.errors import InfeasibleWarning, InvalidValue
from demur.evidence.laws import ErrorLaw, SumLaw, UnionLaw
from demur.evidence.strata import Strata
from demur.voting.cases import Cases, GroupColumn

KINDS = [(), ("a",), ("b",), ("a", "b"), ("c",)]
bags = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.sampled_from(KINDS), st.sampled_from([2, 3])),
    min_size=2,
    max_size=14,
)  # (level, right, groups, paths)


def strata_of(bag, **how):
    cases = cases_of(bag)
    return Strata.of(cases, [right for _, right, *_ in bag], **how)


def cases_of(bag):
    keys = np.array([[level / 4] for level, *_ in bag])
    return Cases(keys, np.array([paths for *_, paths in bag]), GroupColumn.of(groups for *_, groups, _ in bag))


def answers(bag, new, guarantee, **how):
    """Whether a rule settled on the bag answers a new vote."""
    return bool(settle_by_size(guarantee, strata_of(bag, **how)).answers(cases_of([new]))[0])


@settings(max_examples=150)
@given(bags, st.sampled_from([0.2, 0.25, 0.3, 0.5]), st.booleans(), st.sampled_from([1, 3]))
def test_the_average_held_out_loss_is_at_most_alpha_in_each_group(bag, alpha, by_chance, smallest):
    """Leave one out, groups that overlap and pools of two sizes included."""
    guarantee = Grouped(dm.Marginal(alpha), smallest)
    losses = [
        answers(bag[:row] + bag[row + 1 :], new, guarantee, by_chance=by_chance) and not new[1]
        for row, new in enumerate(bag)
    ]
    for name in "abc":
        own = [loss for loss, (*_, groups, _) in zip(losses, bag, strict=True) if name in groups]
        assert Fraction(sum(own), max(len(own), 1)) <= exact_alpha(alpha)
    assert not any(loss for loss, (*_, groups, _) in zip(losses, bag, strict=True) if not groups)


@settings(max_examples=100)
@given(bags, st.sampled_from([0.25, 0.5]))
def test_a_declared_fallback_leaves_the_promise_of_groups_that_are_large_enough(bag, alpha):
    guarantee = Grouped(dm.Marginal(alpha), fallback="pooled")
    losses = [answers(bag[:row] + bag[row + 1 :], new, guarantee) and not new[1] for row, new in enumerate(bag)]
    for name in "abc":
        own = [loss for loss, (*_, groups, _) in zip(losses, bag, strict=True) if name in groups]
        if len(own) > guarantee.n_needed():  # with one left out it still has a threshold of its own
            assert Fraction(sum(own), len(own)) <= exact_alpha(alpha)
    # Of the others: among all questions, those that are answered wrongly by the threshold of all are few enough.
    pooled = [
        answers(bag[:row] + bag[row + 1 :], (level, right, (), paths), guarantee) and not right
        for row, (level, right, _, paths) in enumerate(bag)
    ]
    assert Fraction(sum(pooled), len(bag)) <= exact_alpha(alpha)


def test_one_threshold_for_all_breaks_the_promise_of_a_group():
    """The negative control of the tests above: what a policy without groups does."""
    bag = [(3, row % 3 != 0, ("a",), 2) for row in range(24)] + [(4, True, ("b",), 2)] * 100
    for guarantee, least, most in ((dm.Marginal(0.1), 0.3, 0.4), (Grouped(dm.Marginal(0.1)), 0.0, 0.1)):
        losses = [answers(bag[:row] + bag[row + 1 :], bag[row], guarantee) and not bag[row][1] for row in range(24)]
        assert least <= np.mean(losses) <= most


@settings(max_examples=100)
@given(bags, st.sampled_from([0.1, 0.25, 0.5]))
def test_thresholds_are_those_of_each_group_alone_and_overlapping_groups_take_the_largest(bag, alpha):
    rule = settle_by_size(Grouped(dm.Marginal(alpha)), strata_of(bag, by_chance=True))
    size = bag[0][3]
    alone = {}
    for name in "abc":
        own = [one for one in bag if name in one[2]]
        if len(own) >= dm.Marginal(alpha).n_needed():
            alone[name] = dm.Marginal(alpha).settle(strata_of(own).pooled).threshold_key
            if any(paths == size for *_, paths in own):
                assert rule.threshold_of(size, (name,)) == alone[name]
    if set("ab") <= set(alone) and rule.takes(size, ("a",)) and rule.takes(size, ("b",)):
        assert rule.threshold_of(size, ("a", "b")) == max(alone["a"], alone["b"])
    assert rule.threshold_of(size, ()) == rule.threshold_of(size, ("new",)) == (1.0,)
    assert set(rule.by_group) == set(alone)


def hard_and_easy(rng, n):
    """S11 of the theory: a third of the questions are hard, and their wrong votes are as confident as right ones."""
    hard = rng.random(n) < 0.3
    right = rng.random(n) < np.where(hard, 0.4, 0.95)
    confidence = np.where(hard, rng.beta(6, 2, n), rng.beta(np.where(right, 6, 2), np.where(right, 2, 4)))
    return confidence, right, np.where(hard, "hard", "easy")


def rates(guarantee, sets=400, n=200, fresh=400, seed=11):
    """Mean rates of wrong answers and of answers per group, over calibration sets; standard errors of the first."""
    rng, wrong, answered = np.random.default_rng(seed), {"easy": [], "hard": []}, {"easy": [], "hard": []}
    for _ in range(sets):
        confidence, right, groups = hard_and_easy(rng, n + fresh)
        keys, sizes, names = confidence[:, None], np.full(n + fresh, 8), GroupColumn.of(groups.tolist())
        cases = Cases(keys, sizes, names)
        rule = settle_by_size(guarantee, Strata.of(cases.take(slice(0, n)), right[:n]))
        given_answer = rule.answers(cases.take(slice(n, None)))
        for name in wrong:
            own = groups[n:] == name
            wrong[name].append((given_answer & ~right[n:])[own].mean())
            answered[name].append(given_answer[own].mean())
    errors = {name: np.std(values, ddof=1) / sets**0.5 for name, values in wrong.items()}
    return {name: (np.mean(wrong[name]), np.mean(answered[name]), errors[name]) for name in wrong}


def test_each_group_keeps_the_promise_in_simulation_and_spends_it():
    for name, (error, answered, se) in rates(Grouped(dm.Marginal(0.1))).items():
        assert error <= 0.1 + 3 * se, name
        # Power: what abstains always would pass the line above, and fails here.
        assert answered > (0.1 if name == "hard" else 0.8), name
    assert rates(Grouped(dm.Marginal(0.1)))["hard"][0] > 0.07


def test_the_simulation_shows_that_one_threshold_for_all_violates_on_the_hard_group():
    error, _, se = rates(dm.Marginal(0.1))["hard"]
    assert error > 0.2 + 3 * se


def test_a_high_probability_promise_holds_in_each_group_for_all_but_a_share_delta_of_calibration_sets():
    rng, sets, n, delta = np.random.default_rng(3), 500, 160, 0.2
    guarantee, violations, spent = Grouped(dm.HighProbability(0.2, delta)), 0, []
    for _ in range(sets):
        groups = np.where(rng.random(n) < 0.5, "x", "y")
        confidence, wrong = rng.random(n), rng.random(n) < 0.5
        cases = Cases(confidence[:, None], np.full(n, 4), GroupColumn.of(groups.tolist()))
        rule = settle_by_size(guarantee, Strata.of(cases, ~wrong))
        truth = 0.5 * (1 - rule.threshold_of(4, ("x",))[0])  # P(wrong, ν > λ) in this group
        violations += truth > 0.2
        spent.append(truth)
    assert violations <= delta * sets + 3 * (delta * (1 - delta) * sets) ** 0.5
    assert np.mean(spent) > 0.1


def test_selective_promises_are_kept_per_group_and_refuse_groups_that_overlap():
    rng = np.random.default_rng(0)
    n = 600
    names = rng.choice(["x", "y"], n)
    right = rng.random(n) < np.where(names == "x", 0.97, 0.75)
    cases = Cases(rng.random((n, 1)), np.full(n, 4), GroupColumn.of(names.tolist()))
    rule = settle_by_size(Grouped(dm.Selective(0.1, 0.1)), Strata.of(cases, right))
    for name in "xy":
        own = names == name
        alone = dm.Selective(0.1, 0.1).settle(dm.Evidence.of(cases.keys[own], right[own]))
        assert rule.threshold_of(4, (name,)) == alone.threshold_key
    assert rule.threshold_of(4, ("x",))[0] < 1
    assert rule.threshold_of(4, ("y",))[0] == 1
    assert "several groups" in (rule.refusal(("x", "y")) or "")
    overlapping = Cases(cases.keys, cases.n_paths, GroupColumn.of([("x", "y")] * n))
    with pytest.raises(InvalidValue, match="need not have a smaller rate") as refused:
        settle_by_size(Grouped(dm.Selective(0.1, 0.1)), Strata.of(overlapping, right))
    assert "one group" in refused.value.remedy


def test_a_larger_threshold_can_break_a_selective_promise_which_is_why_overlapping_groups_are_refused():
    """All confident answers of the group are wrong: answering less is answering worse."""
    confidence, right = np.linspace(0.1, 1, 100), np.arange(100) < 90
    rates = [1 - right[confidence > bound].mean() for bound in (0.0, 0.9)]
    assert rates[0] <= 0.1 < rates[1]


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (lambda: Grouped(0.1), "Grouped needs a Marginal"),
        (lambda: Grouped(dm.Marginal(0.1), 0), "smallest must be a number of questions"),
        (lambda: Grouped(dm.Marginal(0.1), True), "smallest must be a number of questions"),
        (lambda: Grouped(dm.Marginal(0.1), fallback="guess"), "fallback must be one of abstain, pooled"),
        (lambda: Grouped(dm.Selective(0.1, 0.1), fallback="pooled"), "says nothing of those given to some of them"),
    ],
)
def test_what_cannot_be_promised_per_group_is_refused(made, complaint):
    with pytest.raises(InvalidValue, match=complaint):
        made()


def test_the_promise_says_what_becomes_of_the_others():
    plain, pooled = Grouped(dm.Marginal(0.1), 20), Grouped(dm.Marginal(0.1), fallback="pooled")
    assert plain.promise(300) == (
        "For each group of at least 20 calibration questions by itself, n being how many it has: on a new question "
        "exchangeable with the n calibration questions, the probability of answering it wrongly is at most 0.1, "
        "averaged over calibration sets. Questions of no group, or of one that has fewer, are not answered."
    )
    assert "of which only this is promised, and not of them by themselves" in pooled.promise(300)
    assert "exchangeable with the 300 calibration questions" in pooled.promise(300)
    assert (plain.name, plain.alpha, plain.n_needed(), pooled.n_needed()) == ("grouped_marginal", 0.1, 20, 9)


def test_errors_of_groups_have_laws_of_their_own_which_add_up():
    rng = np.random.default_rng(4)
    bag = [(int(rng.integers(0, 5)), bool(rng.random() < 0.7), (str(rng.choice(["a", "b"])),), 2) for _ in range(60)]
    strata = strata_of(bag)
    rule = settle_by_size(Grouped(dm.Marginal(0.2)), strata)
    fresh = {(("a",), 2): 10, (("b",), 2): 5, (("new",), 2): 3}
    laws = laws_by_group(rule, strata, fresh)
    assert {name: (law, votes) for name, (law, votes) in laws.items()} == {
        "a": (dm.Marginal(0.2).law(strata.groups["a"]), 10),
        "b": (dm.Marginal(0.2).law(strata.groups["b"]), 5),
        None: (ErrorLaw(0, 0), 3),
    }
    together = law_on(rule, strata, fresh)
    assert isinstance(together, SumLaw)
    assert together.counts(18).sum() == pytest.approx(1)
    assert isinstance(law_on(rule, strata, {(("a", "b"), 2): 4}), UnionLaw)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(4, 9), st.integers(1, 4)), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_union_bound_holds_whatever_the_parts_share(parts, comonotone):
    """Exactly, for parts that are independent and for parts that rise and fall together."""
    laws = [(ErrorLaw(k, n), votes) for k, n, votes in parts]
    fresh = sum(votes for _, votes in laws)
    bound = UnionLaw(tuple(laws))
    if comonotone:
        grid = (np.arange(2000) + 0.5) / 2000
        counts = [np.searchsorted(np.cumsum(law.counts(votes)), grid) for law, votes in laws]
        tails = [(np.sum(counts, axis=0) >= errors).mean() for errors in range(fresh + 1)]
    else:
        tails = [SumLaw(tuple(laws)).upper_tail(errors, fresh) for errors in range(fresh + 1)]
    for errors, tail in enumerate(tails):
        assert tail <= bound.upper_tail(errors, fresh) + 1e-3 * comonotone + 1e-12
    assert bound.counts(fresh).sum() == pytest.approx(1)
    assert (bound.counts(fresh) >= -1e-12).all()


def test_the_union_bound_of_one_part_is_its_own_law():
    law = ErrorLaw(2, 12)
    np.testing.assert_allclose(UnionLaw(((law, 6),)).counts(6), law.counts(6), atol=1e-12)


def test_groups_may_be_large_enough_only_together():
    bag = [(level % 5, level % 4 != 0, (f"g{level % 5}",), 2) for level in range(40)]
    strata = strata_of(bag)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InfeasibleWarning)
        never = settle_by_size(Grouped(dm.Marginal(0.1)), strata)
    assert not never.feasible
    assert "which needs 9 of a group; the largest has 8" in never.too_few
    pooled = settle_by_size(Grouped(dm.Marginal(0.1), fallback="pooled"), strata)
    assert pooled.feasible
    assert pooled.threshold_of(2, ("g1",)) == dm.Marginal(0.1).settle(strata.pooled).threshold_key


def test_groups_that_take_the_threshold_of_all_share_the_one_error_that_set_it():
    rng = np.random.default_rng(5)
    confidence, names = rng.uniform(0.2, 1, 420), [(f"g{row % 14}",) for row in range(420)]
    cases = Cases(confidence[:, None], np.full(420, 2), GroupColumn.of(names))
    strata = Strata.of(cases, rng.uniform(size=420) < confidence)
    plain = forecast(strata.without_groups(), settle_by_size(dm.Marginal(0.02), strata.without_groups()))
    rule = settle_by_size(Grouped(dm.Marginal(0.02), fallback="pooled"), strata)
    expected = forecast(strata, rule)
    assert expected.expected_confident_error == pytest.approx(plain.expected_confident_error, rel=0.05)
    assert expected.unspent_by_ties == plain.unspent_by_ties == 0
    parts = [forecast_of_group(strata, rule, name).expected_confident_error for name in strata.groups]
    assert np.mean(parts) == pytest.approx(plain.expected_confident_error, rel=0.05)
