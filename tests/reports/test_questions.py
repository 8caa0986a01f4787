"""What an opened question shows: what was asked and accepted, and each path in its own words."""

from __future__ import annotations

import json

import pytest

import demur as dm
from demur.records import Path, Pool, Problem
from demur.reports import questions as module
from demur.reports.facts import report_facts
from demur.reports.page import page_of
from demur.reports.questions import how_read


def facts_of(pools, *, texts=True, correct=None, **fields):
    source = dm.PoolSource(pools)
    voted = dm.vote_pools(source, dm.FieldChoice(**fields), correct=correct)
    policy = dm.calibrate(voted, alpha=0.3, hold_out=0.5)
    return report_facts(source, voted, policy, title="x", texts=texts)


def pools(n=12, answers=("41", "41.0", "$41$", "42", None), gold=("41",), **extra):
    return [
        Pool(Problem(f"q{i}", f"What is {i}?", gold, extra={"task": "math", **extra}), tuple(Path(a) for a in answers))
        for i in range(n)
    ]


def test_a_path_is_in_its_own_words_and_its_class_as_most_write_it():
    facts = facts_of(pools(answers=("41.0", "41", "41", r"\\frac{82}{2}", "42", None)))
    paths = facts["paths"][0]
    assert paths["answer"] == ["41.0", "41", "41", r"\\frac{82}{2}", "42", None]
    assert paths["class"] == [0, 0, 0, 0, 1, None]
    assert paths["classes"] == ["41", "42"]
    assert facts["questions"]["answer"][0] == "41"
    assert facts["without_answer"] == [12, 72]


@pytest.mark.parametrize(
    "extra",
    [
        {"task": "math"},
        {"task": "qa"},
        {"task": "mc", "options": ["41", "42", "43"]},
        {"task": "plain"},
        {"task": "auto"},
    ],
)
def test_no_key_is_in_the_page(extra):
    answers = ("A", "A", "B", "C") if "options" in extra else ("41", "41.0", "x + 1", "42")
    some = pools(answers=answers, gold=("A",) if "options" in extra else ("41",), **extra)
    source = dm.PoolSource(some)
    voted = dm.vote_pools(source)
    page = page_of(facts_of(some))
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    written = {*answers, "41", "A"}
    assert set(data["questions"]["answer"]) <= written
    for paths in data["paths"]:
        assert {*paths["answer"], *paths["classes"]} <= written
    keys = {key for pool in voted.table.answers for key in pool if ":" in (key or "")}
    assert not [key for key in keys if f'"{key}"' in page]


def test_gold_and_aliases_are_shown_as_they_are_written():
    facts = facts_of(pools(gold=("41", "41.0"), aliases=["forty-one"]))
    assert facts["questions"]["gold"][0] == ["41", "41.0", "forty-one"]


def test_gold_may_be_absent_where_paths_are_labelled():
    labelled = [
        Pool(Problem(f"q{i}", f"{i}?"), tuple(Path(a, extra={"ok": a == "1"}) for a in ("1", "1", "2")))
        for i in range(12)
    ]
    facts = facts_of(labelled, correct="ok")
    assert facts["questions"]["gold"] == [[]] * 12
    assert facts["questions"]["right"] == [1] * 12


@pytest.mark.parametrize(
    ("options", "gold"),
    [(["cat", "dog", "cow"], "B"), ({"A": "cat", "B": "dog", "C": "cow"}, "B"), (["cat", "dog", "cow"], "dog")],
)
def test_options_have_their_letters_and_the_accepted_one_is_marked(options, gold):
    facts = facts_of(pools(answers=("B", "B", "C"), gold=(gold,), task="mc", options=options))
    assert facts["questions"]["options"][0] == [["A", "cat", 0], ["B", "dog", 1], ["C", "cow", 0]]


