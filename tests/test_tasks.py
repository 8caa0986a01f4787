"""Tasks: one object per kind of question, its names aliases, its name taken once."""

from __future__ import annotations

import pytest

from demur import tasks
from demur.answers import auto, choice, mathematics, plain, text
from demur.errors import DatasetError, InvalidValue
from demur.prompts.conversations import with_transcript
from demur.records import Problem


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))


@pytest.mark.parametrize(
    ("names", "relation"),
    [
        (("math", "mathematics", "MATH"), mathematics),
        (("qa", "text", "open"), text),
        (("mc", "choice", "Multiple_Choice"), choice),
        (("gsm8k", "openai/GSM8K", "math500", "svamp"), mathematics),
        (("hotpotqa", "HotpotQA", "squad"), text),
        (("mmlu", "TIGER-Lab/MMLU_Pro", "gpqa"), choice),
        (("plain", "Plain"), plain),
        (("auto", None, ""), auto),
    ],
)
def test_names_are_aliases_of_one_object(names, relation):
    assert len({id(tasks.task_named(name)) for name in names}) == 1
    assert tasks.task_named(names[0]).relation is relation


@pytest.mark.parametrize("name", ["no such task", 3, ["math"], "maths!", "add1"])
def test_a_name_that_nobody_knows_is_refused_with_those_there_are(name):
    with pytest.raises(InvalidValue, match=r"is not known; known are math \(mathematics, maths, gsm8k.*plain"):
        tasks.task_named(name)


def test_options_are_known_where_choices_are_read():
    problem = Problem("q", "Which?", extra={"options": ["Rome", "Paris"]})
    assert tasks.MC.read(problem, "paris.").answer == "B"
    assert tasks.QA.read(problem, "paris.").answer == "paris"
    assert tasks.MC.read(problem, "(B)", truncated=True).answer is None


def test_a_task_of_ones_own(registry):
    mine = tasks.register(
        tasks.Task("sums", mathematics, template=tasks.MATH.template, aliases=("adding",), origin="me")
    )
    assert tasks.task_of(Problem("q", "?", extra={"task": "Adding"})) is mine
    assert tasks.register(mine) is mine  # the same one twice is one


@pytest.mark.parametrize("task", [tasks.Task("math", plain, origin="theirs"), tasks.Task("x", plain, ("y",))])
def test_a_name_that_is_taken_is_refused_and_both_sides_are_named(registry, task):
    if task.name == "x":
        tasks.register(tasks.Task("x", text, origin="ours"))
    with pytest.raises(
        InvalidValue, match=rf"{task.name!r} is registered twice, by (demur|ours) and by .*uninstall one"
    ):
        tasks.register(task)


def test_problems_must_agree_on_their_task():
    def problems(*names):
        return [Problem(str(at), "?", extra={} if name is None else {"task": name}) for at, name in enumerate(names)]

    assert tasks.common_task(problems("qa", "qa")) == "qa"
    with pytest.raises(DatasetError, match="name no task; say which with task: math, qa, mc"):
        tasks.common_task(problems(None))
    with pytest.raises(DatasetError, match="the tasks math, qa; name one with task"):
        tasks.common_task(problems("math", "qa"))


@pytest.mark.parametrize(
    ("before", "last", "said", "answer"),
    [
        ("How many are there?", "Is it red?", "Yes, it is red because of iron.", "Yes"),
        ("Is it red?", "Who found it?", "It was found by Ada Lovelace.", None),
        ("Why?", "It says [user] there. Is it red?", "No. It is blue.", "No"),
    ],
)
def test_a_path_of_a_conversation_is_read_as_an_answer_to_its_last_message(before, last, said, answer):
    messages = [{"role": "user", "content": before}, {"role": "assistant", "content": "3"}]
    talk = with_transcript(
        Problem("q", extra={"task": "qa", "messages": [*messages, {"role": "user", "content": last}]})
    )
    alone = Problem("q", last, extra={"task": "qa"})
    read = tasks.task_named("qa").read(talk, said).answer
    assert read == tasks.task_named("qa").read(alone, said).answer
    assert answer is None or read == answer


def test_messages_that_are_no_conversation_leave_the_question_as_it_is():
    for messages in ([], "Hi", [3], [{"role": "user", "content": None}], [{"role": "user", "content": "Why?"}]):
        assert tasks.asked_by(Problem("q", "Is it red?", extra={"messages": messages})).question == "Is it red?"
