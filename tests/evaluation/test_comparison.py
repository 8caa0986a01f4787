"""Scores side by side: each figure against its definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import demur as dm
from demur.evaluation.comparison import compare_scores
from demur.evidence.counts import Evidence
from demur.evidence.frontier import Frontier
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem


def pools(scores, answers, gold="1"):
    return [
        Pool(
            Problem(f"q{i}", f"{i}?", (gold,)),
            tuple(Path(a, scores={"s": s}) for a, s in zip(row, values, strict=True)),
        )
        for i, (row, values) in enumerate(zip(answers, scores, strict=True))
    ]


ANSWERS = [["1", "1", "2"], ["2", "2", "1"], ["1", "3", "3"], ["1", None, "1"]]
SCORES = [[3.0, 1.0, 0.5], [0.1, 0.2, 2.0], [1.0, 1.0, 0.0], [2.0, 0.0, 0.4]]


def test_path_auroc_counts_pairs_and_ties_by_half():
    right, wrong = [3.0, 1.0, 2.0, 1.0, 2.0, 0.4], [0.5, 0.1, 0.2, 1.0, 0.0, 0.0]
    pairs = [1.0 if r > w else 0.5 if r == w else 0.0 for r in right for w in wrong]
    found = compare_scores(PoolSource(pools(SCORES, ANSWERS)))
    assert found[2].path_auroc == pytest.approx(sum(pairs) / len(pairs))


def test_vote_and_frontier_are_those_of_the_vote_itself():
    found = compare_scores(PoolSource(pools(SCORES, ANSWERS)))
    votes = dm.vote(ANSWERS, SCORES)
    correct = [answer == "1" for answer in votes.answer]
    assert found[2].vote_accuracy == pytest.approx(sum(correct) / 4)
    assert found[2].frontier_auc == pytest.approx(Frontier.of(Evidence.of(votes.key, correct)).auc)
    majority = [answer == "1" for answer in dm.vote(ANSWERS).answer]
    assert found[0].vote_accuracy == pytest.approx(sum(majority) / 4)
    assert (found[2].paths, found[2].low, found[2].high) == (12, 0.0, 3.0)


def test_problems_without_gold_are_left_out_of_what_needs_it():
    labelled = pools(SCORES, ANSWERS)
    extra = Pool(Problem("new", "?"), (Path("7", scores={"s": 99.0}), Path("8", scores={"s": -99.0})))
    with_extra = compare_scores(PoolSource([*labelled, extra]))
    alone = compare_scores(PoolSource(labelled))
    assert with_extra[2].path_auroc == alone[2].path_auroc
    assert with_extra[2].vote_accuracy == alone[2].vote_accuracy
    assert with_extra[2].high == 99.0


def test_a_partial_score_has_no_vote_and_names_what_lacks():
    some = pools(SCORES, ANSWERS)
    some[1] = Pool(some[1].problem, (Path("2"), *some[1].paths[1:]))
    found = compare_scores(PoolSource(some))[2]
    assert found.missing == ("q1",)
    assert math.isnan(found.vote_accuracy)
    assert 0 < found.path_auroc < 1


def judged(noise, n=120, seed=3):
    """Pools of five whose score is high for right paths, plus noise; a negative noise turns the score around."""
    rng = np.random.default_rng(seed)
    answers = [["1" if rng.random() < ease else str(rng.integers(2, 5)) for _ in range(5)] for ease in rng.random(n)]
    sign = -1 if noise < 0 else 1
    scores = [[sign * float((a == "1") + abs(noise) * rng.normal()) for a in row] for row in answers]
    return answers, scores


def doubts(noise):
    answers, scores = judged(noise)
    return compare_scores(PoolSource(pools(scores, answers)))[2]


def test_a_score_is_doubted_where_it_ranks_wrong_paths_higher_or_does_no_better_than_the_jittered_majority():
    good, turned = doubts(0.3), doubts(-0.3)
    assert good.path_auroc > 0.9
    assert good.warnings == ()
    assert turned.path_auroc < 0.1
    assert any("ranks wrong paths above right ones" in warning for warning in turned.warnings)
    assert any("does not beat the majority vote" in warning for warning in turned.warnings)
    useless = doubts(40.0)
    assert useless.path_auroc == pytest.approx(0.5, abs=0.1)
    assert any("ranks wrong paths" in warning for warning in useless.warnings) == (useless.path_auroc < 0.5)
    assert any("does not beat" in warning for warning in useless.warnings)


def test_the_jittered_majority_orders_equally_confident_votes_and_the_plain_one_does_not():
    answers, scores = judged(1.0)
    plain, jittered, _ = compare_scores(PoolSource(pools(scores, answers)))
    assert (plain.title, jittered.title) == ("majority vote", "majority vote with jitter")
    assert plain.vote_accuracy == jittered.vote_accuracy
    assert len(plain.frontier.answered) <= 5 < 100 < len(jittered.frontier.answered)


def test_one_row_of_each_question_counts():
    answers, scores = judged(1.0)
    once = pools(scores, answers)
    copies = [replace(pool, problem=replace(pool.problem, id=f"copy-{pool.problem.id}")) for pool in once[:60]]
    alone, doubled = compare_scores(PoolSource(once)), compare_scores(PoolSource([*once, *copies]))
    for one, other in zip(alone, doubled, strict=True):
        assert (one.vote_accuracy, one.frontier_auc) == (
            other.vote_accuracy,
            pytest.approx(other.frontier_auc, abs=0.02),
        )
        assert one.path_auroc == other.path_auroc or math.isnan(one.path_auroc)
    # Copies with other scores: which of the two counts depends on their ids alone, so the figures are those of 120.
    assert doubled[2].paths == alone[2].paths + 300
    assert doubled[2].frontier.answered[-1] == 1
    assert len(doubled[0].frontier.answered) == len(alone[0].frontier.answered)


def test_the_vote_of_ones_own_score_is_made_as_told_and_the_others_as_their_families_are():
    answers, scores = judged(2.0)
    source = PoolSource(pools(scores, answers))
    own = source.recipe("s", "rank", "exponential:5")
    found = compare_scores(source, dm.FieldChoice(score="s"), own=own)[2]
    votes = dm.vote(answers, scores, weight=dm.exponential(5), normaliser=dm.normalisers.rank)
    assert found.normaliser == own.normaliser.name
    assert found.vote_accuracy == pytest.approx(np.mean(votes.answer == "1"))
    assert found.vote_accuracy != compare_scores(source)[2].vote_accuracy
    other = compare_scores(source, dm.FieldChoice(score="another"), own=own)[2]
    assert other.normaliser == compare_scores(source)[2].normaliser
