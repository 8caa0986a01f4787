"""Scores side by side: each figure against its definition."""

from __future__ import annotations

import math

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
