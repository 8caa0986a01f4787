"""Policies from partly labelled votes: asked for by name, stored, and honest about what is not known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue, LabelMismatch, PolicyFileError

N = 200


@pytest.fixture(scope="module")
def votes():
    data = dm.simulate_pools(N, n_paths=7, seed=1)
    made = dm.vote(data.answers, data.scores, tie_break=dm.jitter(0), ids=[f"q{row}" for row in range(N)])
    return made, made.answer == data.gold


@pytest.fixture(scope="module")
def partly(votes):
    made, right = votes
    labels = right.astype(object)
    labels[np.lexsort(made.key.T[::-1])[: N // 2]] = None
    return made, labels


@pytest.fixture(scope="module")
def policy(partly):
    return dm.calibrate(*partly, alpha=[0.05, 0.1], partly_labelled=True)


def test_missing_labels_are_refused_unless_they_are_asked_for(partly):
    with pytest.raises(InvalidValue, match="must hold booleans"):
        dm.calibrate(*partly, alpha=0.1)
    voted = dm.VotedPools.of(*partly, partly_labelled=True)
    with pytest.raises(InvalidValue, match=r"100 of 200 votes have no label.*partly_labelled=True"):
        dm.calibrate(voted, alpha=0.1)


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_nothing_is_written_in_several_ways(partly, policy, nothing):
    made, labels = partly
    spelled = np.array([nothing if label is None else label for label in labels], dtype=object)
    same = dm.calibrate(made, spelled, alpha=[0.05, 0.1], partly_labelled=True)
    assert [rule.threshold_key for rule in same.points] == [rule.threshold_key for rule in policy.points]


def test_booleans_that_nan_made_numbers_of_are_labels_and_other_numbers_are_not(partly, policy):
    made, labels = partly
    numbers = np.array([math.nan if label is None else float(label) for label in labels])
    assert dm.calibrate(made, numbers, alpha=[0.05, 0.1], partly_labelled=True).threshold == policy.threshold
    with pytest.raises(InvalidValue, match="must hold booleans"):
        dm.calibrate(made, numbers / 2, alpha=0.1, partly_labelled=True)
    with pytest.raises(InvalidValue, match="one label or None per vote"):
        dm.calibrate(made, labels[1:], alpha=0.1, partly_labelled=True)


def test_full_labels_are_the_same_with_and_without_the_argument(votes):
    full, same = (dm.calibrate(*votes, alpha=0.1, partly_labelled=partly) for partly in (False, True))
    assert full.points == same.points
    assert same.evidence.unlabelled is None


def test_thresholds_take_votes_without_a_label_for_wrong(partly, policy):
    made, labels = partly
    as_wrong = dm.calibrate(made, np.array([label is True for label in labels]), alpha=[0.05, 0.1])
    assert [rule.threshold_key for rule in policy.points] == [rule.threshold_key for rule in as_wrong.points]
    assert (policy.p_value(made) == as_wrong.p_value(made)).all()


def test_the_promise_says_how_many_were_labelled(policy):
    for rule in policy.points:
        assert rule.promise.endswith("100 of the 200 were labelled, and the others count as wrong.")
        assert "exchangeable with the 200 calibration questions" in rule.promise


def test_no_accuracy_is_made_of_labels_that_are_not_there(policy, partly):
    made, labels = partly
    expected = policy.forecast(0.1)
    assert math.isnan(expected.false_abstention)
    assert math.isnan(policy.evidence.vote_accuracy)
    right = np.array([label is True for label in labels])
    said = np.array([label is not None for label in labels])
    above = policy.decide_votes(made, alpha=0.1).answered
    assert expected.answered == pytest.approx(above.mean())
    assert expected.selective_accuracy == pytest.approx(right[above & said].mean())
    assert expected.accuracy_at_least <= right[above].mean()
    table = dm.Separability.of(policy.evidence)
    assert np.isnan(table.survival_right).all()
    assert np.isnan(table.false_abstention).all()
    curve = dm.Frontier.of(policy.evidence)
    assert math.isnan(curve.auroc)
    assert math.isnan(curve.aurc)
    assert curve.answered[-1] == pytest.approx(0.5)
    summary = policy.summary()
    assert "100 of 200 calibration questions are labelled" in summary
    assert "vote accuracy –" in summary


def test_answered_votes_without_a_label_are_told(partly):
    made, labels = partly
    skipped = labels.copy()
    skipped[np.lexsort(made.key.T[::-1])[-3:]] = None
    policy = dm.calibrate(made, skipped, alpha=0.1, partly_labelled=True)
    lacking = np.array([label is None for label in skipped])
    count = int((policy.decide_votes(made).answered & lacking).sum())
    assert count >= 3
    assert policy.forecast(0.1).answered_unlabelled == pytest.approx(count / N)
    assert f"{count} of the unlabelled questions are answered at alpha = 0.1, and counted as wrong" in policy.summary()


def test_bands_of_accuracy_hold_whatever_the_labels_that_are_missing(partly, votes):
    made, labels = partly
    full = dm.AccuracyBand.of(dm.Evidence.of(made.key, votes[1]))
    part = dm.AccuracyBand.of(dm.calibrate(made, labels, alpha=0.1, partly_labelled=True).evidence)
    some = ~np.isnan(full.predicted)
    assert (part.lower[some] <= full.lower[some] + 1e-12).all()
    assert (part.upper[some] >= full.upper[some] - 1e-12).all()


def test_a_file_keeps_what_is_unlabelled_and_recomputes_its_thresholds(policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    again = dm.Policy.load(tmp_path / "policy.json")
    assert again.points == policy.points
    assert again.evidence.n_unlabelled == 100
    document = json.loads((tmp_path / "policy.json").read_text())
    assert {len(row) for rows in document["evidence"].values() for row in rows} == {5}


def test_a_file_whose_unlabelled_votes_were_made_right_is_refused(policy, tmp_path):
    from demur.descriptions import digest

    path = tmp_path / "policy.json"
    policy.save(path)
    document = json.loads(path.read_text())
    del document["digest"]
    for rows in document["evidence"].values():
        for row in rows:
            row[2], row[4] = row[2] + row[4], 0
    path.write_text(json.dumps({**document, "digest": digest(document)}))
    with pytest.raises(PolicyFileError, match="does not follow from its evidence"):
        dm.Policy.load(path)


def test_what_needs_all_labels_refuses_some(partly, policy):
    voted = dm.VotedPools.of(*partly, partly_labelled=True)
    with pytest.raises(InvalidValue, match="100 of 200 votes have no label"):
        dm.evaluate(voted, alpha=0.1)
    with pytest.raises(InvalidValue, match="100 of 200 votes have no label"):
        dm.audit_policy(policy, voted)
    with pytest.raises(InvalidValue, match=r"hold_out = 0.5 .* needs the labels of all"):
        dm.calibrate(voted, alpha=0.1, hold_out=0.5, partly_labelled=True)


class Other:
    """A guarantee that is no rank."""

    name, alpha = "other", 0.1

    def __getattr__(self, name):
        return getattr(dm.Marginal(0.1), name)


def test_a_guarantee_that_is_no_rank_needs_all_labels(partly, votes):
    for refused in (
        lambda: dm.calibrate(*partly, guarantee=Other(), partly_labelled=True),
        lambda: dm.LabelQueue(dm.VotedPools.of(partly[0]), [Other()]),
    ):
        with pytest.raises(InvalidValue, match="the guarantee other needs the labels of all votes"):
            refused()
    assert dm.calibrate(*votes, guarantee=Other()).n == N


def test_an_audit_on_other_votes_goes_by_the_law_of_all_calibration_votes(policy):
    data = dm.simulate_pools(500, n_paths=7, seed=9)
    fresh = dm.vote(data.answers, data.scores, tie_break=dm.jitter(0), ids=[f"new{row}" for row in range(500)])
    audit = dm.audit_policy(policy, fresh, fresh.answer == data.gold)
    assert all(point.consistent for point in audit)
    assert audit[1].errors <= audit[1].usual_at_most * 500


def test_a_policy_by_peoples_labels_is_not_audited_by_gold(partly):
    from dataclasses import replace

    from demur.pools.label_rule import LabelRule
    from demur.pools.labels import Labels

    made, labels = partly
    rule = LabelRule(people=True)
    policy = replace(dm.calibrate(made, labels, alpha=0.1, partly_labelled=True), labels=rule)
    assert LabelRule.of(rule.describe()) == rule
    fresh = dm.VotedPools(made, np.array([label is True for label in labels]), labels=Labels([], [frozenset()] * N))
    with pytest.raises(LabelMismatch, match="what people said"):
        policy.refuse_other_labels(fresh)


def test_pools_of_which_some_have_gold(tmp_path):
    lines = []
    for row in range(60):
        gold = {} if row % 3 else {"gold": "1"}
        paths = [{"answer": "1"}, {"answer": "1" if row % 2 else "2"}]
        lines.append(json.dumps({"id": f"q{row}", "question": f"What is {row}?", **gold, "paths": paths}))
    (tmp_path / "pools.jsonl").write_text("\n".join(lines))
    source = dm.read_pools(tmp_path / "pools.jsonl")
    voted = dm.vote_pools(source, partly_labelled=True)
    assert voted.known.sum() == 20
    policy = dm.calibrate(voted, alpha=0.4, partly_labelled=True)
    assert (policy.n, policy.evidence.n_unlabelled) == (60, 40)
