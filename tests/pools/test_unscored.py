"""Pools with a path that has no score: refused with a count, left out by name, or filled by declaration."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.records import Path, Pool, Problem


def pools(n=40, lacking=(3, 7), start=0):
    """Pools of two paths, the better scored of which is right; in some the other has no score."""
    made = []
    for row in range(start, start + n):
        scores = ({"judge": 1 + row / 100}, {} if row - start in lacking else {"judge": row / 100})
        paths = (Path("a", scores=scores[0]), Path("b", scores=scores[1]))
        made.append(Pool(Problem(f"q{row}", f"Question {row}", ("a",)), paths))
    return dm.PoolSource(made)


def test_a_file_with_unscored_paths_is_refused_with_a_count_and_two_ways_out():
    with pytest.raises(
        PoolFileError, match=r"2 of 40 pools lack the score 'judge' in some path: 'q3', 'q7'"
    ) as refused:
        dm.vote_pools(pools(), dm.FieldChoice(score="judge"))
    assert "unscored=drop" in str(refused.value)
    assert "unscored=VALUE" in str(refused.value)


def test_dropped_pools_are_left_out_of_calibration_counted_and_part_of_the_policy(tmp_path):
    said = []
    voted = dm.vote_pools(pools(), dm.FieldChoice(score="judge", unscored="drop"), say=said.append)
    assert voted.table.comparison() == "Answers are compared by auto@2: 80 phrases."
    assert said == ["note: 2 of 40 pools have a path without the score 'judge', and cast no vote"]
    policy = dm.calibrate(voted, alpha=0.1)
    assert (policy.n, policy.unscored) == (38, 2)
    assert policy.pipeline["score"]["unscored"] == "drop"
    assert (
        policy.fingerprint
        != dm.calibrate(dm.vote_pools(pools(lacking=()), dm.FieldChoice(score="judge")), alpha=0.1).fingerprint
    )
    policy.save(tmp_path / "p.json")
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert loaded.unscored == 2
    used = loaded.vote(pools(10, lacking=(4,), start=100))
    decisions = loaded.decide_votes(used.votes)
    assert decisions.answered.tolist() == [row != 4 for row in range(10)]
    assert decisions.unscored.tolist() == [row == 4 for row in range(10)]
    assert "a path of this pool has no score" in decisions[4].explanation
    assert decisions.notes() == ["1 pools have a path without a score: not answered"]


def test_in_an_audit_dropped_pools_are_abstentions():
    policy = dm.calibrate(dm.vote_pools(pools(), dm.FieldChoice(score="judge", unscored="drop")), alpha=0.1)
    audit = dm.audit_policy(policy, policy.vote(pools(10, lacking=(4, 5), start=100), labelled=True))
    assert (audit.n, audit[0].answered) == (10, 0.8)


def test_evaluation_leaves_dropped_pools_out():
    voted = dm.vote_pools(pools(), dm.FieldChoice(score="judge", unscored="drop"))
    assert dm.evaluate(voted, alpha=0.1).n == 38
    assert dm.evaluate(voted, alpha=0.1).accuracy["weighted_vote"] == 1.0


def test_a_declared_fill_stands_in_for_the_score_in_calibration_and_in_use():
    filled = dm.FieldChoice(score="judge", unscored=5.0)
    policy = dm.calibrate(dm.vote_pools(pools(), filled), alpha=0.2)
    assert (policy.n, policy.unscored, policy.pipeline["score"]["unscored"]) == (40, 0, 5.0)
    assert policy.evidence.n_wrong == 2  # the fill outvotes the right path
    used = policy.vote(pools(3, lacking=(1,), start=100))
    assert used.votes.answer.tolist() == ["a", "b", "a"]
    assert policy.decide(["a", "b"], [1.0, None]).shares == policy.decide(["a", "b"], [1.0, 5.0]).shares


def test_one_pool_at_a_time_is_decided_alike():
    policy = dm.calibrate(dm.vote_pools(pools(), dm.FieldChoice(score="judge", unscored="drop")), alpha=0.1)
    assert policy.decide(["a", "b"], [1.0, 0.0]).answer == "a"
    dropped = policy.decide(["a", "b"], [1.0, None])
    assert dropped.abstained
    assert "has no score" in dropped.explanation
    plain = dm.calibrate(dm.vote_pools(pools(lacking=()), dm.FieldChoice(score="judge")), alpha=0.1)
    with pytest.raises(InvalidValue, match="scores must be"):
        plain.decide(["a", "b"], [1.0, None])


@pytest.mark.parametrize("wrong", ["keep", float("nan"), float("inf"), True, [1]])
def test_what_becomes_of_unscored_pools_is_one_of_three(wrong):
    with pytest.raises(InvalidValue, match="unscored must be None, 'drop' or a finite number"):
        dm.FieldChoice(score="judge", unscored=wrong)


def test_labels_are_found_out_as_a_score_although_some_pools_are_dropped():
    made = [
        Pool(
            pool.problem,
            tuple(Path(p.answer, scores=p.scores and {"judge": float(p.answer == "a")}) for p in pool.paths),
        )
        for pool in pools().pools
    ]
    with pytest.raises(InvalidValue, match="is the label itself"):
        dm.vote_pools(dm.PoolSource(made), dm.FieldChoice(score="judge", unscored="drop"))


def test_a_file_none_of_whose_pools_is_scored_is_refused_all_the_same():
    for unscored in (None, "drop", 0.0):
        with pytest.raises(PoolFileError, match="no pool has the score 'reward'"):
            dm.vote_pools(pools(), dm.FieldChoice(score="reward", unscored=unscored))


def test_rows_that_are_taken_keep_their_table_labels_and_gaps():
    voted = dm.vote_pools(pools(), dm.FieldChoice(score="judge", unscored="drop"))
    some = voted.take(np.array([7, 2, 3]))
    assert some.table.ids == ["q7", "q2", "q3"]
    assert some.table.unscored == (0, 2)
    assert some.votes.unscored.tolist() == [True, False, True]
    assert some.accuracies(np.array([1]))["weighted_vote"] == 1.0


def test_a_policy_in_use_takes_files_all_of_whose_pools_lack_a_score():
    for unscored, answer in (("drop", None), (5.0, "b")):
        policy = dm.calibrate(dm.vote_pools(pools(), dm.FieldChoice(score="judge", unscored=unscored)), alpha=0.2)
        one = pools(1, lacking=(0,), start=100)
        assert policy.decide_votes(policy.vote(one).votes).votes.answer.tolist() == [answer]
        bare = dm.PoolSource([Pool(Problem("new", "New?"), (Path("a"), Path("b")))])
        assert policy.vote(bare).votes.unscored is None or policy.vote(bare).votes.unscored.all()


def test_a_fill_serves_where_every_pool_lacks_some_score_but_not_where_nothing_has_it():
    source = pools(lacking=range(40))
    policy = dm.calibrate(dm.vote_pools(source, dm.FieldChoice(score="judge", unscored=-5.0)), alpha=0.2)
    assert policy.n == 40
    with pytest.raises(PoolFileError, match="no pool has the score 'misspelt'"):
        dm.vote_pools(source, dm.FieldChoice(score="misspelt", unscored=-5.0))
