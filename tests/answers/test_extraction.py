"""Extraction: the rule that found an answer, the traps that catch others, and paths that have none."""

from __future__ import annotations

import pytest

from demur import answers
from demur.answers import choice, mathematics, text
from demur.answers.asked import Asked
from demur.answers.extraction import was_cut
from demur.answers.extraction.custom import parse_extractor
from demur.backends.protocol import Completion
from demur.errors import InvalidValue


@pytest.mark.parametrize(
    ("path", "answer", "method"),
    [
        ("so \\boxed{5} and finally \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}", "boxed"),
        ("\\boxed{a \\{b\\} c}", "a \\{b\\} c", "boxed"),
        ("\\boxed{6} then a broken \\boxed{7", "6", "boxed"),
        ("The answer is 18", "18", "answer is"),
        ("The answer is $\\frac{3}{4}$. Good.", "\\frac{3}{4}", "answer is"),
        ("The answer is 3.14", "3.14", "answer is"),
        ("The answer is 5. Wait. The final answer is: 6.", "6", "answer is"),
        ("So 5 apples. Then 7 pears remain", "7", "closing number"),
        ("It costs $1,234.50 in all.", "$1,234.50", "closing number"),
        ("no number here", None, "none"),
        ("", None, "none"),
        ("<think>it is \\boxed{3}</think>The answer is 4.", "4", "answer is"),
        ("<think>the answer is 3</think>", "3", "answer is"),
        ("<think>still thinking, maybe 5", None, "none"),
        ("The answer is unknown.", None, "abstained"),
        ("\\boxed{I don't know}", None, "abstained"),
        ("\\boxed{}", None, "none"),
    ],
)
def test_mathematics(path, answer, method):
    found = answers.extract(path)
    assert (found.answer, found.method) == (answer, method)
    assert answer is None or path[slice(*found.span)] == answer


def test_a_truncated_path_has_no_answer_whatever_it_says_so_far():
    for relation in answers.RELATIONS.values():
        assert relation.extract("\\boxed{5} <answer>5</answer> B", truncated=True).answer is None


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("<answer>Rome</answer> no, <answer> Paris </answer>", "Paris"),
        ("I think. It is Paris.", "It is Paris"),
        ("<answer>I do not know</answer>", None),
        ("<answer></answer>", None),
    ],
)
def test_open_questions(path, answer):
    assert text.extract(path).answer == answer


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("The answer is (B).", "B"),
        ("Answer: C", "C"),
        ("\\boxed{\\text{D}}", "D"),
        ("Let me see.\nE", "E"),
        ("It is a cat", None),
        ("Answer: Definitely the second", None),
        ("The answer is (A). No: the answer is (B)", "B"),
    ],
)
def test_multiple_choice(path, answer):
    assert choice.extract(path).answer == answer


def test_an_option_may_be_named_by_its_text():
    from demur.answers.extraction.choice import extract

    assert extract("It must be paris.", asked=Asked(options=("Rome", "Paris"))).answer == "B"
    assert extract("paris.", asked=Asked(options=("Rome", "Paris"))).answer == "B"


def test_extraction_of_your_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "def last(text):\n    return text.split()[-1] if text else None\n\ndef bad(text):\n    return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert parse_extractor("mine:last")("one two").answer == "two"
    failed = parse_extractor("mine:last")("   ")
    assert (failed.answer, failed.method) == (None, "failed (IndexError)")  # that path's alone
    assert parse_extractor("mine:last")("", truncated=False).answer is None
    assert parse_extractor(r"A = (\d+)")("A = 3, A = 4").answer == "4"
    assert parse_extractor(r"\d+")("7 8").answer == "8"
    assert parse_extractor(r"\d+")("none").answer is None
    with pytest.raises(InvalidValue, match="must return a string"):
        parse_extractor("mine:bad")("x")
    with pytest.raises(InvalidValue, match="No module named"):
        parse_extractor("no.such.module:fn")
    with pytest.raises(InvalidValue, match="nor a regular expression"):
        parse_extractor("(")


def test_the_default_relation_is_mathematics():
    assert answers.extract("\\boxed{2}") == mathematics.extract("\\boxed{2}")


@pytest.mark.parametrize(
    "reason", ["length", "content_filter", "CONTENT_FILTER", "max_tokens", "SAFETY", "abort", "error"]
)
def test_a_path_that_ended_before_its_model_was_done_has_no_answer(reason):
    assert was_cut(reason)
    assert Completion(0, "The answer is 7.", reason).truncated


@pytest.mark.parametrize("reason", ["stop", "eos", "tool_calls", "", None, 3, "lengthy"])
def test_other_ends_are_ends(reason):
    assert not was_cut(reason)