def test_options_of_another_relation_are_compared_by_their_texts():
    facts = facts_of(pools(answers=("41", "42"), gold=("41.0",), options=["40", "41", "42"]))
    assert [right for *_, right in facts["questions"]["options"][0]] == [0, 1, 0]
    assert facts_of(pools())["questions"]["options"] == [None] * 12


def test_more_options_than_letters_are_numbered():
    many = [f"option {at}" for at in range(30)]
    facts = facts_of(pools(answers=("A", "B"), gold=("A",), task="mc", options=many))
    assert [letter for letter, *_ in facts["questions"]["options"][0]][24:28] == ["Y", "Z", "27", "28"]


@pytest.mark.parametrize(
    ("extra", "asked"),
    [
        ({"passages": ["One.", "Two."]}, [["passages", ["One.", "Two."]]]),
        ({"context": "Here."}, [["context", ["Here."]]]),
        ({"messages": [{"role": "user", "content": "Hi"}]}, [["messages", ["user: Hi"]]]),
        ({"table": {"a": [1, 2]}}, [["table", ['{"a": [1, 2]}']]]),
        ({"documents": [["Title", ["One."]]]}, [["documents", ['["Title", ["One."]]']]]),
        ({"premise": "P", "hypothesis": "H"}, [["premise", ["P"]], ["hypothesis", ["H"]]]),
        ({"passages": None}, None),
        ({"options": ["41", "42"]}, None),
        ({}, None),
    ],
)
def test_what_is_asked_beside_the_text_is_shown(extra, asked):
    assert facts_of(pools(**extra))["questions"]["asked"][0] == asked


def test_long_passages_are_cut_to_a_budget(monkeypatch):
    monkeypatch.setattr(module, "_ASKED_BUDGET", 12 * 100)
    (_, (text,)) = facts_of(pools(context="y" * 5000))["questions"]["asked"][0][0]
    assert "[…]" in text
    assert len(text) < 120


@pytest.mark.parametrize(
    ("extra", "read"),
    [
        ({"extraction": "answer is", "found_at": [14, 16]}, ["answer is", "The answer is ", "42", ". Done."]),
        ({"extraction": "answer is"}, ["answer is"]),
        ({"extraction": "answer is", "found_at": [16, 14]}, ["answer is"]),
        ({"extraction": "answer is", "found_at": [0, 99]}, ["answer is"]),
        ({"extraction": "answer is", "found_at": "0-5"}, ["answer is"]),
        ({"extraction": "answer is", "found_at": [True, 5]}, ["answer is"]),
        ({"extraction": "answer is", "found_at": [1, 2, 3]}, ["answer is"]),
        ({"extraction": "given"}, None),
        ({"extraction": 7, "found_at": [14, 16]}, None),
        ({}, None),
    ],
)
def test_how_an_answer_was_read_is_told_with_its_words_where_they_are_known(extra, read):
    assert how_read(Path("42", "The answer is 42. Done.", extra=extra)) == read
    assert how_read(Path("42", None, extra=extra)) == (None if read is None else read[:1])
    assert how_read(Path("42", "The answer is 42. Done.", extra=extra), texts=False) == (read and read[:1])
    assert how_read(Path("42", "The answer is 42. Done.", extra=extra), "other") is None


def test_words_far_from_the_answer_are_left_out_and_that_is_shown():
    text = "a" * 100 + "42" + "b" * 100
    method, before, words, behind = how_read(Path("42", text, extra={"extraction": "last", "found_at": [100, 102]}))
    assert (method, before, words, behind) == ("last", "…" + "a" * 60, "42", "b" * 30 + "…")


def test_answers_of_another_field_are_in_their_own_words_too():
    some = [
        Pool(Problem(f"q{i}", f"{i}?", ("7",)), tuple(Path(None, extra={"answer_b": a}) for a in ("7", "7.0", "8")))
        for i in range(12)
    ]
    assert facts_of(some, answer_field="answer_b")["paths"][0]["answer"] == ["7", "7.0", "8"]
