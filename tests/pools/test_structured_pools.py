"""Pools whose answers are objects or calls: voted on, calibrated, saved, and decided on by rules that need no file."""

from __future__ import annotations

import json

import pytest

import demur as dm
from demur import answers, tasks
from demur.errors import InvalidValue, PipelineMismatch, PoolFileError
from demur.records import Path, Pool, Problem

SCHEMA = {"type": "object", "properties": {"total": {"type": ["number", "string"]}}, "required": ["total"]}
RULES = {
    "schema": SCHEMA,
    "ignore": ["/id"],
    "unordered": ["/tags"],
    "compare": {"/total": "mathematics", "/city": "text"},
}
RELATION = answers.json_relation(**RULES)


def paths(row):
    """Three that agree by the rules, however they are written, and one that does not."""
    same = {"id": row, "total": row / 2, "city": "Paris", "tags": ["a", "b"]}
    return (
        Path(same),
        Path(json.dumps({"tags": ["b", "a"], "city": "the paris.", "total": f"{row}/2", "id": "x"})),
        Path({**same, "id": None, "total": f"\\frac{{{row}}}{{2}}"}),
        Path({**same, "total": row}),
        Path({"sum": row}),  # against the schema
    )


def source(start=1, gold=lambda row: {"total": row / 2, "city": "PARIS", "tags": ["a", "b"]}, **extra):
    rows = range(start, start + 40)
    return dm.PoolSource([Pool(Problem(f"q{row}", f"Q {row}", (gold(row),), extra=extra), paths(row)) for row in rows])


def test_a_policy_holds_the_rules_and_reads_raw_answers_by_them(tmp_path):
    voted = dm.vote_pools(source(), dm.FieldChoice(relation=RELATION.spec))
    assert voted.correct.all()
    assert voted.votes.confidence.tolist() == pytest.approx([0.6] * 40)
    policy = dm.calibrate(voted, alpha=0.3)
    assert policy.pipeline["answers"]["relation"] == RELATION.spec
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.fingerprint == policy.fingerprint
    loaded.check(loaded.vote(source(100)).votes)
    decision = loaded.decide([path.answer for path in paths(7)])
    assert decision.confidence == pytest.approx(0.6)
    assert json.loads(decision.answer)["total"] in (3.5, "7/2", "\\frac{7}{2}")
    assert loaded.decide(["{", "no", None, "", {"sum": 1}]).confidence == 0


def test_other_rules_are_another_pipeline():
    policy = dm.calibrate(dm.vote_pools(source(), dm.FieldChoice(relation=RELATION.spec)), alpha=0.3)
    other = answers.json_relation(**{**RULES, "ignore": ["/id", "/tags"]}).spec
    with pytest.raises(PipelineMismatch, match=r"answers\.relation is 'json@1:"):
        policy.check(dm.vote_pools(source(100), dm.FieldChoice(relation=other)).votes)


def test_gold_may_be_an_object_a_text_or_a_list_in_a_list():
    for gold in (
        lambda row: json.dumps({"total": f"{row}/2", "city": "Paris", "tags": ["b", "a"]}),
        lambda row: {"total": row / 2, "city": "Paris", "tags": ["b", "a"]},
    ):
        assert dm.vote_pools(source(gold=gold), dm.FieldChoice(relation=RELATION.spec)).correct.all()
    assert not dm.vote_pools(
        source(gold=lambda row: {"total": row}), dm.FieldChoice(relation=RELATION.spec)
    ).correct.any()
    calls = [{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}]
    pool = Pool(Problem("q", "?", (calls,)), (Path(calls), Path(json.dumps({"tool_calls": calls}))))
    voted = dm.vote_pools(dm.PoolSource([pool]), dm.FieldChoice(relation="tool-calls"))
    assert voted.correct.all()
    assert voted.votes.confidence.tolist() == [1]


