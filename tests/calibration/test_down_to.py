"""Labels that end at a key fixed beforehand: batches keep their promise for every bag, and other ends break it.

And promises about the answers given, which stand on any part of the labels.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import factorial, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demur as dm
from demur.calibration import settle_by_size
from demur.calibration.batch import BatchSelection, cut_off
from demur.calibration.boundary import boundary
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, exceeds
from demur.evidence.strata import Strata
from demur.voting.cases import Cases

levels = st.sampled_from([Fraction(1, 10), Fraction(29, 100), Fraction(1, 3), Fraction(1, 2), Fraction(7, 10)])
bags = st.lists(st.tuples(st.integers(1, 8), st.booleans(), st.sampled_from([4, 5])), min_size=5, max_size=9)
shares = st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20)


def cases_of(votes):
    return Cases(np.array([[nu / 8] for nu, _, _ in votes]), np.array([m for *_, m in votes]))


def selected(calibration, batch, level, known):
    """Which votes of a batch are answered; a vote is a level of confidence, whether it is right, and its size."""
    right = np.array([ok for _, ok, _ in calibration])
    strata, cases = Strata.of(cases_of(calibration), right & known, known), cases_of(batch)
    cut = cut_off(strata.p_value(cases), level, strata.n)
    return settle_by_size(BatchSelection(level, cut, len(batch)), strata).answers(cases)


def mean_share_wrong(bag, size, level, known_of):
    """E[wrong / answered] over all ways to draw a batch of this size from the bag, the rest calibrating."""
    found = []
    for rows in combinations(range(len(bag)), size):
        batch = [bag[row] for row in rows]
        rest = [vote for row, vote in enumerate(bag) if row not in rows]
        answered = selected(rest, batch, level, known_of(rest))
        given_answers = [ok for (_, ok, _), yes in zip(batch, answered, strict=True) if yes]
        found.append(Fraction(given_answers.count(False), max(1, len(given_answers))))
    return sum(found, Fraction(0)) / len(found)


def above(down_to):
    """Labels of all votes above the key, and of no others."""

    def known(votes):
        keys = cases_of(votes).keys
        return exceeds(keys, down_to.key(keys))

    return known


# --- batches -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(bags, st.integers(1, 4), levels, st.integers(0, 7))
def test_a_batch_keeps_its_promise_where_labels_go_down_to_a_confidence(bag, size, level, confidence):
    assert mean_share_wrong(bag, size, level, above(dm.DownTo(confidence / 8))) <= level


@settings(max_examples=100)
@given(bags, st.integers(1, 4), levels, shares)
def test_it_does_where_they_go_through_the_most_confident_share_of_the_votes(bag, size, level, share):
    """The key is then a calibration vote's, and is not the same where another vote is in the batch."""
    assert mean_share_wrong(bag, size, level, above(dm.DownTo(share=share))) <= level


def unless_the_first_is_right(votes):
    """Labels of all votes, or of the most confident alone, if that is right: the labels decide where they end."""
    top = max(range(len(votes)), key=lambda row: votes[row][0])
    return np.array([not votes[top][1] or row == top for row in range(len(votes))])


def test_labels_that_decide_where_they_end_break_it():
    bag = [(8 - at, ok, 4) for at, ok in enumerate([False, True, True, False, True, True, False])]
    assert mean_share_wrong(bag, 2, Fraction(1, 3), unless_the_first_is_right) > Fraction(1, 3) * Fraction(11, 10)
    for confidence in range(8):
        assert mean_share_wrong(bag, 2, Fraction(1, 3), above(dm.DownTo(confidence / 8))) <= Fraction(1, 3)
    assert mean_share_wrong(bag, 2, Fraction(1, 3), above(dm.DownTo(confidence=0))) == Fraction(1, 3)  # not for nothing


def drawn(rng, n):
    """Confidences ~ U(0, 1), wrong with chance 0.5·(1 − ν)."""
    confidence = rng.random(n)
    return confidence, rng.random(n) >= 0.5 * (1 - confidence)


