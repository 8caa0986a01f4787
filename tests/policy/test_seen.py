"""Problems that a policy has seen, and whatever belongs with them, are never taken for new ones."""

from __future__ import annotations

import pytest

import demur as dm
from demur.policy.seen import Seen
from demur.pools.voted_pools import VotedPools
from demur.records import Path, Pool, Problem, question_digest


def test_what_belongs_with_a_seen_problem_is_not_new_either():
    votes = dm.vote([["a", "a"]] * 5, ids=list("abcde"))
    voted = VotedPools.of(votes, [True] * 5, clusters=["one", "one", "two", None, None])
    assert voted.seen_by(Seen(ids=frozenset("a"))).tolist() == [True, True, False, False, False]
    asked = VotedPools.of(votes, [True] * 5, questions=["Why?", "How?", " Why? ", None, ""])
    assert asked.seen_by(Seen(ids=frozenset("a"))).tolist() == [True, False, True, False, False]
    chained = VotedPools.of(
        votes, [True] * 5, questions=["Why?", None, "Why?", None, None], clusters=[None, "x", "x", None, "y"]
    )
    assert chained.seen_by(Seen(ids=frozenset("a"))).tolist() == [True, True, True, False, False]


def test_an_audit_leaves_out_the_mates_of_problems_that_calibrated():
    ids = [f"q{row}" for row in range(60)]
    policy = dm.calibrate(dm.vote([["a", "a"]] * 60, ids=ids), [True] * 60, alpha=0.1, hold_out=0.5)
    names = [*ids, *(f"mate of {name}" for name in ids), "stranger"]
    pairs = [*range(60), *range(60), "alone"]
    audit = dm.audit_policy(
        policy, dm.vote([["a", "a"]] * 121, ids=names), [True] * 121, clusters=[f"pair {pair}" for pair in pairs]
    )
    assert (audit.n, audit.left_out) == (31, 60)


def test_problems_that_nothing_names_cannot_be_kept_back_for_an_audit():
    """An audit could not tell them from those that calibrated, and would take all for new ones."""
    votes, right, questions = dm.vote([["a", "a"]] * 60), [True] * 60, [f"Why {row}?" for row in range(60)]
    for column in ({}, {"questions": [None, *questions[1:]]}, {"clusters": ["", None] * 30}):
        with pytest.raises(dm.DemurError, match=r"without names cannot be kept back.*vote with ids"):
            dm.calibrate(votes, right, alpha=0.1, hold_out=0.5, **column)
    policy = dm.calibrate(votes, right, alpha=0.1, hold_out=0.5, questions=questions)
    assert dm.audit_policy(policy, votes, right, questions=questions).left_out == 30


def test_problems_of_the_same_text_with_other_options_are_other_problems():
    def pool(name, options):
        return Pool(Problem(name, "Which is prime?", ("A",), extra={"options": options}), (Path("A"), Path("A")))

    source = dm.PoolSource([pool(f"q{row}", [str(row), str(row + 1)]) for row in range(40)])
    voted = dm.vote_pools(source)
    assert len(voted.counted) == 40
    policy = dm.calibrate(voted, alpha=0.1)
    assert (policy.n, policy.unit) == (40, "question")
    fresh = dm.vote_pools(dm.PoolSource([pool("new", ["3", "4"]), pool("newer", ["4", "3"])]))
    assert fresh.seen_by(policy.seen).tolist() == [True, False]  # the first has the options of q3
    assert question_digest("Which is prime?") not in policy.seen.questions


def test_columns_that_do_not_belong_together_are_not_compared_in_part():
    """Cut to the shorter of two, the problems at the end would pass unseen."""
    votes = dm.vote([["a", "a"]] * 30, ids=[f"q{row}" for row in range(30)])
    policy = dm.calibrate(votes, [True] * 30, alpha=0.1)
    for columns in ({"questions": ["New?"]}, {"clusters": ["c"]}):
        with pytest.raises(ValueError, match="one entry per problem, 2 of them, got 1"):
            policy.refuse_seen(["new", "q3"], **columns)
