"""The relation `choice`: letters in every dress, options by their words, labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.answers import choice, text
from demur.answers.asked import Asked
from demur.errors import InvalidValue

DRESSES = [
    "{}", "({})", "{}.", "{})", "[{}]", "{{{}}}", "**{}**", "**({})**", "*{}*", "`{}`", '"{}"', "“{}”", "'{}'", "${}$",
    r"\text{{{}}}", r"$\text{{{}}}$", r"\boxed{{{}}}", r"\boxed{{\text{{{}}}}}", r"\textbf{{({})}}", r"$\mathrm{{({})}}$",
    r"\({}\)", "Option {}", "option ({})", "choice {}", "Choice: {}", "Answer: {}", "The answer is ({}).", "  {}\n", "{}:", "({}).",
    "The correct option is {}", "**Answer: {}", "{}**", "$$\\boxed{{{}}}$$", "\u200e{}",
]  # fmt: skip


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("label", ["B", "b", "I", "1", "12"])
def test_a_letter_or_digit_is_one_however_dressed(dress, label):
    assert choice.key(dress.format(label)) == f"o:{label.upper()}"


@pytest.mark.parametrize("written", ["B) Paris", "(B) Paris", "(b) Paris", "b) Paris", "B. Paris", "B: Paris", "b: Paris", "[B] Paris",
                                     "B - Paris", "**B) Paris**", "**B)** Paris", "Option B: Paris", r"\textbf{(B)}\ 12", "(B) 12", "Ｂ",
                                     "Ⓑ", "B) The answer is 3, since A) is wrong."])  # fmt: skip
def test_a_letter_before_its_text_is_that_letter(written):
    assert choice.key(written) == "o:B"


@pytest.mark.parametrize("written", ["A and B", "A or B", "A, B", "A) and B)", "(A), (B)", "A) or B)", "A/B", "AB", "A. B.", "A+", "A*",
                                     "A'", "C++", "<5", "-2", "2.5", "not A", "A dog", "answers", "Yes", "3:00 PM", "А", "1,000"])  # fmt: skip
def test_what_is_no_single_letter_is_an_open_answer(written):
    assert choice.key(written) == text.key(written) != choice.key("A")


OPTIONS = Asked.of(options=["Paris", "London", "E. coli", "Vitamin A", "not Paris"])


@pytest.mark.parametrize(("written", "letter"), [
    ("Paris", "A"), ("paris.", "A"), ("“Paris”", "A"), ("A Paris", "A"), ("Paris (A)", "A"), ("(a) Paris", "A"), ("London", "B"),
    ("B London", "B"), ("2) London", "B"), ("E. coli", "C"), ("e. coli", "C"), ("Vitamin A", "D"), ("vitamin a", "D"), ("not Paris", "E"),
    ("B) Paris", "B"), ("F", "F"), ("(f)", "F"), ("4", "4"),
])  # fmt: skip
def test_an_option_is_its_letter_or_its_own_words(written, letter):
    assert choice.key(written, OPTIONS) == f"o:{letter}"


@pytest.mark.parametrize("written", ["Vitamin", "Berlin", "Paris or London", "Z. rouxii", "J) x", "Paris is not it"])
def test_words_that_no_option_has_are_an_open_answer(written):
    assert choice.key(written, OPTIONS) == text.key(written)


def test_words_of_several_options_choose_none():
    asked = Asked.of(options=["Paris", "paris.", "Rome", "12", "12.0"])
    assert choice.key("Paris", asked) == text.key("Paris")
    assert choice.key("12", asked) == text.key("12")
    assert choice.key("A", asked) == "o:A"
    assert choice.key("B) paris.", asked) == "o:B"
    assert choice.key("Rome", asked) == "o:C"


def test_options_may_come_with_their_letters_as_a_mapping_or_as_numbers():
    for options in (["A) Paris", "B) 12"], {"A": "Paris", "B": "12"}, ["(A) Paris", "(B) 12.0"], ["Paris", 12]):
        asked = Asked.of(options=options)
        assert [choice.key(a, asked) for a in ("Paris", "12", "(b)", "2")] == ["o:A", "o:B", "o:B", "o:2"]


def test_options_are_read_in_the_language_of_the_question():
    asked = Asked.of(options=["3,5", "1.000"], language="de")
    assert [choice.key(a, asked) for a in ("3,5", "1000", "1.000,0")] == ["o:A", "o:B", "o:B"]


LABELS = {
    ("True", "False", "Uncertain"): {"true": "true", "TRUE.": "true", "**False**": "false", "(Uncertain)": "uncertain", "Trueish": None,
                                     "A": None, "not true": None, "T": None, r"\text{False}": "false"},
    ("yes", "no", "not enough info"): {"No": "no", "Not enough info.": "not enough info", "not": None, "no not enough info": None},
    ("entail", "entailment", "neutral"): {"Entail": "entail", "entailment!": "entailment", "entails": None},
    ("true", "true-ish"): {"True": "true", "true-ish": "true-ish", "True-ish.": "true-ish", "trueish": None},
    ("A", "B", "none"): {"(b)": "B", "Option A": "A", "None": "none", "C": None},
    ("1", "2", "10"): {"(1)": "1", "2.": "2", "10": "10", "3": None},
    ("+", "-"): {"+": "+", "-": "-", "**+**": "+", "A": None},
    ("US", "U.S."): {"US": "us", "u.s.": "u.s.", "U.S": None},
}  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_chosen_whole_and_never_mistaken_for_each_other(labels):
    asked = Asked.of(labels=labels)
    for written, label in LABELS[labels].items():
        assert choice.key(written, asked) == (text.key(written) if label is None else f"o:{label}"), written
    own = [choice.key(label, asked) for label in labels]
    assert len(set(own)) == len(labels)
    assert all(key.startswith("o:") for key in own)


def test_options_come_before_labels():
    asked = Asked.of(options=["yes", "no"], labels=["yes", "no", "maybe"])
    assert [choice.key(a, asked) for a in ("yes", "A", "(b)", "Maybe")] == ["o:A", "o:A", "o:B", "o:maybe"]


@pytest.mark.parametrize("labels", [["yes", "Yes"], ["yes", " "], "yes"])
def test_labels_that_cannot_be_told_apart_are_refused(labels):
    with pytest.raises(InvalidValue):
        Asked.of(labels=labels)


@given(st.lists(st.text(min_size=1, max_size=8), max_size=4), st.text(max_size=12))
def test_any_options_and_answers_get_the_same_key_twice(options, answer):
    asked = Asked.of(options=options)
    assert choice.key(answer, asked) == choice.key(f" {answer}\n", asked)


@given(
    st.sets(
        st.sampled_from(["no", "not", "No way", "nothing", "n/a", "none", "yes", "+", "-", "A", "a b", "U.S."]),
        min_size=2,
    )
)
def test_every_label_names_itself(labels):
    asked = Asked.of(labels=sorted(labels))
    assert len({choice.key(label, asked) for label in labels}) == len(labels)
