"""Languages: decimal comma and grouping as the question's language writes them, never guessed from one answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.answers import auto, choice, mathematics, plain, text
from demur.answers.asked import Asked
from demur.answers.languages import checked_language, takes_comma, with_points
from demur.errors import InvalidValue

RELATIONS = [mathematics, text, choice, plain, auto]
READ = {
    "de": {
        "3,5": "3.5", "-3,5": "-3.5", "1.234,5": "1234.5", "1 234,5": "1234.5", "1'234,5": "1234.5", "1.234.567,89": "1234567.89",
        "10.000": "10000", "10.000 €": "10000 €", "3,5cm": "3.5cm", "5,0 %": "5.0 %", "3{,}5": "3.5", r"\frac{3,5}{2}": r"\frac{3.5}{2}",
        r"\boxed{3,5}": r"\boxed{3.5}", "x=2,5": "x=2.5", "3,5.": "3.5.", "(1,5; 2,5)": "(1.5; 2.5)", "(1,5, 2,5)": "(1.5, 2.5)",
        "1,5 und 2,5": "1.5 und 2.5", "0,125": "0.125", "3,141": "3.141", "1.000.": "1000.", "2,5-3,5": "2.5-3.5", "(3,5 cm)": "(3.5 cm)",
    },
    "fr": {"3,5": "3.5", "1 234,5": "1234.5", "12 345 678": "12345678"},
    "ru": {"3,5": "3.5", "1 000": "1000"},
    "hi": {"1,00,000": "100000", "12,34,567.5": "1234567.5"},
    "en-IN": {"1,00,000": "100000"},
    "de-CH": {"1'234.50": "1234.50", "1’234’567": "1234567"},
    "pt_BR": {"1.234,5": "1234.5"},
    "ar-MA": {"3,5": "3.5"},
    "sr-Latn-RS": {"3,5": "3.5"},
}  # fmt: skip
LEFT = {
    "de": ["1, 2, 3", "(1;2)", "1,2,3", "(1,2)", "[0,1]", "{1,2}", r"\{1,2\}", "(-1,2)", r"\left(1,2\right)", "12.05.2020", "1.5", "3.14",
           "0.125", "1.2.3", "1,234.5", "1,234,567", "7", "Paris", "3:00", "2020", "a,b", "1.23.456"],
    "fr": ["1.234", "10.000", "1, 2", "12.05.2020", "1,2,3"],
    "hi": ["1,000", "3.5", "1,2,3", "1,00", "10,00,00"],
    "de-CH": ["3.5", "3,5", "1.234"],
    "es-MX": ["3,5", "1,234.5"], "en": ["3,5", "1.234,5", "1,00,000"], "ja": ["3,5", "1,000"], "sw": ["1,5"],
}  # fmt: skip


@pytest.mark.parametrize("language", READ)
def test_numbers_are_read_as_the_language_writes_them(language):
    code = checked_language(language)
    assert {written: with_points(written, code) for written in READ[language]} == READ[language]


@pytest.mark.parametrize("language", LEFT)
def test_lists_dates_versions_and_what_the_language_does_not_write_stay(language):
    code = checked_language(language)
    assert [with_points(written, code) for written in LEFT[language]] == LEFT[language]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_every_relation_reads_numbers_in_the_language_of_its_question(relation):
    german, english = Asked.of(language="de"), Asked.of(language="en")
    assert relation.key("3,75", german) == relation.key("3.75", english)
    assert relation.key("1.234,5", german) == relation.key("1234.5", english)
    assert relation.key("3,75", english) == relation.key("3,75")


def test_thin_blanks_and_digits_of_other_scripts_are_read_too():
    assert mathematics.key("1\u202f234,5", Asked.of(language="fr")) == "n:2469/2"
    assert mathematics.key("१,००,०००", Asked.of(language="hi")) == "n:100000"
    assert mathematics.key("٣٫٥", Asked.of(language="ar")) == "n:7/2"
    assert text.key("1.000 Euro", Asked.of(language="de")) == text.key("1000 Euro")


@given(st.sampled_from(["de", "fr", "es", "ru", "pt-BR", "nl", "tr", "id"]), st.integers(0, 10**9), st.integers(0, 999))
def test_a_decimal_is_its_value_in_every_language_of_the_comma(code, whole, thousandths):
    group = "." if code in ("de", "es", "pt-BR", "nl", "tr", "id") else "\u202f"
    written = f"{whole:,}".replace(",", group) + f",{thousandths:03}"
    asked = Asked.of(language=code)
    assert mathematics.key(written, asked) == mathematics.key(f"{whole}.{thousandths:03}")
    assert takes_comma(asked.language)


@pytest.mark.parametrize("nothing", [None, ""])
def test_no_language_is_english(nothing):
    assert checked_language(nothing) is None
    assert with_points("3,5", None) == "3,5"
    assert not takes_comma(None)


@pytest.mark.parametrize("language", ["xx", "German", "d", 5, ["de"], "-", "e n"])
def test_an_unknown_language_is_an_error_of_one_line(language):
    with pytest.raises(InvalidValue, match="is not known") as error:
        Asked.of(language=language)
    assert "\n" not in str(error.value)
