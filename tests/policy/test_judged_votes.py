"""Policies of votes that a judge labelled and people checked: files, summaries, refusals, and what is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue, PolicyFileError
from demur.evidence.judge_check import JudgeCheck
from demur.evidence.predictor import Interval
from demur.policy import file as policy_file
from demur.pools.checks import Checks, draw_checks

N = 240


@pytest.fixture(scope="module")
def votes():
    simulated = dm.simulate_pools(N, n_paths=8, seed=4)
    return dm.vote(simulated.answers, simulated.scores, ids=[f"q{row}" for row in range(N)]), simulated.gold


@pytest.fixture(scope="module")
def labels(votes):
    """What people say of all votes, and what a judge says that errs both ways."""
    truth = votes[0].answer == votes[1]
    draw = np.random.default_rng(0).random(N)
    return truth, np.where(truth, draw > 0.1, draw < 0.25) & votes[0].has_answer


@pytest.fixture(scope="module")
def checked(votes, labels):
    rows = draw_checks(dm.VotedPools.of(votes[0]), 80, seed=1)
    column = np.full(N, None, dtype=object)
    column[rows] = labels[0][rows]
    return column


KINDS = [
    dm.Marginal(0.1),
    dm.HighProbability(0.15, 0.1),
    dm.JudgeMarginal(0.1),
    dm.JudgeMarginal("1/7", "1/3"),
    dm.JudgeHighProbability("1/7", 0.2),
]


@pytest.mark.parametrize("guarantee", KINDS)
def test_a_policy_comes_back_from_its_file_to_the_last_bit(votes, labels, checked, guarantee, tmp_path):
    policy = dm.calibrate(votes[0], labels[1], guarantee=guarantee, checked=checked)
    policy.save(tmp_path / "policy.json")
    back = dm.Policy.load(tmp_path / "policy.json")
    assert back.summary() == policy.summary()
    assert back.judge == policy.judge
    assert [rule.threshold_key for rule in back.points] == [rule.threshold_key for rule in policy.points]
    assert back.points[0].guarantee == policy.points[0].guarantee
    assert (back.p_value(votes[0]) == policy.p_value(votes[0])).all()
    first = back.decide_votes(votes[0])[0]
    assert first.p_value == back.strata.p_value_of(tuple(votes[0].key[0].tolist()), 8)


def test_files_without_a_judge_are_as_they_were(votes, labels, tmp_path):
    dm.calibrate(votes[0], labels[0], alpha=0.1).save(tmp_path / "policy.json")
    assert not {"judge", "missed"} & set(json.loads((tmp_path / "policy.json").read_text()))


def changed(path, change):
    """A policy file with another document in it, sealed anew."""
    document = policy_file.read(path)
    change(document)
    policy_file.write({name: value for name, value in document.items() if name not in ("format", "schema")}, path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["judge"].update(false_right=999), "make sense"),
        (lambda d: d["judge"].update(votes=-1), "make sense"),
        (lambda d: d["judge"].update(right=True), "make sense"),
        (lambda d: d["judge"].pop("wrong"), "told by"),
        (lambda d: d.update(judge=[1]), "told by"),
        (lambda d: d.pop("judge"), "tells of no judge"),
        (lambda d: d["missed"].pop(), "not those that people found"),
        (lambda d: d.update(missed="x"), "list of rows"),
        (lambda d: d.pop("missed"), "not that of the votes"),
        (lambda d: d["missed"][-1].__setitem__(-1, 5), "not those|does not follow"),
        (lambda d: d["points"][0].update(share=0.9), "does not follow"),
        (lambda d: d["points"][0].update(share=1.5), "share must"),
    ],
)
def test_what_does_not_follow_from_the_evidence_is_refused(votes, labels, checked, tmp_path, change, said):
    path = tmp_path / "policy.json"
    dm.calibrate(votes[0], labels[1], guarantee=dm.JudgeMarginal(0.1), checked=checked).save(path)
    changed(path, change)
    with pytest.raises(PolicyFileError, match=said):
        dm.Policy.load(path)


@pytest.mark.parametrize("guarantee", KINDS)
def test_the_rate_of_false_rights_is_always_shown_with_its_exact_interval(votes, labels, checked, guarantee):
    policy = dm.calibrate(votes[0], labels[1], guarantee=guarantee, checked=checked)
    known = np.array([label is not None for label in checked])
    said_right = known & labels[1]
    false, n = int((said_right & ~labels[0]).sum()), int(said_right.sum())
    exact = Interval.exact(false, n)
    assert policy.judge.false_right_rate == exact
    assert f"{false} of {n} that the judge calls right are wrong ({exact.estimate:.1%}" in policy.summary()
    assert f"95 % interval {exact.lower:.1%} to {exact.upper:.1%}" in policy.summary()


def test_what_was_drawn_and_has_no_word_counts_as_wrong_and_widens_the_interval(votes, labels, checked):
    drawn = np.array([label is not None for label in checked])
    known = drawn.copy()
    known[np.flatnonzero(drawn)[:10]] = False
    for guarantee in (dm.Marginal(0.1), dm.JudgeMarginal(0.1), dm.JudgeHighProbability(0.2, 0.1)):
        full = dm.calibrate(votes[0], labels[1], guarantee=guarantee, checked=checked)
        part = dm.calibrate(votes[0], labels[1], guarantee=guarantee, checked=Checks(drawn, labels[0] & known, known))
        assert part.points[0].threshold_key >= full.points[0].threshold_key
        assert part.judge.unchecked == 10
        assert part.judge.false_right_rate.upper > full.judge.false_right_rate.upper
        assert "10 of them have no word yet, and count as wrong" in part.summary()


def test_checks_of_all_votes_leave_the_judge_nothing_to_say(votes, labels):
    alone = dm.calibrate(votes[0], labels[1], alpha=0.1, checked=labels[0])
    assert alone.points[0].threshold_key == dm.calibrate(votes[0], labels[0], alpha=0.1).points[0].threshold_key
    both = dm.calibrate(votes[0], labels[1], guarantee=dm.JudgeMarginal(0.1), checked=labels[0])
    assert both.threshold >= alone.threshold


def test_labels_that_the_judge_lacks_count_as_its_wrong(votes, labels, checked):
    some = labels[1].astype(object)
    some[:30] = None
    full = dm.calibrate(votes[0], labels[1], guarantee=dm.JudgeMarginal(0.1), checked=checked)
    part = dm.calibrate(votes[0], some, guarantee=dm.JudgeMarginal(0.1), checked=checked, partly_labelled=True)
    assert part.points[0].threshold_key >= full.points[0].threshold_key
    with pytest.raises(InvalidValue, match="booleans"):
        dm.calibrate(votes[0], some, guarantee=dm.JudgeMarginal(0.1), checked=checked)


def test_promises_about_answers_refuse_a_judges_labels_and_take_the_checked_ones(votes, labels, checked):
    fresh = dm.simulate_pools(60, n_paths=8, seed=9)
    batch = dm.vote(fresh.answers, fresh.scores, ids=[f"new{row}" for row in range(60)])
    two = dm.calibrate(votes[0], labels[1], guarantee=dm.JudgeMarginal(0.1), checked=checked)
    with pytest.raises(InvalidValue, match="a batch needs people's labels"):
        two.select(batch, fdr=0.2)
    alone = dm.calibrate(votes[0], labels[1], guarantee=dm.Selective(0.3, 0.2), checked=checked)
    assert alone.select(batch, fdr=0.2).answered.any()
    with pytest.raises(InvalidValue, match="make a policy of each"):
        dm.calibrate(votes[0], labels[1], guarantee=[dm.JudgeMarginal(0.1), dm.Selective(0.3, 0.2)], checked=checked)


def test_bad_checks_are_refused_by_name(votes, labels, checked):
    by = {"guarantee": dm.JudgeMarginal(0.1)}
    with pytest.raises(InvalidValue, match="no vote was checked"):
        dm.calibrate(votes[0], labels[1], checked=[None] * N, **by)
    with pytest.raises(InvalidValue, match=r"needs labels by a judge .* as \{checked\}|checked"):
        dm.calibrate(votes[0], labels[1], **by)
    with pytest.raises(InvalidValue, match="hold_out"):
        dm.calibrate(votes[0], labels[1], checked=checked, hold_out=0.5, **by)
    with pytest.raises(InvalidValue, match="one label or None per vote"):
        dm.calibrate(votes[0], labels[1], checked=checked[:5], **by)
    with pytest.raises(InvalidValue, match="share a cluster"):
        dm.calibrate(votes[0], labels[1], checked=checked, clusters=[f"c{row // 3}" for row in range(N)], **by)


@pytest.mark.parametrize("end", ["most", "least"])
def test_checks_of_just_one_end_of_the_confidences_are_no_random_part(votes, labels, end):
    order = np.lexsort(votes[0].key.T[::-1])
    some = order[-60:] if end == "most" else order[:60]
    column = np.full(N, None, dtype=object)
    column[some] = labels[0][some]
    with pytest.raises(InvalidValue, match=f"just the {end} confident of the {N}, and so no random part"):
        dm.calibrate(votes[0], labels[1], alpha=0.1, checked=column)


def test_pools_of_several_sizes_need_the_checked_votes_alone(labels):
    answers = [["a"] * (4 + row % 2) for row in range(60)]
    votes = dm.vote(answers, ids=[str(row) for row in range(60)])
    right = np.arange(60) % 7 > 0
    column = np.where(np.random.default_rng(0).random(60) < 0.7, right, None)
    with pytest.raises(InvalidValue, match="one threshold for pools of all sizes"):
        dm.calibrate(votes, right, guarantee=dm.JudgeMarginal(0.4), checked=column)
    assert dm.calibrate(votes, right, alpha=0.4, checked=column).n == sum(label is not None for label in column)
    by_chance = dm.calibrate(votes, right, guarantee=dm.JudgeMarginal(0.4), checked=column, sizes_by_chance=True)
    assert by_chance.n == 60


def test_draws_are_random_named_and_grow(votes):
    voted = dm.VotedPools.of(votes[0])
    first, more = draw_checks(voted, 40, seed=3), draw_checks(voted, 90, seed=3)
    assert len(first) == 40
    assert set(first) < set(more)
    assert set(first) != set(draw_checks(voted, 40, seed=4))
    shuffled = np.random.default_rng(0).permutation(N)
    again = draw_checks(voted.take(shuffled), 40, seed=3)
    assert {voted.ids[row] for row in first} == {voted.ids[row] for row in shuffled[again]}
    # Every vote is as likely as any other: over seeds its share is that of the draw.
    often = np.bincount(np.concatenate([draw_checks(voted, 60, seed=seed) for seed in range(400)]), minlength=N)
    assert abs(often - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)
    for count in (0, N + 1):
        with pytest.raises(InvalidValue, match=f"between 1 and {N} votes"):
            draw_checks(voted, count)


@pytest.mark.parametrize("guarantee", [dm.JudgeMarginal(0.1), dm.JudgeHighProbability(0.1, 0.1)])
def test_an_audit_by_people_judges_true_errors_by_a_bound(votes, labels, checked, guarantee):
    policy = dm.calibrate(votes[0], labels[1], guarantee=guarantee, checked=checked)
    outlook = dm.audit_outlook(policy, 200)
    assert "at most about" in outlook.sentence
    consistent = dm.Audit.of(policy.points[0], 10, 200)
    assert consistent.consistent
    assert not dm.Audit.of(policy.points[0], 90, 200).consistent
    monitor = dm.monitoring.ErrorMonitor
    with pytest.raises(InvalidValue, match="no exact law of errors"):
        monitor(policy)


def test_counts_of_a_checked_judge_make_sense():
    judge = JudgeCheck(100, 30, 2, 1, 10, 3, 0)
    assert (judge.drawn, judge.checked, judge.unchecked) == (40, 39, 1)
    assert JudgeCheck.of_document(judge.describe()) == judge
    with pytest.raises(InvalidValue, match="make sense"):
        JudgeCheck(30, 30, 2, 1, 10, 3, 0)


def test_clusters_are_drawn_alike_by_the_one_vote_of_each_that_counts(votes, labels, tmp_path):
    """Of rows drawn at random, a large cluster nearly always has one: the checked ones would not be like new ones."""
    clusters = [f"large {row // 10}" if row < 120 else f"small {row}" for row in range(N)]
    voted = dm.VotedPools.of(votes[0], labels[1], clusters=clusters)
    some = np.random.default_rng(0).permutation(N)[:120]
    column = np.full(N, None, dtype=object)
    column[some] = labels[0][some]
    policy = dm.calibrate(voted, alpha=0.1, checked=column)
    counted = voted.counted
    assert policy.n == np.isin(counted, some).sum() < len({clusters[row] for row in some})
    assert policy.judge.drawn == policy.n
    assert policy.unit == "cluster"
    mine = np.full(N, None, dtype=object)
    mine[np.intersect1d(some, counted)] = labels[0][np.intersect1d(some, counted)]
    apart = dm.calibrate(voted, alpha=0.1, checked=mine)  # one of each cluster was drawn, and clusters still count
    assert apart.unit == "cluster"
    assert apart.points == policy.points
    apart.save(tmp_path / "policy.json")
    assert dm.Policy.load(tmp_path / "policy.json").summary() == apart.summary()
    others = np.full(N, None, dtype=object)
    rest = np.setdiff1d(np.arange(120), counted)[:40]
    others[rest] = labels[0][rest]
    with pytest.raises(InvalidValue, match="the one vote that counts was checked"):
        dm.calibrate(voted, alpha=0.1, checked=others)
