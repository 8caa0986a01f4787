"""Clusters: one question of each counts, the promise says so, and both rates are shown."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import CalibrationLeak
from demur.pools.splits import repeated
from demur.pools.voted_pools import VotedPools


@pytest.fixture
def documents():
    """Sixty documents: each third has three questions, two of which the model gets wrong with full confidence."""
    rows = []
    for document in range(60):
        many = document % 3 == 0
        rows += [(f"d{document}", part == 0 or not many) for part in range(3 if many else 1)]
    clusters, right = (list(column) for column in zip(*rows, strict=True))
    votes = dm.vote([["a", "a"]] * len(rows), ids=[f"q{row}" for row in range(len(rows))])
    return votes, np.array(right), clusters


def test_the_promise_names_the_unit_that_was_counted(documents, tmp_path):
    votes, right, clusters = documents
    policy = dm.calibrate(votes, right, alpha=0.5, clusters=clusters)
    assert (policy.n, policy.unit) == (60, "cluster")
    promise = policy.point().promise
    assert "one question of a new cluster, exchangeable with the 60 calibration clusters" in promise
    assert promise in policy.decide(["a", "a"]).explanation
    policy.save(tmp_path / "p.json")
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert (loaded.unit, loaded.point().promise, loaded.summary()) == ("cluster", promise, policy.summary())
    for guarantee in (dm.Smoothed(0.5, seed=1), dm.HighProbability(0.5, 0.1)):
        assert "cluster" in dm.calibrate(votes, right, guarantee=guarantee, clusters=clusters).point().promise


def test_questions_are_promised_where_no_cluster_joins_several(documents):
    votes, right, _ = documents
    alone = dm.calibrate(votes, right, alpha=0.5, clusters=[f"c{row}" for row in range(len(votes))])
    assert (alone.unit, alone.every_question) == ("question", None)
    same = ["What is 2 + 2?"] * 2 + [None] * (len(votes) - 2)
    repeated = dm.calibrate(votes, right, alpha=0.5, questions=same, clusters=["c", "c"] + [None] * (len(votes) - 2))
    assert (repeated.unit, repeated.n) == ("question", len(votes) - 1)


def test_both_rates_are_shown(documents):
    votes, right, clusters = documents
    policy = dm.calibrate(votes, right, alpha=0.5, clusters=clusters)
    counted = policy.forecast().confident_error
    every = policy.forecast_per_question().confident_error
    assert every == (~right).mean()  # all votes are answered
    assert every > counted
    assert f"of all 100 questions in these clusters, {100 * every:.1f} % are answered wrongly" in policy.summary()


def test_an_audit_of_clusters_shows_both_rates(documents):
    votes, right, clusters = documents
    policy = dm.calibrate(votes, right, alpha=0.5, clusters=clusters)
    fresh = dm.vote([["a", "a"]] * len(votes), ids=[f"new{row}" for row in range(len(votes))])
    audit = dm.audit_policy(policy, fresh, right, clusters=[f"new {name}" for name in clusters])
    assert (audit.n, audit.questions) == (60, 100)
    assert audit[0].confident_error_per_question == (~right).mean()
    assert audit[0].confident_error_per_question > audit[0].confident_error
    assert audit[0].document()["confident_error_per_question"] == audit[0].confident_error_per_question


def test_repeated_splits_of_clusters_show_both_rates(documents):
    votes, right, clusters = documents
    voted = VotedPools.of(votes, right, clusters=clusters)
    found = dm.evaluate(voted, alpha=0.5, n_cal=30, splits=50)
    assert (found.n, found.unit) == (60, "cluster")
    every = found.points[0].confident_error_per_question
    assert every.mean > found.points[0].confident_error.mean
    # By hand, on the same splits: all votes are answered, so every wrong question of a tested cluster is an error.
    tested = repeated(60, 30, 50, 0)[1]
    names = [clusters[row] for row in voted.in_order]
    rates = []
    for split in tested:
        chosen = {names[place] for place in split}
        of_split = [not label for name, label in zip(clusters, right, strict=True) if name in chosen]
        rates.append(np.mean(of_split))
    assert every.mean == pytest.approx(np.mean(rates), abs=1e-12)
    assert dm.evaluate(votes, right, alpha=0.5, n_cal=30).points[0].confident_error_per_question is None


def test_questions_given_without_clusters_count_once_and_are_remembered():
    votes = dm.vote([["a", "a"]] * 40, ids=[f"q{row}" for row in range(40)])
    questions = [f"Question {row % 30}" for row in range(40)]
    policy = dm.calibrate(votes, [True] * 40, alpha=0.1, questions=questions)
    assert policy.n == 30
    with pytest.raises(CalibrationLeak, match="1 of 1 problems"):
        policy.refuse_seen(["new"], ["Question 3"])
    policy.refuse_seen(["new"], ["Question 31"])


def test_repeated_splits_with_too_few_clusters_have_no_errors_of_either_kind(documents):
    votes, right, clusters = documents
    keys = dm.vote([["a", "a"]] * len(votes), ids=votes.ids, tie_break=np.linspace(0, 1, len(votes)))
    few = dm.evaluate(VotedPools.of(keys, right, clusters=clusters), alpha=0.05, n_cal=10).points[0]
    assert not few.feasible
    assert few.confident_error_per_question.mean == few.confident_error.mean == 0


def test_a_question_that_stands_twice_in_a_cluster_counts_once_among_all_questions(documents):
    votes, right, clusters = documents
    twice = dm.vote([["a", "a"]] * 2 * len(votes), ids=range(2 * len(votes)))
    questions = [f"Question {row}" for row in range(len(votes))] * 2
    labels = np.concatenate([right, right])
    policy = dm.calibrate(twice, labels, alpha=0.5, clusters=[*clusters, *clusters], questions=questions)
    assert (policy.n, policy.every_question.n) == (60, 100)
    assert policy.forecast_per_question().confident_error == (~right).mean()


def test_questions_that_were_voted_on_are_known_to_calibrate():
    questions = [f"Question {row % 30}" for row in range(60)]
    votes = dm.vote([["a", "a"]] * 60, ids=range(60), questions=questions)
    policy = dm.calibrate(votes, [True] * 60, alpha=0.1)
    assert policy.n == 30
    again = dm.vote([["a", "a"]] * 2, ids=["x", "y"], questions=["Question 3", "Other"])
    with pytest.raises(CalibrationLeak, match="1 of 2"):
        dm.audit_policy(policy, again, [True, True])


def test_the_forecast_per_question_is_of_the_alpha_that_is_named_and_only_where_clusters_count():
    drawn = dm.simulate_pools(400, n_paths=6, seed=2)
    votes = dm.vote(drawn.answers, drawn.scores)
    right = votes.answer == drawn.gold
    policy = dm.calibrate(votes, right, alpha=[0.1, 0.3], clusters=[f"c{row // 2}" for row in range(400)])
    for alpha in (0.1, 0.3):
        every = policy.forecast_per_question(alpha)
        answered = votes.confidence > policy.point(alpha).threshold
        assert (every.alpha, every.answered) == (alpha, answered.mean())
        assert every.confident_error == (answered & ~right).mean()
    assert dm.calibrate(votes, right, alpha=0.1).forecast_per_question() is None


@pytest.mark.parametrize("by_chance", [False, True])
def test_sizes_that_vary_by_chance_do_so_for_clusters_and_for_all_their_questions(by_chance):
    votes = dm.vote([["a"] * (2 + row % 2) for row in range(80)])
    clusters = [f"c{row // 2}" for row in range(80)]
    policy = dm.calibrate(votes, [True] * 80, alpha=0.2, clusters=clusters, sizes_by_chance=by_chance)
    assert (policy.strata.by_chance, policy.every_question.by_chance) == (by_chance, by_chance)