def test_in_simulations_the_share_wrong_is_at_most_q_and_is_that_of_full_labels():
    rng, q = np.random.default_rng(0), Fraction(1, 10)
    found, answered = {"down to": [], "all": []}, []
    for _ in range(300):
        (keys, right), (new, truth) = drawn(rng, 200), drawn(rng, 300)
        known = exceeds(keys[:, None], dm.DownTo(0.4).key(keys[:, None]))
        for name, labels in (("down to", known), ("all", None)):
            evidence = Evidence.of(keys, right, labels)
            p_values = evidence.p_value(new)
            chosen = p_values <= float(cut_off(p_values, q, 200)) + 1e-12
            found[name].append((chosen & ~truth).sum() / max(1, chosen.sum()))
        answered.append(chosen.mean())
    error = np.std(found["down to"], ddof=1) / np.sqrt(300)
    assert np.mean(found["down to"]) <= 0.1 + 4 * error
    assert np.mean(found["down to"]) > 0.07  # one that abstains makes no errors
    assert np.mean(answered) > 0.3
    assert np.mean(found["down to"]) == pytest.approx(np.mean(found["all"]), abs=0.02)


# --- where labels end --------------------------------------------------------------------------------------------


keyed = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)


@given(keyed, shares)
def test_a_share_is_of_all_votes_rounded_up_and_equal_votes_are_together(table, share):
    keys = np.array([(nu / 4, float(tie)) for nu, tie in table])
    over = exceeds(keys, dm.DownTo(share=share).key(keys))
    wanted = -(-share.numerator * len(table) // share.denominator)
    last = sorted(map(tuple, keys.tolist()), reverse=True)[wanted - 1]
    expected = [tuple(key) >= last and key[0] > 0 for key in keys.tolist()]
    assert over.tolist() == expected


def test_a_confidence_is_exceeded_whatever_breaks_its_ties():
    keys = np.array([(0.5, 9.0), (0.75, -inf), (0.75, 1.0)])
    assert dm.DownTo(0.5).key(keys) == (0.5, inf)
    assert exceeds(keys, dm.DownTo(0.5).key(keys)).tolist() == [False, True, True]


def test_it_is_written_as_people_do_and_read_back():
    assert dm.DownTo.of("0.8") == dm.DownTo(confidence=0.8)
    assert dm.DownTo.of("12.5%") == dm.DownTo(share=Fraction(1, 8))
    for end in (dm.DownTo(0.8), dm.DownTo(0), dm.DownTo(share="1/3"), dm.DownTo(share=0.4)):
        assert dm.DownTo.of_document(end.document()) == end
    assert [str(dm.DownTo.of(text)) for text in ("0.8", "40%", "12.5%")] == ["0.8", "40%", "12.5%"]


@pytest.mark.parametrize("text", ["", "%", "-0.1", "1", "1.0", "0%", "100%", "nan", "inf", "0.5 %", "1e-3", "half"])
def test_what_is_neither_a_confidence_nor_a_share_is_refused(text):
    with pytest.raises(InvalidValue):
        dm.DownTo.of(text)


@pytest.mark.parametrize("given_", [{}, {"confidence": 0.5, "share": 0.5}, {"confidence": True}, {"share": 1}])
def test_one_of_the_two_is_said(given_):
    with pytest.raises(InvalidValue):
        dm.DownTo(**given_)


def test_the_queue_asks_about_all_votes_above_the_key_and_no_others():
    data = dm.simulate_pools(120, n_paths=7, seed=3)
    votes = dm.vote(data.answers, tie_break=dm.jitter(0), ids=[str(row) for row in range(120)])
    right = votes.answer == data.gold
    queue = dm.LabelQueue(dm.VotedPools.of(votes), [dm.Marginal(0.05)], down_to=dm.DownTo(share=0.75))
    asked = []
    while (row := queue.next) is not None:
        queue.label(row, right=bool(right[row]))
        asked.append(row)
    order = np.lexsort(votes.key.T[::-1])[::-1]
    assert asked == order[:90].tolist()
    with pytest.raises(InvalidValue, match="not in the queue"):
        queue.label(int(order[90]), right=True)
    labelled = queue.labelled_votes()
    assert labelled.down_to == tuple(votes.key[order[90]].tolist())
    policy = dm.calibrate(labelled, alpha=0.05, partly_labelled=True)
    assert policy.down_to == labelled.down_to
    assert queue.progress()[0].answered == pytest.approx(policy.forecast(0.05).answered)


# --- promises about the answers given ----------------------------------------------------------------------------

ALPHA, DELTA, N = Fraction(2, 5), Fraction(3, 10), 8


def compositions(n, cells):
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, cells - 1):
            yield (first, *rest)


