"""Batch selection: the cut-off read literally, the promise for every bag of votes in exact fractions, and mutants."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.calibration import Marginal, settle_by_size
from demur.calibration.batch import BatchSelection, cut_off
from demur.evidence.counts import Evidence
from demur.evidence.strata import Strata
from demur.voting.cases import Cases

levels = st.sampled_from([Fraction(1, 10), Fraction(29, 100), Fraction(1, 3), Fraction(1, 2), Fraction(7, 10)])


def literal_cut_off(p_values, level):
    ordered = sorted(p_values)
    passed = [p for r, p in enumerate(ordered, 1) if p * len(ordered) <= level * r]
    return max(passed, default=Fraction(0))


@given(st.integers(1, 30), st.data(), levels)
def test_the_cut_off_is_benjamini_and_hochbergs_in_exact_fractions(n, data, level):
    counts = data.draw(st.lists(st.integers(1, n + 1), min_size=1, max_size=40))
    p_values = [Fraction(count, n + 1) for count in counts]
    found = cut_off(np.array([float(p) for p in p_values]), level, n)
    assert found == literal_cut_off(p_values, level)


def test_equality_passes_where_floats_would_say_otherwise():
    assert 3 * 0.1 / 1 > 0.3  # the mutant's arithmetic
    assert cut_off(np.array([0.3]), Fraction(3, 10), 9) == Fraction(3, 10)
    assert cut_off(np.array([0.29]), Fraction(29, 100), 99) == Fraction(29, 100)
    assert cut_off(np.array([0.3]), Fraction(29, 100), 9) == 0


def cases_of(votes):
    return Cases(np.array([[nu / 8] for nu, _, _ in votes]), np.array([m for *_, m in votes]))


def selected(calibration, batch, level, sizes=None):
    """Which votes of a batch are answered; a vote is a level of confidence, whether it is right, and its size."""
    strata, cases = Strata.of(cases_of(calibration), [ok for _, ok, _ in calibration]), cases_of(batch)
    cut = cut_off(strata.p_value(cases), level, strata.n)
    rule = settle_by_size(BatchSelection(level, cut, len(batch)), strata)
    answered = rule.answers(cases)
    assert answered.tolist() == (strata.p_value(cases) <= float(cut) * (1 + 1e-12)).tolist()
    return answered


def mean_share_wrong(bag, size, level, select=selected):
    """E[wrong / answered] over all ways to draw a batch of this size from the bag, the rest calibrating."""
    shares = []
    for rows in combinations(range(len(bag)), size):
        batch = [bag[row] for row in rows]
        rest = [vote for row, vote in enumerate(bag) if row not in rows]
        given_answers = [ok for (_, ok, _), yes in zip(batch, select(rest, batch, level), strict=True) if yes]
        shares.append(Fraction(given_answers.count(False), max(1, len(given_answers))))
    return sum(shares, Fraction(0)) / len(shares)


one_size = st.lists(st.tuples(st.integers(1, 8), st.booleans(), st.just(4)), min_size=5, max_size=9)
two_sizes = st.lists(st.tuples(st.integers(1, 8), st.booleans(), st.sampled_from([4, 5])), min_size=5, max_size=9)


@settings(max_examples=100)
@given(one_size, st.integers(1, 4), levels)
def test_the_expected_share_of_wrong_answers_is_at_most_q_for_every_bag_of_votes(bag, size, level):
    assert mean_share_wrong(bag, size, level) <= level


@settings(max_examples=100)
@given(two_sizes, st.integers(1, 4), levels)
def test_it_is_where_votes_must_pass_among_their_own_number_of_paths_too(bag, size, level):
    assert mean_share_wrong(bag, size, level) <= level


def without_the_one_more(calibration, batch, level):
    evidence = Evidence.of([nu / 8 for nu, _, _ in calibration], [ok for _, ok, _ in calibration])
    p_values = evidence.wrong_at_least([nu / 8 for nu, _, _ in batch]) / (evidence.n + 1)
    return p_values <= float(literal_cut_off([Fraction(p).limit_denominator(99) for p in p_values], level)) + 1e-12


def strictly_above(calibration, batch, level):
    wrong = [nu for nu, ok, _ in calibration if not ok]
    p_values = [Fraction(1 + sum(other > nu for other in wrong), len(calibration) + 1) for nu, _, _ in batch]
    cut = literal_cut_off(p_values, level)
    return [p <= cut for p in p_values]


def test_p_values_without_the_one_more_or_with_ties_left_out_break_it():
    rng = np.random.default_rng(0)
    broken = {without_the_one_more: 0, strictly_above: 0}
    for _ in range(60):
        bag = [(int(rng.integers(1, 4)), bool(rng.random() < 0.3), 4) for _ in range(8)]
        for mutant in broken:
            broken[mutant] += mean_share_wrong(bag, 2, Fraction(3, 10), mutant) > Fraction(3, 10)
    assert min(broken.values()) > 5


@given(one_size, st.integers(1, 8), levels)
def test_a_batch_of_one_is_the_marginal_guarantee(calibration, nu, level):
    evidence = Evidence.of([c / 8 for c, _, _ in calibration], [ok for _, ok, _ in calibration])
    rule = Marginal(level).settle(evidence)
    assert bool(selected(calibration, [(nu, True, 4)], level)[0]) == (nu / 8 > rule.threshold)


def test_a_batch_of_confident_votes_is_answered_and_one_of_doubtful_votes_is_not():
    calibration = [(8, True, 4)] * 30 + [(3, False, 4)] * 10
    assert selected(calibration, [(8, True, 4)] * 5, Fraction(1, 10)).all()
    assert not selected(calibration, [(3, True, 4)] * 5, Fraction(1, 10)).any()
