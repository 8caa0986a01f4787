"""Voted pools: what they are compared with, what is wrong with their score, and what stays with rows that are taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import demur as dm
from demur.errors import CalibrationLeak, InvalidValue
from demur.pools.voted_pools import VotedPools
from demur.records import Path, Pool, Problem

# Answers with their scores. Majority b, a, a, b; best of m a, b, a, b; weighted a, a, a, b.
TABLE = [
    [("a", 3.0), ("b", 0.0), ("b", 0.1)],
    [("a", 1.0), ("a", 1.1), ("b", 1.2)],
    [("a", 0.5), ("a", 0.4), ("a", 0.3)],
    [("b", 2.0), ("b", 1.9), ("a", 0.0)],
]
GOLD = ["a", "a", "c", "b"]


def source(table=TABLE):
    return dm.PoolSource([
        Pool(Problem(f"q{row}", f"Question {row}", (GOLD[row % 4],)), tuple(Path(a, scores={"s": s}) for a, s in pool))
        for row, pool in enumerate(table)
    ])  # fmt: skip


def voted(score="s", **how):
    return dm.vote_pools(source(), dm.FieldChoice(score=score), **how)


def test_the_vote_and_what_it_is_compared_with_by_hand():
    every = voted().accuracies(np.arange(4))
    assert every == {
        "single_path": pytest.approx((1 + 2 + 0 + 2) / 12),
        "majority_vote": 2 / 4,
        "best_of_m": 2 / 4,
        "weighted_vote": 3 / 4,
        "oracle": 3 / 4,
    }
    some = voted().accuracies(np.array([3, 1]))
    assert some == {
        "single_path": pytest.approx(2 / 3),
        "majority_vote": 1.0,
        "best_of_m": 0.5,
        "weighted_vote": 1.0,
        "oracle": 1.0,
    }


def test_without_scores_only_the_majority_is_compared_and_without_labels_nothing():
    assert list(voted(score=None).accuracies(np.arange(4))) == ["single_path", "majority_vote", "oracle"]
    assert voted(labelled=False).accuracies(np.arange(4)) == {}
    arrays = VotedPools.of(dm.vote([["a"], ["b"], ["a"]]), [True, False, True])
    assert arrays.accuracies(np.array([0, 1])) == {"weighted_vote": 0.5}
    assert VotedPools.of(dm.vote([["a"]])).accuracies(np.array([0])) == {}
    with_table_only = replace(voted(), labels=None)
    assert with_table_only.accuracies(np.arange(4)) == {"weighted_vote": 0.75}


def test_rows_that_are_taken_keep_their_labels():
    some = voted().take(np.array([3, 2]))
    assert some.labelled.tolist() == [True, False]
    assert some.accuracies(np.arange(2)) == voted().accuracies(np.array([3, 2]))
    assert voted(labelled=False).take(np.array([0])).labels is None
    assert voted().take(np.array([True, False, False, True])).ids == ["q0", "q3"]


def test_rows_that_cast_a_vote_are_those_with_all_their_scores():
    table = [pool if row != 1 else [("a", 1.0), ("b", None)] for row, pool in enumerate(TABLE)]
    pools = [
        Pool(pool.problem, tuple(Path(p.answer, scores={k: v for k, v in p.scores.items() if v is not None})
                                 for p in pool.paths))
        for pool in source(table).pools
    ]  # fmt: skip
    dropped = dm.vote_pools(dm.PoolSource(pools), dm.FieldChoice(score="s", unscored="drop"))
    assert dropped.voting(np.array([0, 1, 3])).tolist() == [0, 3]
    assert dropped.scored.ids == ["q0", "q2", "q3"]
    whole = voted()
    assert whole.voting(np.array([2, 1])).tolist() == [2, 1]
    assert whole.scored is whole


def flat(flags=None, score="s", spread=0.0):
    """Thirty pools whose score is the same throughout, or nearly."""
    table = [[("a", 0.5 + spread * row), ("b", 0.5), ("a", 0.5 - spread)] for row in range(30)]
    pools = replace(source(table), flags={"s": flags or {}})
    return dm.vote_pools(pools, dm.FieldChoice(score=score))


def test_what_is_wrong_with_a_score_is_told_by_its_name():
    (told,) = flat().score_warnings()
    assert "the score 's' is the same for all paths in 100% of the pools" in told
    assert flat(score=None).score_warnings() == []
    arrays = VotedPools.of(dm.vote([["a", "b"]] * 30, [[0.5, 0.5]] * 30, score="s"), [True] * 30)
    assert arrays.score_warnings() == []  # nothing is known of where these scores come from


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"floor": 19}, True),  # of ninety values
        ({"floor": 18}, False),  # a fifth is not yet many
        ({"floor:top20": 10, "below-floor": 9, "other": 80}, True),
        ({"other": 90}, False),
        ({}, False),
    ],
)
def test_many_values_at_the_floor_of_a_judge_are_told(flags, told):
    warned = [line for line in flat(flags, spread=1.0).score_warnings() if "floors" in line]
    assert warned == ["21% of the values of 's' are floors: the judge's likeliest tokens do not reach down to Y; score "
                      "with an exact route"] * told  # fmt: skip


def test_voted_pools_have_columns_of_their_own():
    ready = voted()
    assert VotedPools.of(ready) is ready
    for extra in ({"correct": [True] * 4}, {"questions": ["Q"] * 4}, {"clusters": ["c"] * 4}):
        with pytest.raises(InvalidValue, match="have labels, questions and clusters of their own"):
            VotedPools.of(ready, **extra)
    with pytest.raises(InvalidValue, match="these pools have no labels; read them with labels, or give correct"):
        _ = voted(labelled=False).labelled


def test_a_leak_is_told_by_the_first_problem_that_leaks():
    votes = dm.vote([["a"]] * 4, ids=list("wxyz"), fitted_on=["z", "x"])
    with pytest.raises(CalibrationLeak, match=r"on 2 of .* \(the first is 'x'\); fit it on a tune split"):
        VotedPools.of(votes, [True] * 4).refuse_fitted()
    VotedPools.of(dm.vote([["a"]] * 4, ids=list("wxyz"), fitted_on=["v"]), [True] * 4).refuse_fitted()


def test_labels_given_as_a_list_are_an_array_from_then_on():
    ready = VotedPools(dm.vote([["a"]] * 3), [True, False, True])
    assert ready.correct.dtype == bool
    assert ready.take(np.array([1, 2])).correct.tolist() == [False, True]


def test_problems_without_names_go_by_their_rows():
    nameless = VotedPools(dm.vote([["a"]] * 100), [True] * 100)
    assert nameless.ids == [str(row) for row in range(100)]
    held_out = nameless.split(hold_out=0.5, seed=0).test.tolist()
    assert len(held_out) == 50
    assert held_out not in (list(range(50)), list(range(50, 100)))  # drawn, not cut off
