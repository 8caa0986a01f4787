"""What tells one question from another."""

from __future__ import annotations

import pytest

from demur.records import Problem, question_digest


def test_blank_space_does_not_make_another_question_and_case_does():
    assert question_digest(" What  is\n2+2? ") == question_digest("What is 2+2?")
    assert question_digest("What is 2+2?") != question_digest("what is 2+2?")


@pytest.mark.parametrize(
    "beside",
    [
        {"options": ["3", "4"]},
        {"options": ["4", "3"]},
        {"options": {"A": "3"}},
        {"choices": ["3", "4"]},
        {"passages": [{"title": "Sums", "text": "Two and two are four."}]},
        {"passages": ["Two and two are five."]},
        {"context": "In base 3."},
        {"contexts": ["In base 3."]},
        {"documents": ["In base 3."]},
        {"messages": [{"role": "user", "content": "In base 3."}]},
    ],
)
def test_the_same_text_with_other_options_passages_or_messages_is_another_question(beside):
    bare = Problem("a", "What is 2+2?")
    asked = Problem("b", "What is 2+2?", extra=beside)
    assert asked.digest != bare.digest
    assert asked.digest == Problem("c", " What is 2+2? ", extra={**beside, "model": "m", "difficulty": 3}).digest
    first = {name: [value, value] for name, value in beside.items()}
    assert asked.digest != Problem("b", "What is 2+2?", extra=first).digest


def test_empty_fields_beside_a_question_say_nothing():
    empty = {"options": [], "passages": None, "context": ""}
    assert Problem("a", "Why?", extra=empty).digest == Problem("b", "Why?").digest == question_digest("Why?")


@pytest.mark.parametrize("question", [None, "", " \n", float("nan")])
def test_nothing_asked_has_no_digest_but_messages_ask_by_themselves(question):
    assert question_digest(question) is None
    assert question_digest(question, {"options": ["3"]}) is None
    assert question_digest(question, {"messages": [{"role": "user", "content": "Why?"}]}) is not None


def test_odd_values_beside_a_question_are_no_trouble():
    assert question_digest("Why?", {"options": {1: {2, 3}}}) is not None
    assert question_digest("\ud800", {"context": "\ud800"}) is not None
