"""Policies that abstain on outliers as well: thresholds and promises stay, answers only become abstentions."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import InvalidValue, PolicyFileError
from demur.monitoring import OnlineThreshold
from demur.policy.outliers import without_outliers
from demur.pools.source import PoolSource, vote_pools
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts

LEVEL = 0.05
THINGS = ["apples", "coins", "pencils", "marbles", "stamps", "buttons"]
USUAL = "Ann has 4711 coins and buys 654321 more on a rainy day. How many has she?"
ODD = ["Qui a peint le plafond de la chapelle Sixtine ?", "∂u/∂t = Δu: which norm decays?", "光合作用需要什么气体"]


def sums(rng, n):
    """Questions that are all alike, as far as numbers and things allow."""
    return [
        f"Ann has {rng.integers(10 ** rng.integers(1, 9))} {rng.choice(THINGS)} and buys {rng.integers(10**6)} more"
        f"{' on a rainy day' * rng.integers(4)}. How many has she?"
        for _ in range(n)
    ]


def vote_on(texts, rng, **known):
    """Votes of eight paths, and labels; surer ones are right more often."""
    paths = rng.random((len(texts), 8)) < rng.uniform(0.15, 1, (len(texts), 1))
    answers = np.where(paths, 0, rng.integers(1, 4, paths.shape))
    votes = dm.vote(answers, questions=texts, **known)
    return votes, votes.winners == 0


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(1)
    votes, right = vote_on(sums(rng, 301), rng)
    new, labels = vote_on([*sums(rng, 120), *ODD], rng)
    return votes, right, new, labels


@pytest.fixture(scope="module")
def policy(made):
    return dm.calibrate(*made[:2], alpha=[0.05, 0.2], outlier_level=LEVEL)


GUARANTEES = [
    dm.Marginal(0.1),
    dm.Marginal(0.1, choices=3),
    dm.Smoothed(0.1, seed=2),
    dm.HighProbability(0.1, 0.1),
    dm.Simultaneous(0.1, 0.1),
    dm.Grouped(dm.Marginal(0.2)),
    dm.Shifted(dm.Marginal(0.1)),
]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda one: f"{one.name}-{getattr(one, 'choices', 1)}")
def test_thresholds_stay_and_answers_are_those_of_the_same_policy_without_the_outliers(guarantee):
    """Exactly: so for every calibration set, no more is answered wrongly, whatever the labels are."""
    rng = np.random.default_rng(3)
    known = {"groups": ["a", "b"] * 150, "importance": rng.uniform(0.5, 2, 300)}
    votes, right = vote_on(sums(rng, 300), rng, **known)
    plain, gated = (dm.calibrate(votes, right, guarantee=guarantee, outlier_level=level) for level in (None, LEVEL))
    assert [rule.document() for rule in gated.points] == [rule.document() for rule in plain.points]
    assert gated.fingerprint == plain.fingerprint
    assert gated.forecast() == plain.forecast()
    new, _ = vote_on([*sums(rng, 397), *ODD], rng, groups=["a", "b"] * 200, importance=rng.uniform(0.5, 2, 400))
    with_gate, without = gated.decide_votes(new), plain.decide_votes(new)
    assert (with_gate.answered == (without.answered & ~with_gate.outliers)).all()
    assert (with_gate.p_value == without.p_value).all()
    assert with_gate.outliers[-3:].all()
    assert (without.answered & with_gate.outliers).any()
    assert with_gate.answered.any()
    assert gated.point().promise.startswith(plain.point().promise)
    assert "unlike that of the calibration questions" in gated.point().promise
    assert "with a probability of at most 0.05" in gated.point().promise


def test_a_late_alpha_abstains_on_outliers_too(made):
    policy = dm.calibrate(*made[:2], guarantee=dm.Simultaneous(0.1, 0.1), outlier_level=LEVEL)
    late = policy.decide_votes(made[2], alpha=0.37)
    assert not late.answered[-3:].any()
    assert "unlike that of the calibration questions" in late.rule.promise


def test_one_question_is_decided_as_many_are_and_from_a_file_too(made, policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    loaded, new = dm.Policy.load(tmp_path / "policy.json"), made[2]
    assert loaded.outliers.fingerprint == policy.outliers.fingerprint
    assert [rule.promise for rule in loaded.points] == [rule.promise for rule in policy.points]
    many = policy.decide_votes(new, alpha=0.2)
    for row in range(len(new)):
        one = loaded.decide(new._answers.codes[row], question=new.beside.asked[row], alpha=0.2)
        assert (one.abstained, one.explanation) == (not many.answered[row], many[row].explanation)
        assert one.outlier_p_value == many[row].outlier_p_value == many.likeness.p_value[row]
        assert (one.outlier_p_value <= LEVEL) == bool(many.outliers[row])
    assert (many.columns()["outlier_p_value"] == many.likeness.p_value).all()


def test_a_decision_says_that_its_question_is_unlike_and_by_how_much(policy):
    sure = np.zeros(8, dtype=int)
    odd = policy.decide(sure, question=ODD[0], alpha=0.2)
    assert odd.abstained
    assert odd.outlier_p_value == 1 / 151
    assert "unlike the calibration questions: its p-value among them, 0.006623, is not above 0.05." in odd.explanation
    assert odd.p_value <= 0.2  # its vote alone would be answered
    usual = policy.decide(sure, question=USUAL, alpha=0.2)
    assert usual.answer == 0
    assert usual.outlier_p_value > LEVEL
    notes = policy.decide_votes(_two(ODD[:2])).notes()
    assert "2 questions are unlike the calibration questions, or have no text to tell by: not answered" in notes


def _two(texts):
    return dm.vote(np.zeros((2, 8), dtype=int), questions=texts, ids="ab")


def test_a_question_without_text_is_abstained_on_and_votes_without_any_are_refused(policy):
    sure = np.zeros(8, dtype=int)
    for question in (None, "", "  "):
        nameless = policy.decide(sure, question=question, id="q", alpha=0.2)
        assert nameless.abstained
        assert nameless.outlier_p_value == 0
        assert "has no text to tell by whether it is like the calibration questions" in nameless.explanation
    some = policy.decide_votes(_two([USUAL, None]), alpha=0.2)
    assert some.answered.tolist() == [True, False]
    for questions in (None, [None, ""]):
        nothing = dm.vote(np.zeros((2, 8), dtype=int), ids="ab", questions=questions)
        with pytest.raises(InvalidValue, match="of these votes no question is known by its text; give the questions"):
            policy.decide_votes(nothing)


def test_calibration_questions_need_texts_and_must_be_enough():
    rng = np.random.default_rng(4)
    texts = sums(rng, 60)
    with pytest.raises(InvalidValue, match="1 of 60 calibration questions have no text"):
        dm.calibrate(*vote_on([*texts[:59], None], rng, ids=range(60)), alpha=0.1, outlier_level=LEVEL)
    with pytest.raises(InvalidValue, match="60 of 60 calibration questions have no text"):
        dm.calibrate(dm.vote(np.zeros((60, 3), dtype=int)), [True] * 60, alpha=0.1, outlier_level=LEVEL)
    with pytest.raises(InvalidValue, match=r"60 calibration questions are too few .* at level 0\.01, which needs 198"):
        dm.calibrate(*vote_on(texts, rng), alpha=0.1, outlier_level=0.01)
    for level in (0, 1, -0.1, "few", True):
        with pytest.raises(InvalidValue, match="strictly between 0 and 1"):
            dm.calibrate(*vote_on(texts, rng), alpha=0.1, outlier_level=level)


def test_what_is_promised_of_answers_or_abstentions_refuses_it_and_points_at_the_gate_in_the_key(made, policy):
    votes, right, new, _ = made
    rng = np.random.default_rng(5)
    grouped, labels = vote_on(sums(rng, 300), rng, groups=["a", "b"] * 150)
    sets = dm.VotedPools.of(votes, gold=[0] * len(votes))
    for refused in (
        lambda: dm.calibrate(votes, right, guarantee=dm.Selective(0.1, 0.1), outlier_level=LEVEL),
        lambda: dm.calibrate(votes, right, guarantee=[dm.Marginal(0.1), dm.Selective(0.1, 0.1)], outlier_level=LEVEL),
        lambda: dm.calibrate(grouped, labels, guarantee=dm.Grouped(dm.Selective(0.2, 0.1)), outlier_level=LEVEL),
        lambda: dm.calibrate(sets, alpha=0.1, answer_sets=dm.AnswerSets(0.2), outlier_level=LEVEL),
        lambda: policy.select(new, fdr=0.1),
    ):
        with pytest.raises(InvalidValue, match="calibrate nothing as gate, which is part of the key") as told:
            refused()
        assert "\n" not in str(told.value)
    with pytest.raises(InvalidValue, match="decides by keys alone, and this policy abstains on outliers as well"):
        OnlineThreshold(policy, alpha=0.2)


def test_an_audit_counts_outliers_and_says_that_its_law_is_that_of_the_threshold_alone(made, policy):
    _, _, new, labels = made
    plain = dm.audit_policy(dm.calibrate(*made[:2], alpha=[0.05, 0.2]), new, labels)
    audit = dm.audit_policy(policy, new, labels)
    for ours, theirs in zip(audit, plain, strict=True):
        assert ours.errors <= theirs.errors
        assert ours.answered <= theirs.answered
        assert ours.usual_at_most == theirs.usual_at_most
        assert ours.p_value >= theirs.p_value
        assert ours.outliers == int(policy.decide_votes(new).outliers.sum()) >= 3
        assert ours.document()["outliers"] == ours.outliers
        assert "outliers" not in theirs.document()
        assert ours.verdict.endswith("abstaining on outliers makes them no more.")
        assert "at most" in ours.outlook.sentence
        assert "at most" not in theirs.outlook.sentence
    broken = dm.audit_policy(policy, new, np.zeros(len(new), dtype=bool))
    assert not broken[1].consistent  # errors among questions like the calibration ones still show


def test_the_policy_says_what_it_costs(policy):
    assert "by their rank among 150 of these: at most 0.05 of questions like them" in policy.summary()


def test_a_gate_in_the_key_and_one_behind_the_threshold_go_together(made):
    rng = np.random.default_rng(6)
    gate = dm.OutlierGate.fit(sums(rng, 100))
    votes, right = vote_on(sums(rng, 300), rng, gate=gate)
    policy = dm.calibrate(votes, right, alpha=0.2, outlier_level=LEVEL)
    decided = policy.decide_votes(vote_on(ODD, rng, gate=gate)[0])
    assert decided.gated.all()
    assert decided.outliers.all()


def test_one_question_of_each_cluster_is_what_others_are_compared_with(tmp_path):
    rng = np.random.default_rng(7)
    votes, right = vote_on(sums(rng, 301), rng)
    for known in ({"clusters": [str(row // 3) for row in range(301)]}, {"clusters": None}):
        policy = dm.calibrate(votes, right, alpha=0.2, outlier_level=LEVEL, **known)
        assert len(policy.outliers.ranked) == policy.n // 2
        policy.save(tmp_path / "policy.json")
        assert dm.Policy.load(tmp_path / "policy.json").n == policy.n


def test_labels_in_part_or_of_a_judge_have_no_say_in_the_gate(made, tmp_path):
    votes, right = made[:2]
    some = [bool(label) if row % 3 else None for row, label in enumerate(right)]
    part = dm.calibrate(votes, some, alpha=0.2, partly_labelled=True, outlier_level=LEVEL)
    full = dm.calibrate(votes, right, alpha=0.2, outlier_level=LEVEL)
    assert part.outliers.fingerprint == full.outliers.fingerprint
    checked = [bool(label) if row % 2 else None for row, label in enumerate(right)]
    for guarantee in (dm.Marginal(0.2), dm.JudgeMarginal(0.2)):
        judged = dm.calibrate(votes, right, guarantee=guarantee, checked=checked, outlier_level=LEVEL)
        judged.save(tmp_path / "policy.json")
        loaded = dm.Policy.load(tmp_path / "policy.json")
        assert "unlike that of the calibration questions" in loaded.point().promise


def test_questions_that_are_held_out_are_not_those_that_others_are_compared_with(made):
    policy = dm.calibrate(*made[:2], alpha=0.2, outlier_level=LEVEL, hold_out=0.4)
    assert len(policy.outliers.ranked) == policy.n // 2 < 120
    assert dm.audit_policy(policy, *made[:2])[0].consistent


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_file_holds_distances_and_no_texts_and_others_stay_as_they_were(made, policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    written = (tmp_path / "policy.json").read_text()
    assert "Ann" not in written
    assert not any(thing in written for thing in THINGS)
    stored = json.loads(written)["outliers"]
    assert sorted(stored) == ["features", "fitted_on", "level", "mean", "ranked", "spread"]
    assert (len(stored["mean"]), len(stored["ranked"]), stored["fitted_on"]) == (512, 150, [])
    dm.calibrate(*made[:2], alpha=[0.05, 0.2]).save(tmp_path / "plain.json")
    plain, ours = json.loads((tmp_path / "plain.json").read_text()), json.loads(written)
    for document in (plain, ours):
        document.pop("digest")
    assert ours.pop("outliers")
    assert ours == plain  # what is new is one entry, and a file without it is one of before
    assert dm.Policy.load(tmp_path / "plain.json").outliers is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda document: document.update(outliers=None), "an outlier gate holds"),
        (lambda document: document["outliers"].update(level=1.5), "strictly between 0 and 1"),
        (lambda document: document["outliers"].update(level=0.001), "too few for a gate at level"),
        (lambda document: document["outliers"]["ranked"].pop(), "every second of the 301"),
        (lambda document: document["outliers"]["ranked"].reverse(), "must ascend"),
        (lambda document: document["outliers"].update(fitted_on=["0" * 16]), "and name none, got 150 ranked and 1"),
        (lambda document: document["outliers"]["mean"].pop(), "512 means"),
        (lambda document: document["outliers"]["spread"].__setitem__(0, 0), "spreads above 0"),
        (lambda document: document["outliers"].update(features=99), "version 99"),
        (lambda document: document["points"][0].update(threshold=[0.01, 0.5]), "does not follow from its evidence"),
    ],
)
def test_a_file_that_was_tampered_with_and_sealed_again_is_refused(policy, tmp_path, change, told):
    _change(policy, tmp_path / "policy.json", change)
    with pytest.raises(PolicyFileError, match=told):
        dm.Policy.load(tmp_path / "policy.json")


def test_a_file_whose_promise_would_not_survive_the_gate_is_refused(made, policy, tmp_path):
    selective = dm.calibrate(*made[:2], guarantee=dm.Selective(0.2, 0.1))
    sets = dm.calibrate(dm.VotedPools.of(made[0], gold=[0] * 301), alpha=0.2, answer_sets=dm.AnswerSets(0.2, share=0.3))
    for other in (selective, sets):
        gate = policy.outliers.document()
        gate["ranked"] = gate["ranked"][: other.n // 2]
        _change(other, tmp_path / "policy.json", lambda document, gate=gate: document.update(outliers=gate))
        with pytest.raises(PolicyFileError, match="whose promise does not survive that"):
            dm.Policy.load(tmp_path / "policy.json")


def _change(policy, path, change):
    policy.save(path)
    document = json.loads(path.read_text())
    document.pop("digest")
    change(document)
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


# --- the report -----------------------------------------------------------------------------------------------------


def test_a_report_counts_no_answers_to_outliers_and_says_why():
    rng = np.random.default_rng(9)
    texts = [*sums(rng, 260), *(f"{odd} {number}" for number in range(8) for odd in ODD)]
    pools = [
        Pool(
            Problem(f"q{row}", text, ("7",), extra={"task": "math"}),
            tuple(Path(text="", answer=str(7 if rng.random() < 0.9 else rng.integers(7))) for _ in range(6)),
        )
        for row, text in enumerate(texts)
    ]
    source = PoolSource(pools)
    voted = vote_pools(source)
    policy = dm.calibrate(voted.take(np.arange(150)), alpha=0.2, outlier_level=LEVEL)
    facts, decided = report_facts(source, voted, policy, title="x"), policy.decide_votes(voted.votes)
    (point,) = [point for point in facts["points"] if point["chosen"]]
    fresh = np.arange(150, len(texts))
    assert point["observed"]["answered"] == decided.answered[fresh].mean()
    assert point["observed"]["errors"] == (decided.answered & ~voted.labelled)[fresh].sum()
    assert "unlike that of the calibration questions" in point["promise"]
    assert "unlike the calibration questions" in facts["confidence"]["unlike"]
    assert any("abstained on as well" in note for note in facts["warnings"])
    keys = np.array(facts["questions"]["key"])
    assert ((keys[:, 0] == 0) == decided.outliers).all()
    assert facts["questions"]["confidence"] == voted.votes.confidence.tolist()
    assert (without_outliers(policy, voted).votes.key[~decided.outliers] == voted.votes.key[~decided.outliers]).all()
    assert decided.outliers[-24:].all()