def worst_violation(population):
    """P(some choice of labels leads to a threshold whose rate exceeds α), over all calibration sets.

    Whoever chooses labels gets no threshold but one that full labels leave within the boundary.
    """
    cells = [share for chance, rate in population for share in (chance * (1 - rate), chance * rate)]
    most, violated, mass, errors, rates = boundary(N, 0.4, 0.3).allowed(np.arange(N + 1)), Fraction(0), 0, 0, []
    for chance, rate in population:
        mass, errors = mass + chance, errors + chance * rate
        rates.append(errors / mass)
    for counts in compositions(N, len(cells)):
        chance = Fraction(factorial(N))
        for share, count in zip(cells, counts, strict=True):
            chance *= share**count / factorial(count)
        wrong, votes = np.cumsum(counts[1::2]), np.cumsum(np.add(counts[0::2], counts[1::2]))
        within = [rate > ALPHA for rate, e, j in zip(rates, wrong, votes, strict=True) if j and e <= most[j]]
        violated += chance * any(within)
    return violated


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 10)), min_size=3, max_size=3))
def test_no_choice_of_labels_breaks_a_promise_about_answers(table):
    total = sum(weight for weight, _ in table)
    assert worst_violation([(Fraction(weight, total), Fraction(rate, 10)) for weight, rate in table]) <= DELTA


votes_in_part = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(votes_in_part, st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.1, 0.5]))
def test_whichever_votes_have_a_label_the_threshold_is_one_that_full_labels_leave_within_the_boundary(table, a, d):
    keys, right = np.array([nu / 8 for nu, *_ in table]), np.array([ok for _, ok, _ in table])
    known = np.array([there for *_, there in table])
    rule = dm.Selective(a, d).settle(Evidence.of(keys, right, known))
    over = keys > rule.threshold
    if over.any():
        assert int((over & ~right).sum()) <= boundary(len(table), a, d).allowed(np.array([over.sum()]))[0]
    assert rule.threshold >= dm.Selective(a, d).settle(Evidence.of(keys, right)).threshold


def test_labels_of_what_is_answered_are_enough_and_taking_the_others_for_right_breaks_the_promise():
    """A little over α is wrong whatever the confidence: whoever answers at all violates."""
    rng, guarantee, violated, naive = np.random.default_rng(0), dm.Selective(0.1, 0.1), 0, 0
    for _ in range(500):
        keys, right = rng.random(200), rng.random(200) >= 0.101
        known = right | (rng.random(200) < 0.5)  # half of the wrong ones are not looked at
        violated += not guarantee.settle(Evidence.of(keys, right, known)).never_answers
        naive += not guarantee.settle(Evidence.of(keys, right | ~known)).never_answers
    assert violated <= 86  # P(Bin(500, 0.1) > 86) < 1e-6
    assert naive > 250
    keys, right = drawn(rng, 400)
    full = dm.Selective(0.2, 0.1).settle(Evidence.of(keys, right))
    top = dm.Selective(0.2, 0.1).settle(Evidence.of(keys, right, keys > full.threshold))
    assert full.threshold_key == top.threshold_key
    assert (keys > full.threshold).mean() > 0.1
