"""Labels from the top where each group has a promise of its own: each is one more count of errors to fill."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.calibration.labelling import LabelQueue
from demur.errors import InfeasibleWarning, InvalidValue

GUARANTEES = [
    dm.Grouped(dm.Marginal(0.25)), dm.Grouped(dm.Marginal(0.3), 2, "pooled"), dm.Grouped(dm.Smoothed(0.35, seed=3)),
    dm.Marginal(0.25),
]  # fmt: skip
pools = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b", None]), min_size=2, max_size=3),
        st.sampled_from([(), ("x",), ("y",), ("x", "y"), ("z",)]),
        st.booleans(),
    ),
    min_size=2,
    max_size=30,
)


@pytest.fixture(autouse=True)
def _small_samples():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        yield


def votes_of(bag):
    votes = dm.vote([answers for answers, _, _ in bag], groups=["x", *(groups for _, groups, _ in bag[1:])])
    return votes, np.array([right for *_, right in bag]) & votes.has_answer


def thresholds(policy):
    return [
        {stratum: rule.threshold_of(stratum[1], stratum[0]) for stratum in policy.strata.parts}
        for rule in policy.points
    ]


@given(pools, st.booleans(), st.integers(0, 2**32 - 1))
def test_thresholds_of_every_group_equal_those_of_full_labels_and_are_valid_on_the_way(bag, by_chance, seed):
    votes, right = votes_of(bag)
    rng, how = np.random.default_rng(seed), {"guarantee": GUARANTEES, "sizes_by_chance": by_chance}
    queue = LabelQueue(dm.VotedPools.of(votes), GUARANTEES, sizes_by_chance=by_chance)
    full = dm.calibrate(votes, right, **how)
    names = [(rule.alpha, rule.guarantee.name) for rule in full.points]
    while (row := queue.next) is not None:
        queue.label(row, right=bool(right[row]))
        if rng.random() < 0.2:
            part = dm.calibrate(votes, queue.labels(), partly_labelled=True, **how)
            for one, exact in zip(thresholds(part), thresholds(full), strict=True):
                assert all(one[stratum] >= exact[stratum] for stratum in exact)
            told = {(point.alpha, point.guarantee): point.answered for point in queue.progress()}
            for name, rule in zip(names, part.points, strict=True):
                assert told[name] == pytest.approx(sum(rule.answered(part.strata)) / part.n)
    part = dm.calibrate(votes, queue.labels(), partly_labelled=True, **how)
    assert thresholds(part) == thresholds(full)
    assert all(point.errors_to_find == 0 for point in queue.progress())


def test_questions_of_groups_that_are_too_small_need_no_label():
    bag = [(["a", "a"], ("x",), row % 3 == 0) for row in range(12)] + [(["a", "a"], ("rare",), True)] * 2
    votes, right = votes_of(bag)
    queue = LabelQueue(dm.VotedPools.of(votes), [dm.Grouped(dm.Marginal(0.2))])
    asked = []
    while (row := queue.next) is not None:
        queue.label(row, right=bool(right[row]))
        asked.append(row)
    assert asked
    assert max(asked) < 12


def test_without_groups_there_is_nothing_to_label_for():
    with pytest.raises(InvalidValue, match="needs the groups of the questions"):
        LabelQueue(dm.VotedPools.of(dm.vote([["a"]] * 9)), [dm.Grouped(dm.Marginal(0.2))])


def test_a_promise_about_answers_has_no_rank_to_ask_by_in_groups_either():
    votes = dm.vote([["a"]] * 9, groups=["x"] * 9)
    with pytest.raises(InvalidValue, match="asked for by rank, and a promise about the answers given has none"):
        LabelQueue(dm.VotedPools.of(votes), [dm.Grouped(dm.Selective(0.2, 0.2))])


def test_a_promise_about_answers_takes_a_part_of_the_labels_in_each_group():
    data = dm.simulate_pools(400, n_paths=9, seed=4)
    groups = ["x" if row % 2 else "y" for row in range(400)]
    votes = dm.vote(data.answers, tie_break=dm.jitter(0), ids=[str(row) for row in range(400)], groups=groups)
    right, promise = votes.answer == data.gold, dm.Grouped(dm.Selective(0.2, 0.2))
    full = dm.calibrate(votes, right, guarantee=promise)
    labels = np.where(full.decide_votes(votes).answered, right, None)
    part = dm.calibrate(votes, labels, guarantee=promise, partly_labelled=True)
    assert full.decide_votes(votes).answered.any()
    assert (part.decide_votes(votes).answered == full.decide_votes(votes).answered).all()
