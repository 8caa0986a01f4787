"""A policy names the relations that compared its answers, and refuses files that would be compared by others."""

from __future__ import annotations

import pytest

import demur as dm
from demur.errors import InvalidValue, PipelineMismatch
from demur.records import Path, Pool, Problem


def source(*tasks, start=0):
    """Forty pools, their tasks in turn; None for a file that names none."""
    made = []
    for row in range(start, start + 40):
        task = tasks[row % len(tasks)]
        problem = Problem(f"q{row}", f"Question {row}", ("1/2",), extra={} if task is None else {"task": task})
        made.append(Pool(problem, (Path("0.5"), Path("1/2"))))
    return dm.PoolSource(made)


def policy_of(*tasks, **how):
    return dm.calibrate(dm.vote_pools(source(*tasks), dm.FieldChoice(**how)), alpha=0.3)


@pytest.mark.parametrize(
    ("tasks", "relation"),
    [
        (("math",), "by-task(mathematics@3)"),
        ((None,), "by-task(auto@2)"),
        (("math", None), "by-task(auto@2,mathematics@3)"),
        (("mc", "qa", "mathematics"), "by-task(choice@3,mathematics@3,text@3)"),
    ],
)
def test_the_relations_in_use_are_named(tasks, relation):
    assert policy_of(*tasks).pipeline["answers"]["relation"] == relation


def test_a_file_with_tasks_and_one_without_have_different_fingerprints_and_exclude_each_other():
    with_task, without = policy_of("math"), policy_of(None)
    assert with_task.fingerprint != without.fingerprint
    with pytest.raises(PipelineMismatch, match=r"relation is 'by-task\(mathematics@3\)' in the policy, 'by-task\(auto"):
        with_task.check(with_task.vote(source(None, start=100)).votes)
    with pytest.raises(PipelineMismatch, match="relation is"):
        without.check(without.vote(source("math", start=100)).votes)
    with_task.check(with_task.vote(source("math", start=100)).votes)


def test_a_policy_of_several_tasks_takes_files_with_some_of_them():
    mixed = policy_of("math", "qa")
    for tasks in (("math",), ("qa",), ("qa", "math")):
        mixed.check(mixed.vote(source(*tasks, start=100)).votes)
    with pytest.raises(PipelineMismatch, match="relation is"):
        mixed.check(mixed.vote(source("math", "mc", start=100)).votes)


def test_a_named_relation_compares_files_with_and_without_tasks_alike():
    named = policy_of("math", relation="mathematics")
    assert named.pipeline["answers"]["relation"] == "mathematics@3"
    named.check(named.vote(source(None, start=100)).votes)


def test_policies_that_name_all_relations_still_read_any_file():
    before = policy_of("math")
    every = "by-task(auto@2,choice@3,mathematics@3,plain@2,text@3)"
    choice = dm.FieldChoice.of(before.description.updated(type(before.description)(answers={"relation": every})))
    assert choice.describe([Problem("q", "Why?")])["relation"] == every
    other = before.description.updated(type(before.description)(answers={"relation": "by-task(mathematics@9)"}))
    with pytest.raises(InvalidValue, match=r"mathematics@9.*calibrate again"):
        dm.FieldChoice.of(other)


def test_one_pool_is_read_and_compared_as_the_files_of_its_policy_were():
    policy = dm.calibrate(dm.vote_pools(source("math"), dm.FieldChoice(missing=("No answer!",))), alpha=0.3)
    decision = policy.decide(["0.5", r"\frac12"])
    assert (decision.answer, decision.confidence, decision.support) == ("0.5", 1.0, {"0.5": 2})
    assert policy.decide(["No answer!", " No answer! "]).abstained
    assert policy.decide(["", None]).confidence == 0
    assert policy.decide([0.5, "1/2"]).confidence == 1
    mixed = policy_of("math", "qa")
    with pytest.raises(InvalidValue, match=r"by the task of each question \(mathematics@3, text@3\)"):
        mixed.decide(["0.5", "1/2"])
    assert mixed.decide(["0.5", "1/2"], question=Problem("q", "?", extra={"task": "math"})).confidence == 1
    assert mixed.decide(["0.5", "1/2"], question=Problem("q", "?", extra={"task": "qa"})).confidence == 0.5
    with pytest.raises(PipelineMismatch, match="'choice@3' here"):
        mixed.decide(["A", "A"], question=Problem("q", "?", extra={"task": "mc"}))


def test_a_task_for_all_problems_is_part_of_the_policy_and_overrides_what_files_name():
    policy = policy_of(None, task="gsm8k")
    assert policy.pipeline["answers"]["relation"] == "by-task(mathematics@3)"
    assert policy.pipeline["answers"]["read_as"] == "gsm8k"
    for tasks in ((None,), ("qa",), ("no such task",)):
        policy.check(policy.vote(source(*tasks, start=100)).votes)
    assert policy.decide(["0.5", r"\frac12"]).confidence == 1
    loaded = dm.FieldChoice.of(policy.description)
    assert loaded.task == "gsm8k"


def test_a_task_that_nobody_knows_is_an_error_that_names_those_there_are():
    with pytest.raises(
        InvalidValue, match=r"the task 'sums' is not known; known are math \(mathematics, .*gsm8k.*; qa .*"
    ):
        dm.vote_pools(source("sums"))
    with pytest.raises(InvalidValue, match="the task 'sums' is not known"):
        dm.FieldChoice(task="sums")
