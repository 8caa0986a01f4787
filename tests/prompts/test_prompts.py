"""Prompts: every slot filled once, nothing else touched, files checked."""

from __future__ import annotations

import pytest

from demur.errors import InvalidValue
from demur.prompts.templates import NAMED, Template, read_template, template_of
from demur.records import Problem
from demur.tasks import task_named

PROBLEM = Problem("q", "Who wrote {options} and {question}?", ("secret gold",), extra={"task": "qa"})


def test_what_a_question_says_is_not_filled_in_again():
    prompt = Template("Q: {question} {x} {{}}").render(PROBLEM)
    assert prompt.messages[-1]["content"] == "Q: Who wrote {options} and {question}? {x} {{}}"


def test_passages_and_options_stand_in_their_slots_and_are_asked_for():
    problem = Problem("q", "Which?", extra={"passages": ["One.", "Two."], "options": ["red", "blue"]})
    text = Template("{passages}|{question}|{options}", kind="completion").render(problem).text
    assert text == "One.\n\nTwo.|Which?|A. red\nB. blue"
    with pytest.raises(InvalidValue, match="no passages"):
        Template("{passages}{question}").render(PROBLEM)


@pytest.mark.parametrize("name", NAMED)
def test_no_prompt_tells_gold(name):
    problem = Problem("q", "Which?", ("secret gold",), extra={"passages": ["One."], "options": ["red"]})
    prompt = NAMED[name].render(problem)
    assert "secret gold" not in str(prompt)
    assert "Which?" in str(prompt)


def test_prompts_by_task():
    def template(task, *, small=False, **extra):
        return task_named(task).prompt(Problem("q", "Which?", extra={"task": task, **extra}), small=small)

    assert "\\boxed{}" in template("math").user
    assert "<answer>" in template("qa", passages=["One."]).user
    assert "{passages}" not in template("qa").user
    assert "{options}" in template("mc", small=True).user
    assert template("math", small=True).kind == "completion"
    with pytest.raises(InvalidValue, match="no prompt for the task 'plain'; give one of your own as prompt"):
        template("plain")


def test_prompts_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('system = "Be brief."\nuser = "{question}"\nstop = ["\\n"]\n')
    assert read_template(str(file)) == Template("{question}", "Be brief.", "chat", ("\n",))
    assert read_template("mathematics") is NAMED["mathematics"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('user = "no slot"', "must hold {question}"),
        ("user = 3", "user must be str"),
        ("x = 1", "unknown key 'x'; expected one of user, system, kind, stop"),
        ("stop = []", "needs 'user'"),
        ('user = "{question}"\nstop = "x"', "stop must be tuple"),
        ('user = "{question}"\nkind = "poem"', "chat, completion or conversation"),
        ("user = ", "cannot be read"),
    ],
)
def test_wrong_files_are_refused(tmp_path, written, said):
    file = tmp_path / "mine.toml"
    file.write_text(written)
    with pytest.raises(InvalidValue, match=said):
        read_template(str(file))


def test_a_problem_without_a_question_is_refused():
    with pytest.raises(InvalidValue, match="no question"):
        NAMED["mathematics"].render(Problem("q"))
    with pytest.raises(InvalidValue, match="there is no prompt"):
        read_template("none.toml")


TALK = [
    {"role": "developer", "content": "Be {question} brief."},
    {"role": "user", "content": "What is {options}?"},
    {"role": "assistant", "content": "5"},
    {"role": "user", "content": " And twice that? \n"},
]


def put(template, messages=TALK, **extra):
    return [dict(message) for message in template.render(Problem("q", extra={"messages": messages, **extra})).messages]


def test_a_conversation_is_put_as_it_is():
    assert put(NAMED["conversation"]) == TALK
    (alone,) = NAMED["conversation"].render(Problem("q", " Why? ")).messages
    assert alone == {"role": "user", "content": " Why? "}


def test_a_template_of_a_conversation_says_something_before_the_first_and_around_the_last():
    mine = Template("{question}\n\n{options}\nAnswer in one word.", system="You are careful.", kind="conversation")
    developer, *middle, last = put(mine, options=["red", "blue"])
    assert developer == {"role": "developer", "content": "You are careful.\n\nBe {question} brief."}
    assert middle == TALK[1:3]
    assert last["content"] == " And twice that? \n\n\nA. red\nB. blue\nAnswer in one word."
    assert put(mine, TALK[1:], options=["red"])[0] == {"role": "system", "content": "You are careful."}
    with pytest.raises(InvalidValue, match="no options"):
        put(mine)


def test_a_conversations_template_comes_from_a_file_and_back_from_its_description(tmp_path):
    file = tmp_path / "talk.toml"
    file.write_text('kind = "conversation"\nuser = "{question}\\n\\nBe brief."\n')
    template = read_template(str(file))
    assert put(template)[-1]["content"] == " And twice that? \n\n\nBe brief."
    assert template_of(template.describe(), "a policy") == template


def test_no_other_prompt_flattens_a_conversation():
    for name, template in NAMED.items():
        if name != "conversation":
            with pytest.raises(InvalidValue, match="is a conversation of 4 messages, and the prompt puts one question"):
                put(template, passages=["One."], options=["red"])
