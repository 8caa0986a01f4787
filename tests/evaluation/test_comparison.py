"""Scores side by side: each figure against its definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import demur as dm
from demur.calibration import Marginal
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


def test_a_score_that_a_question_lacks_leaves_that_question_out_for_all_votes():
    some = pools(SCORES, ANSWERS)
    some[1] = Pool(some[1].problem, (Path("2"), *some[1].paths[1:]))
    found = compare_scores(PoolSource(some))
    assert found[2].missing == ("q1",)
    assert [(one.n, one.left_out) for one in found] == [(3, 1)] * 3
    without = compare_scores(PoolSource([some[0], *some[2:]]))
    for one, other in zip(found, without, strict=True):
        assert (one.vote_accuracy, one.common_auc, one.frontier_auc) == (
            other.vote_accuracy,
            other.common_auc,
            other.frontier_auc,
        )


def test_a_score_that_few_questions_have_is_left_out_rather_than_most_questions():
    some = [
        replace(pool, paths=tuple(replace(path, scores={**path.scores, "rare": 1.0}) for path in pool.paths))
        if row == 0
        else pool
        for row, pool in enumerate(pools(SCORES, ANSWERS))
    ]
    found = {one.title: one for one in compare_scores(PoolSource(some))}
    assert math.isnan(found["rare"].vote_accuracy)
    assert (found["s"].n, found["s"].left_out) == (4, 0)
    asked_for = {one.title: one for one in compare_scores(PoolSource(some), dm.FieldChoice(score="rare"))}
    assert (asked_for["rare"].n, asked_for["rare"].left_out) == (1, 3)
    assert math.isnan(asked_for["s"].vote_accuracy)


def test_a_score_named_like_the_majority_vote_is_another_vote():
    renamed = [
        replace(pool, paths=tuple(replace(path, scores={"majority vote": path.scores["s"]}) for path in pool.paths))
        for pool in pools(SCORES, ANSWERS)
    ]
    plain, _, scored = compare_scores(PoolSource(renamed))
    same = compare_scores(PoolSource(pools(SCORES, ANSWERS)))
    assert (plain.vote_accuracy, scored.vote_accuracy) == (same[0].vote_accuracy, same[2].vote_accuracy)


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


def test_a_copy_of_the_best_is_within_noise_of_it_and_a_turned_score_is_not():
    answers, scores = judged(0.5)
    both = [
        Pool(
            Problem(f"q{i}", f"{i}?", ("1",)),
            tuple(Path(a, scores={"a": s, "b": s + 1e-3 * i, "turned": -s}) for a, s in zip(*row, strict=True)),
        )
        for i, row in enumerate(zip(answers, scores, strict=True))
    ]
    found = {one.title: one for one in compare_scores(PoolSource(both))}
    best = max(found.values(), key=lambda one: one.common_auc)
    assert best.title in ("a", "b")
    assert best.behind_best[0] == 0
    assert not best.within_noise
    other = found["b" if best.title == "a" else "a"]
    assert other.within_noise or other.common_auc == best.common_auc
    difference, lower, upper = found["turned"].behind_best
    assert lower < difference < upper < 0
    assert not found["turned"].within_noise


def test_every_figure_lies_in_its_interval_and_the_intervals_narrow_with_more_questions():
    few, many = (compare_scores(PoolSource(pools(*reversed(judged(1.0, n=n))))) for n in (60, 960))
    for name in ("path_auroc", "vote_accuracy", "frontier_auc", "common_auc"):
        widths = []
        for one in (few[2], many[2]):
            lower, upper = getattr(one, f"{name}_interval")
            assert lower < getattr(one, name) < upper, name
            widths.append(upper - lower)
        assert widths[0] > 1.5 * widths[1], name


def test_yields_are_those_of_a_policy_calibrated_on_the_same_questions():
    answers, scores = judged(1.0)
    source = PoolSource(pools(scores, answers))
    found = compare_scores(source, guarantees=[Marginal(0.1), Marginal(0.2)])[2]
    policy = dm.calibrate(dm.vote_pools(source, dm.FieldChoice(score="s")), alpha=[0.1, 0.2])
    for alpha, (share, lower, upper) in found.answered.items():
        assert share == policy.forecast(alpha).answered
        assert lower < share < upper
    assert list(found.answered) == [0.1, 0.2]


def test_a_difference_within_noise_is_called_so_and_one_beyond_it_is_not():
    told = {}
    for seed in range(8):
        answers, _ = judged(1.0, seed=seed)
        noise = np.random.default_rng(seed).normal(scale=0.3, size=(len(answers), 5)).tolist()
        found = compare_scores(PoolSource(pools(noise, answers)))[2]
        difference, lower, upper = found.over_majority
        doubt = "".join(warning for warning in found.warnings if "does not beat" in warning)
        assert bool(doubt) == (difference < 0)
        if doubt:
            told[upper < 0] = f"{100 * lower:+.1f} to {100 * upper:+.1f} points" in doubt
            assert ("(within noise, 95 %" in doubt) == (upper >= 0)
    assert told[False]
    turned = doubts(-0.3)
    assert any("(beyond noise, 95 %" in warning for warning in turned.warnings)


def test_the_vote_that_is_ones_own_is_marked_with_a_score_and_without():
    answers, scores = judged(2.0)
    source = PoolSource(pools(scores, answers))
    assert [one.own for one in compare_scores(source)] == [False] * 3
    scored = compare_scores(source, dm.FieldChoice(score="s"), own=source.recipe("s"))
    assert [one.own for one in scored] == [False, False, True]
    for tie_break, owned in (
        ("none", [True, False, False]),
        (None, [False, True, False]),
        ("jitter:3", [False, True, False]),
    ):
        found = compare_scores(source, own=source.recipe(tie_break=tie_break))
        assert [one.own for one in found] == owned


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
