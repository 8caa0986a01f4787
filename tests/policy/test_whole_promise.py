"""What a policy keeps when it is saved, split, taken apart and asked: details whose loss nothing else would show."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import CalibrationLeak, PolicyFileError
from demur.pools.voted_pools import VotedPools
from demur.records import question_digest
from demur.voting.weights import parse_weight


def sizes(policy):
    return policy.strata.by_chance, policy.sizes


def test_a_declaration_about_sizes_is_kept_by_the_file(tmp_path):
    votes = dm.vote([["a"] * 2] * 3 + [["a"] * 4] * 40)
    clusters = [f"c{row // 2}" for row in range(43)]
    for how in ({}, {"clusters": clusters}):
        for declared in (False, True):
            policy = dm.calibrate(votes, [True] * 43, alpha=0.1, sizes_by_chance=declared, **how)
            policy.save(tmp_path / "p.json")
            loaded = dm.Policy.load(tmp_path / "p.json")
            assert sizes(loaded) == sizes(policy)
            assert loaded.decide(["a", "a"]).abstained is not declared
            if how:
                assert loaded.every_question.by_chance is declared


def test_pools_of_one_path_are_pools(tmp_path):
    policy = dm.calibrate(dm.vote([["a"]] * 30), [True] * 30, alpha=0.1)
    policy.save(tmp_path / "p.json")
    assert dm.Policy.load(tmp_path / "p.json").decide(["b"]).answer == "b"


@pytest.mark.parametrize("place", [-1, -2])
def test_counts_of_evidence_without_a_secondary_key_are_checked_too(tmp_path, place):
    dm.calibrate(dm.vote([["a", "a"]] * 30), [True] * 30, alpha=0.1).save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    document.pop("digest")
    document["evidence"]["2"][0][place] = -1
    (tmp_path / "p.json").write_text(json.dumps({**document, "digest": digest(document)}))
    with pytest.raises(PolicyFileError, match="whole numbers >= 0"):
        dm.Policy.load(tmp_path / "p.json")


def test_the_p_values_of_a_table_are_those_of_its_decisions():
    drawn = dm.simulate_pools(300, n_paths=6, seed=2)
    votes = dm.vote(drawn.answers, drawn.scores)
    policy = dm.calibrate(votes, votes.answer == drawn.gold, alpha=0.1)
    fresh = dm.vote(*(getattr(dm.simulate_pools(50, n_paths=6, seed=3), name) for name in ("answers", "scores")))
    np.testing.assert_array_equal(policy.p_value(fresh), policy.decide_votes(fresh).p_value)
    assert len(set(policy.p_value(fresh).tolist())) > 10


def test_forecasts_are_of_the_guarantee_that_is_named():
    drawn = dm.simulate_pools(400, n_paths=6, seed=2)
    votes = dm.vote(drawn.answers, drawn.scores)
    both = [dm.Marginal(0.1), dm.HighProbability(0.1, 0.05)]
    clusters = [f"c{row // 2}" for row in range(400)]
    policy = dm.calibrate(votes, votes.answer == drawn.gold, guarantee=both, clusters=clusters)
    for forecast in (policy.forecast, policy.forecast_per_question):
        marginal, strict = (forecast(0.1, name) for name in ("marginal", "high_probability"))
        assert strict.threshold > marginal.threshold
        assert strict.answered < marginal.answered


def test_seen_problems_are_refused_by_cluster_too():
    votes = dm.vote([["a", "a"]] * 30, ids=[f"q{row}" for row in range(30)])
    policy = dm.calibrate(votes, [True] * 30, alpha=0.1, clusters=[f"c{row}" for row in range(30)])
    policy.refuse_seen(["new"], clusters=["other"])
    with pytest.raises(CalibrationLeak, match="1 of 1"):
        policy.refuse_seen(["new"], clusters=["c7"])
    fresh = VotedPools.of(dm.vote([["a", "a"]] * 2, ids=["x", "y"]), [True] * 2, clusters=["c7", "other"])
    assert fresh.seen_by(policy.seen).tolist() == [True, False]
    with pytest.raises(CalibrationLeak, match="1 of 2"):
        policy.refuse_voted(fresh)
    asked = dm.calibrate(votes, [True] * 30, alpha=0.1, questions=[f"Question {row}" for row in range(30)])
    with pytest.raises(CalibrationLeak, match="1 of 2"):
        asked.refuse_voted(
            VotedPools.of(dm.vote([["a", "a"]] * 2, ids=["x", "y"]), [True] * 2, questions=["Question 3", "Other"])
        )


def test_rows_that_are_taken_or_held_out_keep_their_questions_and_clusters():
    votes = dm.vote([["a", "a"]] * 6, ids=list("abcdef"))
    voted = VotedPools.of(votes, [True] * 6, questions=list("QRSTUV"), clusters=["x", "x", "y", "y", None, None])
    some = voted.take(np.array([1, 2, 4]))
    assert some.questions == [question_digest(text) for text in "RSU"]
    assert some.clusters == ["x", "y", None]
    for seed in range(20):
        held_out = set(voted.split(hold_out=0.5, seed=seed).test.tolist())
        assert (0 in held_out) == (1 in held_out)
        assert (2 in held_out) == (3 in held_out)
    same = VotedPools.of(votes, [True] * 6, questions=["Q", "Q", "R", "R", None, None])
    for seed in range(20):
        held_out = set(same.split(hold_out=0.5, seed=seed).test.tolist())
        assert (0 in held_out) == (1 in held_out)
    parts = {tuple(voted.split(hold_out=0.5, seed=seed).test.tolist()) for seed in range(20)}
    assert len(parts) > 1  # drawn by the seed


def test_ids_and_questions_with_half_a_surrogate_pair_are_split_and_jittered():
    odd = ["\ud800", "\udfff", "plain"]
    votes = dm.vote([["a"]] * 3, ids=odd, tie_break=dm.jitter(0))
    assert len(set(votes.key[:, 1].tolist())) == 3
    assert len(dm.split(odd, seed=1, test=0.4).test) == 1


def test_the_file_says_what_was_held_out_and_the_threshold_of_each_size(tmp_path):
    bag = [["a"] * 4] * 60 + [["a"] * 8] * 200
    votes = dm.vote(bag, ids=range(260), tie_break=np.linspace(0, 1, 260))
    right = np.arange(260) % 3 > 0
    policy = dm.calibrate(votes, right, alpha=0.1, hold_out=0.3)
    policy.save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    rule = policy.point()
    assert document["calibration"]["hold_out"] == dm.Policy.load(tmp_path / "p.json").seen.hold_out == 0.3
    assert document["points"][0]["by_size"] == {str(size): list(key) for size, key in rule.by_size.items()}
    assert len(rule.by_size) == 1


@pytest.mark.parametrize("weight", [dm.uniform(), dm.linear(), dm.exponential(), dm.exponential(2.5)])
def test_a_policy_votes_again_with_its_own_weight(tmp_path, weight):
    answers, scores = [["a", "b", "b"]] * 30, [[0.9, 0.2, 0.1]] * 30
    votes = dm.vote(answers, scores, weight=weight, normaliser=dm.normalisers.pool_minmax)
    policy = dm.calibrate(votes, [True] * 30, alpha=0.1)
    policy.save(tmp_path / "p.json")
    assert dm.Policy.load(tmp_path / "p.json").decide(answers[0], scores[0]).confidence == votes.confidence[0]
    assert dm.exponential().spec == parse_weight("exponential").spec == "exponential:1.0"