def test_relations_of_texts_still_take_no_objects():
    for relation in ("plain", "mathematics", None):
        fields = dm.FieldChoice(relation=relation)
        with pytest.raises(PoolFileError, match="problem 'q', path 0: an answer must be a string or a number, got"):
            dm.vote_pools(dm.PoolSource([Pool(Problem("q", gold=("1",)), (Path({"a": 1}),))]), fields)
        with pytest.raises(PoolFileError, match="problem 'q': an answer must be a string or a number, got"):
            dm.vote_pools(dm.PoolSource([Pool(Problem("q", gold=({"a": 1},)), (Path("1"),))]), fields)


def test_a_pointer_that_no_answer_has_is_an_error_where_rules_are_chosen_and_none_where_a_policy_has_them():
    relation = answers.json_relation(ignore=["/id", "/ids"], unordered=["/tag"])
    with pytest.raises(InvalidValue, match="the rules for answers name '/ids', '/tag', and no answer has that"):
        dm.vote_pools(source(), dm.FieldChoice(relation=relation.spec))
    policy = dm.calibrate(dm.vote_pools(source(), dm.FieldChoice(relation=RELATION.spec)), alpha=0.3)
    few = Pool(Problem("new", "New?"), (Path({"total": 1}),))
    assert policy.vote(dm.PoolSource([few]), labelled=False).votes.answer.tolist() == ['{"total": 1}']


def test_the_rules_of_a_file_are_taken_once(tmp_path):
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(RULES))
    fields = dm.FieldChoice(relation=f"json:{file}")
    file.unlink()
    assert fields.relation == RELATION.spec
    assert dm.vote_pools(source(), fields).correct.all()


def test_a_policy_reads_no_file_that_it_names(tmp_path):
    policy = dm.calibrate(dm.vote_pools(source(), dm.FieldChoice(relation="json")), alpha=0.3)
    file = tmp_path / "rules.json"
    file.write_text("{}")
    for told in (f"json:{file}", f"json@1:{file}", "json@2", 'json@1:{"ignore":"x"}', "json@1:{", "json@1:{}"):
        with pytest.raises(InvalidValue, match=r"this policy compares answers by json.*calibrate again"):
            dm.FieldChoice.of(policy.description.updated(type(policy.description)(answers={"relation": told})))


def test_a_task_may_have_rules_of_its_own_beside_others(monkeypatch):
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    tasks.register(tasks.Task("orders", RELATION, origin="me"))
    mixed = dm.PoolSource([*source(task="orders").pools, *source(100, task="orders").pools[:5], *_sums(10)])
    policy = dm.calibrate(dm.vote_pools(mixed), alpha=0.3)
    assert policy.pipeline["answers"]["relation"] == f"by-task({RELATION.spec},mathematics@3)"
    assert tasks.relations_of(policy.pipeline["answers"]["relation"]) == [RELATION.spec, "mathematics@3"]
    policy.check(policy.vote(source(200, task="orders")).votes)
    decision = policy.decide(
        [{"total": 1}, *[{"total": "2/2"}] * 4], question=Problem("q", "?", extra={"task": "orders"})
    )
    assert decision.confidence == 1


def _sums(n):
    return [Pool(Problem(f"s{row}", f"Sum {row}", ("1",), extra={"task": "math"}), (Path("1"),)) for row in range(n)]


@pytest.mark.parametrize(
    "specs",
    [
        ["mathematics@3"],
        ["json@1", "text@3"],
        [answers.json_relation(ignore=["/a,b:{"], compare={"/x)": "text"}).spec, "text@3", "tool-calls@1"],
        ["choice@3", RELATION.spec, answers.tool_calls_relation(unordered=[""]).spec],
    ],
)
def test_lists_of_relations_are_read_back(specs):
    assert tasks.relations_of(tasks.by_task(specs)) == sorted(specs)
    assert tasks.relations_of(specs[0]) == specs[:1]
