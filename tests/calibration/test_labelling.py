"""Labels from the top: the same thresholds as full labels, with fewer of them, and a valid policy after every one."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.calibration.labelling import LabelQueue
from demur.errors import InfeasibleWarning, InvalidValue

GUARANTEES = [  # in a policy's order
    dm.Marginal(0.05), dm.Marginal(0.1), dm.Smoothed(0.1, seed=1), dm.HighProbability(0.3, 0.2), dm.Marginal(0.3),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _small_samples():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        yield


def calibrated(votes, correct, guarantees=GUARANTEES, **how):
    return dm.calibrate(votes, correct, guarantee=guarantees, **how)


def label_from_the_top(queue, right):
    """Follow the queue to its end; the rows it asked about."""
    asked = []
    while (row := queue.next) is not None:
        queue.label(row, right=bool(right[row]))
        asked.append(row)
    return asked


def thresholds(policy):
    return [{size: rule.threshold_of(size) for size in policy.sizes} for rule in policy.points]


pools = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b", None]), min_size=2, max_size=4),
        st.integers(0, 2).map(float),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@given(pools, st.booleans(), st.booleans(), st.booleans())
def test_thresholds_equal_those_of_full_labels(bag, same_size, ties_broken, by_chance):
    answers = [pool[:2] if same_size else pool for pool, _, _ in bag]
    votes = dm.vote(answers, tie_break=np.array([secondary for _, secondary, _ in bag]) if ties_broken else None)
    right = np.array([label for _, _, label in bag]) & votes.has_answer
    queue = LabelQueue(dm.VotedPools.of(votes), GUARANTEES, sizes_by_chance=by_chance)
    full = calibrated(votes, right, sizes_by_chance=by_chance)
    asked = label_from_the_top(queue, right)
    assert len(asked) == len(set(asked))
    part = calibrated(votes, queue.labels(), sizes_by_chance=by_chance, partly_labelled=True)
    assert thresholds(part) == thresholds(full)
    assert all(point.errors_to_find == 0 for point in queue.progress())


@given(pools, st.integers(0, 2**32 - 1))
def test_whatever_is_skipped_undone_or_left_thresholds_are_never_below_those_of_full_labels(bag, seed):
    rng = np.random.default_rng(seed)
    votes = dm.vote([pool for pool, _, _ in bag])
    right = np.array([label for _, _, label in bag]) & votes.has_answer
    queue, full = LabelQueue(dm.VotedPools.of(votes), GUARANTEES), calibrated(votes, right)
    before = None
    while (row := queue.next) is not None and rng.random() < 0.95:
        if rng.random() < 0.2:
            queue.skip(row)
        else:
            queue.label(row, right=bool(right[row]))
        if rng.random() < 0.1:
            queue.take_back(row)
        part = calibrated(votes, queue.labels(), partly_labelled=True)
        for rule, exact, point in zip(part.points, full.points, queue.progress(), strict=True):
            assert all(rule.threshold_of(size) >= exact.threshold_of(size) for size in part.sizes)
            assert point.answered == pytest.approx(sum(rule.answered(part.strata)) / part.n)
        before = part
    assert before is None or before.n == len(bag)


def test_a_vote_that_may_still_lower_a_threshold_is_never_left_unasked():
    """Brute force: at the end, the threshold is the same whichever labels the others have."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(4, 12))
        votes = dm.vote([["a"] * int(rng.integers(1, 4)) + ["b"] * 3 for _ in range(n)])
        right, guarantee = rng.random(n) < 0.6, [dm.Marginal(0.3)]
        queue = LabelQueue(dm.VotedPools.of(votes), guarantee, sizes_by_chance=True)
        asked = label_from_the_top(queue, right)
        found = {
            calibrated(votes, np.where(np.isin(range(n), asked), right, rng.random(n) < 0.5), guarantee,
                       sizes_by_chance=True).points[0].threshold_key
            for _ in range(20)
        }  # fmt: skip
        assert len(found) == 1


def test_labels_of_the_least_confident_votes_buy_nothing():
    data = dm.simulate_pools(300, n_paths=9, seed=2)
    votes = dm.vote(data.answers, data.scores, tie_break=dm.jitter(0), ids=[str(row) for row in range(300)])
    right = votes.answer == data.gold
    order = np.lexsort(votes.key.T[::-1])
    queue = LabelQueue(dm.VotedPools.of(votes), [dm.Marginal(0.1)])
    needed = len(label_from_the_top(queue, right))
    lowest_first = np.full(300, None, dtype=object)
    lowest_first[order[:needed]] = right[order[:needed]]
    top, bottom = (
        dm.calibrate(votes, labels, alpha=0.1, partly_labelled=True).forecast(0.1).answered
        for labels in (queue.labels(), lowest_first)
    )
    assert top > bottom + 0.2
    assert bottom == pytest.approx(29 / 300)  # k − 1 votes, whatever the labels below


def test_clusters_and_duplicates_are_asked_about_once():
    votes = dm.vote([["a", "a"], ["a", "b"], ["b", "b"], ["a", "a"]], ids=list("wxyz"))
    voted = dm.VotedPools.of(votes, clusters=["c", "c", "d", "d"])
    queue = LabelQueue(voted, [dm.Marginal(0.5)])
    assert queue.n == 2
    assert set(queue.rows.tolist()) == set(voted.counted.tolist())


