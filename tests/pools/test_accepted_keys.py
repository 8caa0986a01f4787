"""Right answers given beside votes on arrays."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue


def test_labels_follow_from_gold_be_it_one_answer_or_several():
    votes = dm.vote([["a", "a", "b"], ["b", "b", None], [None, None, None]])
    assert dm.VotedPools.of(votes, gold=["a", "a", "a"]).correct.tolist() == [True, False, False]
    assert dm.VotedPools.of(votes, gold=["a", ["a", "b"], {"c"}]).correct.tolist() == [True, True, False]
    codes = dm.vote(np.array([[1, 1, 2], [2, 2, -1], [-1, -1, -1]]))
    assert dm.VotedPools.of(codes, gold=np.array([1, 1, 1])).correct.tolist() == [True, False, False]
    assert dm.VotedPools.of(codes, gold=[[1], [1, 2], [0]]).correct.tolist() == [True, True, False]


def test_right_paths_are_the_same_by_array_and_by_list():
    drawn = dm.simulate_pools(50, n_paths=5, seed=1)
    votes, rows = dm.vote(drawn.answers), np.array([4, 2, 33])
    by_array = dm.VotedPools.of(votes, gold=drawn.gold)
    by_list = dm.VotedPools.of(votes, gold=[[right] for right in drawn.gold.tolist()])
    answers = votes.standings(rows).answers
    wanted = drawn.answers[rows] == drawn.gold[rows, None]
    for given in (by_array, by_list, dm.VotedPools.of(votes, gold=drawn.gold.tolist())):
        assert given.knows_right_answers
        assert (given.right_paths(rows, answers) == wanted).all()
        assert (given.take(rows).right_paths(np.arange(3), answers) == wanted).all()


@pytest.mark.parametrize(
    ("gold", "complaint"),
    [
        (["a"], "gold must hold the right answer to each of the 2 problems, got 1"),
        ("ab", "gold must hold the right answer to each of the 2 problems, got 'ab'"),
        (3, "gold must hold the right answer to each of the 2 problems, got 3"),
        (["a", None], "problem 1 has None, which is none"),
        (["a", []], r"problem 1 has \[\], which is none"),
        (["a", float("nan")], "problem 1 has nan, which is none"),
        (np.array([0, -1]), "problem 1 has -1, which is none"),
    ],
)
def test_what_is_no_gold_is_named(gold, complaint):
    with pytest.raises(InvalidValue, match=complaint):
        dm.VotedPools.of(dm.vote([["a"], ["b"]]), gold=gold)


def test_labels_that_gold_does_not_bear_out_are_refused():
    votes = dm.vote([["a"], ["b"]])
    assert dm.VotedPools.of(votes, [True, False], gold=["a", "a"]).correct.tolist() == [True, False]
    with pytest.raises(InvalidValue, match="gold and correct disagree on vote 1; give one of them"):
        dm.VotedPools.of(votes, [True, True], gold=["a", "a"])
    with pytest.raises(InvalidValue, match="give no others"):
        dm.VotedPools.of(dm.VotedPools.of(votes), gold=["a", "a"])
