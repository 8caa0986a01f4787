"""Datasets: the sources' own formats, our files, the built-in sets, and the hub's code on files made here."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from demur import answers
from demur.datasets import load
from demur.errors import DatasetError, MissingExtra
from demur.tasks import common_task

GSM8K = {"question": "How many?", "answer": "2+2=<<2+2=4>>4\n#### 1,234"}
MATH = {"problem": "Find $x$.", "level": "Level 5", "type": "Algebra", "solution": "So $x=\\boxed{\\frac{1}{2}}$."}
HOTPOT = {
    "_id": "abc",
    "question": "Who?",
    "answer": "Bob",
    "type": "bridge",
    "context": [["Title", ["One. ", "Two."]]],
}
MMLU = {"question": "Which?", "choices": ["red", "blue", "green", "grey"], "answer": 2, "subject": "colours"}
MMLU_PRO = {"question": "Which?", "options": list("vwxyz"), "answer": "E", "category": "letters"}


def write(tmp_path, records, name="set.jsonl"):
    file = tmp_path / name
    text = json.dumps(records) if name.endswith(".json") else "\n".join(map(json.dumps, records))
    file.write_bytes(gzip.compress(text.encode())) if name.endswith(".gz") else file.write_text(text)
    return file


@pytest.mark.parametrize("name", ["set.jsonl", "set.json", "set.jsonl.gz"])
@pytest.mark.parametrize(
    ("record", "task", "gold"),
    [(GSM8K, "math", "1234"), (MATH, "math", "\\frac{1}{2}"), (HOTPOT, "qa", "Bob"), (MMLU, "mc", "C"),
     (MMLU_PRO, "mc", "E")],
    ids=["gsm8k", "math", "hotpotqa", "mmlu", "mmlu-pro"],
)  # fmt: skip
def test_files_in_the_sources_own_formats_are_recognised(tmp_path, record, task, gold, name):
    (problem,) = load(write(tmp_path, [record], name))
    assert problem.gold == (gold,)
    assert common_task([problem]) == task


def test_what_a_format_holds_besides_is_kept(tmp_path):
    (problem,) = load(write(tmp_path, [HOTPOT]))
    assert problem.id == "abc"
    assert problem.extra["passages"] == ["Title\nOne. Two."]
    (other,) = load(write(tmp_path, [{**HOTPOT, "context": {"title": ["Title"], "sentences": [["One. ", "Two."]]}}]))
    assert other.extra["passages"] == problem.extra["passages"]
    (mathematics,) = load(write(tmp_path, [MATH]))
    assert (mathematics.group, mathematics.extra["level"]) == ("Algebra", "Level 5")
    (choice,) = load(write(tmp_path, [MMLU]))
    assert (choice.group, choice.extra["options"][2]) == ("colours", "green")


def test_mmlu_csv_has_no_header(tmp_path):
    file = tmp_path / "test.csv"
    file.write_text('"Which, then?",red,blue,green,grey,B\nWhat?,a,b,c,d,D\n')
    first, second = load(file)
    assert (first.question, first.gold, second.gold) == ("Which, then?", ("B",), ("D",))
    assert (first.id, second.id) == ("test-0", "test-1")


def test_csv_with_a_header_is_read_by_it(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text('id,question,gold,task\nx,"What, then?",2,math\n')
    (problem,) = load(file)
    assert (problem.id, problem.question, problem.gold, problem.extra["task"]) == ("x", "What, then?", ("2",), "math")
    file.write_text("question,A,B,answer\nWhich?,red,blue,B\n")
    (problem,) = load(file)
    assert (problem.gold, problem.extra["options"]) == (("B",), ["red", "blue"])


@pytest.mark.parametrize("question", [None, ["a"], "   ", "", 3])
def test_what_is_no_question_is_refused(tmp_path, question):
    with pytest.raises(DatasetError, match="must be a text that is not blank"):
        load(write(tmp_path, [{"question": question, "gold": "1"}]))


def test_a_folder_of_files_is_one_set(tmp_path):
    for subject in ("algebra", "geometry"):
        (tmp_path / "math" / subject).mkdir(parents=True)
        for k in range(2):
            (tmp_path / "math" / subject / f"{k}.json").write_text(json.dumps(MATH))
    problems = load(tmp_path / "math")
    assert len({problem.id for problem in problems}) == 4


def test_our_own_files_keep_all_their_fields(tmp_path):
    record = {
        "id": 7,
        "question": "Who?",
        "gold": ["Bob", "Robert"],
        "task": "qa",
        "cluster": "c",
        "group": "g",
        "x": [1],
    }
    (problem,) = load(write(tmp_path, [record]))
    assert (problem.id, problem.gold, problem.cluster, problem.group) == ("7", ("Bob", "Robert"), "c", "g")
    assert problem.extra == {"task": "qa", "x": [1]}


def test_levels_limits_and_order(tmp_path):
    records = [{**MATH, "problem": f"p{k}", "level": f"Level {1 + k % 5}"} for k in range(50)]
    file = write(tmp_path, records)
    assert len(load(file, level=5)) == 10
    assert [p.question for p in load(file, limit=3)] == ["p0", "p1", "p2"]
    few, more = load(file, limit=5, seed=1), load(file, limit=20, seed=1)
    assert [p.id for p in more[:5]] == [p.id for p in few]
    assert [p.id for p in few] != [f"set-{k}" for k in range(5)]


@pytest.mark.parametrize("name", ["addition", "capitals", "word-problems"])
def test_built_in_sets_are_the_same_for_everyone_and_have_gold(name):
    problems = load(f"builtin:{name}")
    assert problems == load(f"builtin:{name}")
    assert len({p.question for p in problems}) == len({p.id for p in problems}) == len(problems) >= 120
    assert all(p.gold for p in problems)


def test_built_in_golds_are_right():
    for problem in load("builtin:addition"):
        a, b = problem.question.removeprefix("What is ").removesuffix("?").split(" + ")
        assert answers.is_correct(str(int(a) + int(b)), problem.gold)
        assert (a, b) not in (("2", "3"), ("7", "6"))
    for problem in load("builtin:word-problems"):
        a, b = (int(word) for word in problem.question.replace(".", " ").split() if word.isdigit())
        assert problem.gold == (str(a + b if "buys" in problem.question else a - b),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no records"), ("{\n", "not JSON"), ('{"a": 1}', "no known format"), ("[1, 2]", "JSON objects"),
        ('{"question": "x", "answer": "no mark"}', "no known format"),
        ('{"problem": "x", "solution": "no box"}', "no boxed answer"),
        ('{"question": "x", "choices": ["a"], "answer": 3}', "none of the 1 options"),
        ('{"question": "x", "gold": "1", "id": "a"}\n{"question": "y", "gold": "1", "id": "a"}', "occurs twice"),
        ('{"question": "x", "gold": "1"}\n{"gold": "2"}', "line 2"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_place(tmp_path, content, said):
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    with pytest.raises(DatasetError, match=said):
        load(file)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(DatasetError, match=r"gsm8k.*builtin:addition"):
        load("nothing-like-this")
    with pytest.raises(DatasetError, match="addition, capitals"):
        load("builtin:poems")


def test_the_hub_needs_its_library_and_says_so(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install '(datasets>=3|\.\[datasets\])'"):
        load("gsm8k")


QUESTIONS = Path(__file__).resolve().parents[3] / "shared" / "data" / "questions"


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["gsm8k_test", "math500", "math_test_level5", "hotpotqa_dev"])
def test_real_questions_are_read(name):
    file = QUESTIONS / f"{name}.jsonl.gz"
    if not file.is_file():
        pytest.skip("the recorded questions are not on this machine")
    assert len(load(file)) >= 500


TALK = [
    {"role": "user", "content": "What is 2 + 3?"},
    {"role": "assistant", "content": "5"},
    {"role": "user", "content": [{"type": "text", "text": "And twice that?"}]},
]
TRANSCRIPT = "[user]\nWhat is 2 + 3?\n\n[assistant]\n5\n\n[user]\nAnd twice that?"


@pytest.mark.parametrize("name", ["set.jsonl", "set.json", "set.jsonl.gz"])
@pytest.mark.parametrize(
    "question", [{}, {"question": None}, {"question": "And twice that?"}, {"question": TRANSCRIPT}]
)
def test_a_question_may_be_a_conversation(tmp_path, name, question):
    plain = {"question": "Why?", "gold": "because", "messages": None}
    alone = {"messages": [{"role": "user", "content": "Why?"}], "gold": "because"}
    talk, *others = load(
        write(tmp_path, [{"messages": TALK, "gold": 10, "task": "math", **question}, plain, alone], name)
    )
    assert (talk.question, talk.gold) == (TRANSCRIPT, (10,))
    assert talk.extra == {"task": "math", "messages": [*TALK[:2], {"role": "user", "content": "And twice that?"}]}
    assert [(other.question, dict(other.extra)) for other in others] == [("Why?", {})] * 2


def test_conversations_stand_in_a_table_as_json(tmp_path):
    import csv

    with (tmp_path / "set.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [["messages", "question", "gold"], [json.dumps(TALK), "", "10"], ["", "Why?", "because"]]
        )
    talk, plain = load(tmp_path / "set.csv")
    assert (talk.question, plain.question, plain.extra) == (TRANSCRIPT, "Why?", {})


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"messages": TALK[:2]}, "the last message must be a user's"),
        ({"messages": []}, "at least one message, got an empty list"),
        ({"messages": "Hi"}, "at least one message, got 'Hi'"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only text can be put"),
        ({"messages": TALK, "question": "And thrice?"}, "has a question that its messages do not end in: 'And thrice"),
        ({"messages": TALK, "question": " "}, "a question must be a text that is not blank"),
        ({"gold": "4"}, "the field 'question' is missing"),
    ],
)
def test_messages_that_are_no_conversation_are_named_by_file_and_line(tmp_path, record, said):
    file = write(tmp_path, [{"messages": TALK, "gold": 10}, {"id": "bad", "gold": 1, **record}])
    with pytest.raises(DatasetError, match=said) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}, line 2: ")
    assert "\n" not in str(caught.value)


def test_a_table_whose_messages_are_no_json_is_named_by_its_line(tmp_path):
    (tmp_path / "set.csv").write_text("messages,gold\nHi,4\n")
    with pytest.raises(DatasetError, match=r"set.csv, line 2: the messages are not JSON"):
        load(tmp_path / "set.csv")