def test_pools_without_a_score_or_an_answer_are_not_asked_about():
    votes = dm.vote([["a", "a"], [None, None], ["b", "b"]])
    queue = LabelQueue(dm.VotedPools.of(votes), [dm.Marginal(0.5)])
    assert 1 not in queue.rows
    assert queue.labels().tolist() == [None, False, None]


def test_a_label_is_given_once_and_only_to_what_is_in_the_queue():
    votes = dm.vote([["a", "a"], [None, None]])
    queue = LabelQueue(dm.VotedPools.of(votes), [dm.Marginal(0.5)])
    queue.skip(0)
    queue.label(0, right=True)
    with pytest.raises(InvalidValue, match="vote 0 has a label already"):
        queue.label(0, right=True)
    with pytest.raises(InvalidValue, match="vote 1 is not in the queue"):
        queue.label(1, right=False)


def test_too_few_votes_need_no_labels():
    queue = LabelQueue(dm.VotedPools.of(dm.vote([["a"]] * 5)), [dm.Marginal(0.05)])
    assert queue.next is None
    assert not queue.progress()[0].feasible


def test_the_estimate_of_labels_to_go_is_of_the_right_size():
    data = dm.simulate_pools(2000, n_paths=9, seed=4)
    votes = dm.vote(data.answers, data.scores, tie_break=dm.jitter(0), ids=[str(row) for row in range(2000)])
    right = votes.answer == data.gold
    queue = LabelQueue(dm.VotedPools.of(votes), [dm.Marginal(0.1)])
    told = []
    while (row := queue.next) is not None:
        told.append(queue.progress()[0].labels_to_go)
        queue.label(row, right=bool(right[row]))
    halfway = len(told) // 2
    assert len(told) / 6 < told[halfway] < 2 * len(told)
    assert told[-1] <= 30


# The promise under label-dependent stopping, without noise: over all ways to hold one vote out of a bag, the average
# loss is at most alpha, whatever made the one who labels stop, skip or doubt.


def labelled_by_whim(keys, wrong, alpha, rng):
    """Labels of votes, from the top, by somebody whose patience and doubts depend on what was found so far."""
    votes = dm.vote([["a"] * int(key) + ["b"] * (8 - int(key)) for key in keys])
    queue = LabelQueue(dm.VotedPools.of(votes), [dm.Marginal(alpha)])
    patience, doubt = int(rng.integers(0, 4)), rng.random()
    while (row := queue.next) is not None and patience >= 0:
        if wrong[row] and rng.random() < doubt:
            queue.skip(row)
        else:
            queue.label(row, right=not wrong[row])
            patience -= int(wrong[row]) - int(rng.random() < 0.3)
    return votes, queue.labels()


def as_wrong(votes, labels, alpha):
    """The real policy."""
    return dm.calibrate(votes, labels, alpha=alpha, partly_labelled=True).threshold


def as_right(votes, labels, alpha):
    return dm.calibrate(votes, np.array([label is not False for label in labels]), alpha=alpha).threshold


def left_out(votes, labels, alpha):
    rows = np.flatnonzero(labels != None)  # noqa: E711
    if not len(rows):
        return 1.0
    return dm.calibrate(votes.take(rows), labels[rows].astype(bool), alpha=alpha).threshold


def worst_excess(threshold_of, trials):
    """The largest amount by which the average held-out loss exceeds alpha, over random bags with ties."""
    rng = np.random.default_rng(8)
    worst, answered = Fraction(-1), 0
    for _ in range(trials):
        size = int(rng.integers(4, 14))
        alpha = float(rng.choice([0.1, 0.2, 0.25, 0.3, 0.5]))
        keys, wrong = rng.integers(5, 9, size), rng.random(size) < 0.5
        losses = 0
        for held in range(size):
            rest = np.arange(size) != held
            votes, labels = labelled_by_whim(keys[rest], wrong[rest], alpha, rng)
            passes = keys[held] / 8 > threshold_of(votes, labels, alpha)
            losses += bool(passes and wrong[held])
            answered += bool(passes)
        worst = max(worst, Fraction(losses, size) - Fraction(str(alpha)))
    return worst, answered


def test_the_promise_survives_stopping_and_skipping_by_what_was_found():
    worst, answered = worst_excess(as_wrong, trials=250)
    assert worst <= 0
    assert answered > 100, "a policy that always abstains would pass too"


@pytest.mark.parametrize("ignoring", [as_right, left_out])
def test_votes_without_a_label_that_are_not_taken_for_wrong_break_it(ignoring):
    assert worst_excess(ignoring, trials=120)[0] > 0


@pytest.mark.real_data
def test_thresholds_equal_those_of_full_labels_on_every_recorded_pool(recorded_pools):
    from results import FILES  # the files, and how each is read

    for recorded in FILES:
        source = dm.read_pools(recorded_pools / f"{recorded.file}.jsonl.gz")
        fields = dm.FieldChoice(recorded.answer_field, missing=recorded.missing, task=recorded.task)
        for tie_break in (None, "jitter:0"):
            voted = dm.vote_pools(source, fields, source.recipe(tie_break=tie_break))
            queue = LabelQueue(voted, GUARANTEES)
            asked = label_from_the_top(queue, voted.labelled)
            part = dm.calibrate(queue.labelled_votes(), guarantee=GUARANTEES, partly_labelled=True)
            full = dm.calibrate(voted, guarantee=GUARANTEES)
            assert thresholds(part) == thresholds(full), recorded.file
            assert len(asked) <= part.n
