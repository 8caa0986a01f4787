"""The label rule is part of a policy: stored, told, and an audit under another rule is refused."""

from __future__ import annotations

import json

import pytest

import demur as dm
from demur.errors import InvalidValue, LabelMismatch, PolicyFileError
from demur.policy import file
from demur.policy.document import to_document
from demur.pools.label_rule import LabelJudge, LabelRule
from demur.pools.verdicts import Verdict, Verdicts
from demur.records import Path, Pool, Problem

JUDGED = LabelJudge("openai:m agreement@1")


def source(n=60, first=0, gold="Paris"):
    """Most pools say where the Louvre is; each in words of its own."""
    said = ["Paris", "in Paris", "Rome", "the city of Paris", "Paris"]
    pools = [
        Pool(
            Problem(f"q{i}", f"Where is painting {i}?", (gold,), extra={"task": "qa"}),
            tuple(Path(said[(i + j // 3) % len(said)], extra={"ok": (i + j // 3) % 5 == 0}) for j in range(5)),
        )
        for i in range(first, first + n)
    ]
    return dm.PoolSource(pools)


def verdicts(of, *, checked=0):
    rows = []
    for pool in of.pools:
        for answer in ("in Paris", "Rome", "city of Paris"):
            about = pool.problem.digest, pool.problem.question, answer, ("Paris",)
            seen = {"person": answer != "Rome", "drawn": True} if len(rows) < checked else {}
            rows.append(Verdict(*about, answer != "Rome", JUDGED.name, **seen))
    return Verdicts(rows)


def rules():
    return {
        "plain": LabelRule(),
        "field": LabelRule("ok"),
        "tolerance": LabelRule(tolerance="0.01"),
        "containment": LabelRule(containment=True),
        "both": LabelRule(tolerance="1/3", containment=True),
        "judge": LabelRule(verdicts=verdicts(source())),
        "all": LabelRule(None, "0.05", True, verdicts=verdicts(source(), checked=7)),
    }


@pytest.mark.parametrize("name", rules())
def test_a_policy_keeps_its_rule_from_file_to_file(name, tmp_path):
    rule = rules()[name]
    policy = dm.calibrate(dm.vote_pools(source(), correct=rule), alpha=0.3)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.labels == policy.labels == rule
    assert not loaded.labels.differs(rule)
    assert LabelRule.of(json.loads(json.dumps(rule.describe()))) == rule
    assert [point.promise for point in loaded.points] == [point.promise for point in policy.points]
    assert loaded.summary() == policy.summary()


def test_policies_without_a_rule_mean_gold_by_the_relation(tmp_path):
    policy = dm.calibrate(dm.vote_pools(source()), alpha=0.3)
    document = to_document(policy)
    assert "labels" not in document  # what policies of before have
    file.write(document, tmp_path / "old.json")
    old = dm.Policy.load(tmp_path / "old.json")
    assert old.labels == LabelRule()
    assert "right:" not in old.summary()
    assert dm.audit_policy(old, dm.vote_pools(source(20, first=100))).n == 20
    with pytest.raises(LabelMismatch):
        dm.audit_policy(old, dm.vote_pools(source(20, first=100), correct=LabelRule(containment=True)))


@pytest.mark.parametrize(
    "labels",
    [
        [],
        {"gold": "judge"},
        {"field": 5},
        {"field": ""},
        {"field": "ok", "tolerance": "0.1"},
        {"gold": "relation", "tolerance": 0.1},
        {"gold": "relation", "tolerance": "7"},
        {"gold": "relation", "containment": 2},
        {"gold": "relation", "judge": "m"},
        {"gold": "relation", "judge": {"name": "m", "checked": 1, "confirmed": 2}},
        {"gold": "relation", "judge": {"name": " ", "checked": 1, "confirmed": 1}},
        {"gold": "relation", "judge": {"name": "m", "checked": True}},
        {"gold": "relation", "later": 1},
    ],
)
def test_a_rule_that_makes_no_sense_is_no_usable_policy(labels, tmp_path):
    document = {**to_document(dm.calibrate(dm.vote_pools(source()), alpha=0.3)), "labels": labels}
    file.write(document, tmp_path / "policy.json")
    with pytest.raises(PolicyFileError, match="is not a usable policy"):
        dm.Policy.load(tmp_path / "policy.json")


@pytest.mark.parametrize("ours", rules())
@pytest.mark.parametrize("theirs", rules())
def test_an_audit_under_another_rule_is_refused_and_under_the_same_is_not(ours, theirs):
    fresh = source(30, first=100)
    policy = dm.calibrate(dm.vote_pools(source(), correct=rules()[ours]), alpha=0.3)
    rule = rules()[theirs]
    if rule.judge is not None:
        rule = LabelRule(None, rule.tolerance, rule.containment, verdicts=verdicts(fresh))
    voted = dm.vote_pools(fresh, correct=rule)
    if ours == theirs:
        assert dm.audit_policy(policy, voted).n == 30
        return
    with pytest.raises(LabelMismatch) as refused:
        dm.audit_policy(policy, voted)
    told = str(refused.value)
    assert policy.labels.told in told
    assert rule.told in told
    assert "\n" not in told


def test_the_refusal_names_what_makes_the_rules_equal():
    policy = dm.calibrate(dm.vote_pools(source(), correct=LabelRule(tolerance="0.01", containment=True)), alpha=0.3)
    with pytest.raises(LabelMismatch) as refused:
        dm.audit_policy(policy, dm.vote_pools(source(30, first=100)))
    assert refused.value.remedy == (
        "label these with {gold_tolerance=0.01} and {gold_containment=True}, or calibrate again"
    )
    plain = dm.calibrate(dm.vote_pools(source()), alpha=0.3)
    with pytest.raises(LabelMismatch) as refused:
        dm.audit_policy(plain, dm.vote_pools(source(30, first=100), correct="ok"))
    assert refused.value.remedy == "leave {correct=ok} out, or calibrate again"
    lenient = LabelRule(tolerance="0.01", containment=True)
    with pytest.raises(LabelMismatch) as refused:
        dm.audit_policy(plain, dm.vote_pools(source(30, first=100), correct=lenient))
    assert refused.value.remedy == "leave {gold_tolerance=0.01} and {gold_containment=True} out, or calibrate again"
    with pytest.raises(LabelMismatch) as refused:
        dm.audit_policy(policy, dm.vote_pools(source(30, first=100), correct="ok"))
    assert refused.value.remedy == (
        "label these with {gold_tolerance=0.01} and {gold_containment=True}, and without {correct=ok}, "
        "or calibrate again"
    )


def test_another_judge_is_another_rule_and_more_checks_of_the_same_are_not():
    first, checked = (LabelRule(verdicts=verdicts(source(), checked=count)) for count in (0, 9))
    other = LabelRule(judge=LabelJudge("another"))
    assert first != checked
    assert not first.differs(checked)
    assert first.differs(other)


def test_arrays_say_nothing_of_a_rule_and_are_audited_as_before():
    voted = dm.vote_pools(source(), correct=LabelRule(containment=True))
    policy = dm.calibrate(voted, alpha=0.3)
    fresh = dm.vote_pools(source(30, first=100))
    assert dm.audit_policy(policy, fresh.votes, fresh.labelled, questions=None).n == 30


def promise(rule):
    return dm.calibrate(dm.vote_pools(source(), correct=rule), alpha=0.3).points[0].promise


def test_the_promise_says_wrong_by_this_judge_until_people_have_checked():
    assert promise(LabelRule(verdicts=verdicts(source()))).endswith(
        "averaged over calibration sets. Wrong means wrong by the judge openai:m agreement@1 (unchecked)."
    )
    assert promise(LabelRule(verdicts=verdicts(source(), checked=7))).endswith(
        "Wrong means wrong by the judge openai:m agreement@1, which people confirmed on 7 of 7 verdicts checked at "
        "random."
    )


def test_the_promise_says_what_else_counts_as_right():
    assert promise(LabelRule()).endswith("averaged over calibration sets.")
    assert promise(LabelRule(tolerance="0.01", containment=True)).endswith(
        "Right is gold by the relation, or within 0.01 of its value, or in an answer that holds its words."
    )
    assert promise(LabelRule("ok")).endswith("Wrong means wrong by the field 'ok' of the paths.")


def test_every_decision_and_the_summary_carry_it():
    policy = dm.calibrate(dm.vote_pools(source(), correct=LabelRule(verdicts=verdicts(source()))), alpha=0.3)
    assert "wrong by the judge openai:m" in policy.decide(["Paris"] * 5).explanation
    assert "right: gold by the relation, or by the judge openai:m agreement@1 (unchecked)" in policy.summary()


def test_labels_are_no_part_of_the_pipeline():
    policies = [dm.calibrate(dm.vote_pools(source(), correct=rule), alpha=0.3) for rule in rules().values()]
    assert len({policy.fingerprint for policy in policies}) == 1


def test_lenient_labels_answer_more_at_the_same_alpha():
    strict, lenient = (
        dm.calibrate(dm.vote_pools(source(200), correct=rule), alpha=0.3)
        for rule in (None, LabelRule(containment=True))
    )
    assert lenient.forecast().answered > strict.forecast().answered


def test_a_report_under_another_rule_is_refused():
    policy = dm.calibrate(dm.vote_pools(source(), correct=LabelRule(containment=True)), alpha=0.3)
    with pytest.raises(LabelMismatch):
        dm.report(source(30, 100), policy, voted=dm.vote_pools(source(30, first=100)), title="x")


def test_a_rule_needs_a_judge_with_a_name():
    with pytest.raises(InvalidValue, match="a judge of labels needs a name"):
        LabelJudge(" ")
