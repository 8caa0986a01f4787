"""Characters: what cannot be seen is gone, what is written in many ways is one, and no accent is lost, in every relation."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.answers import auto, choice, mathematics, plain, text
from demur.answers.characters import cleaned

RELATIONS = [mathematics, text, choice, plain, auto]
DIGITS = ["42", "٤٢", "۴۲", "४२", "৪২", "๔๒", "４２", "𝟒𝟐", "൪൨", "໔໒", "၄၂", "៤២"]
INVISIBLE = {
    "soft hyphen": "\u00ad", "joiner": "\u200d", "no joiner": "\u200c", "no width": "\u200b", "left to right": "\u200e",
    "override": "\u202e", "isolate": "\u2066", "word joiner": "\u2060", "byte order": "\ufeff", "variant": "\ufe0f",
}  # fmt: skip


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_digits_of_all_scripts_are_alike_in_every_relation(relation):
    assert len({relation.key(digits) for digits in DIGITS}) == 1


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@pytest.mark.parametrize("mark", INVISIBLE.values(), ids=INVISIBLE)
def test_what_cannot_be_seen_says_nothing_in_any_relation(relation, mark):
    for answer in ("1234", "Paris", "B", "-3.5"):
        assert relation.key(f"{mark}{answer[0]}{mark}{answer[1:]}{mark}") == relation.key(answer)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@pytest.mark.parametrize(("written", "plain"), [
    ("Ｐａｒｉｓ", "Paris"), ("ﾊﾟﾘ", "パリ"), ("５\u3000ｋｍ", "5 km"), ("caf\u0065\u0301", "café"), ("−5", "-5"), ("1\u00a0000", "1 000"),
    ("٣٫٥", "3.5"), ("١٬٢٣٤", "1,234"), ("５％", "5%"), ("5\u2009km", "5 km"), ("ｶﾞ", "ガ"), ("１２．５", "12.5"), ("A\u030a", "Å"),
])  # fmt: skip
def test_one_character_written_in_many_ways(relation, written, plain):
    assert relation.key(written) == relation.key(plain)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@pytest.mark.parametrize(("a", "b"), [("año", "ano"), ("résumé", "resume"), ("Łódź", "Lodz"), ("ёлка", "елка"), ("Ångström", "Angstrom"),
                                      ("か", "が"), ("कल", "काल")])  # fmt: skip
def test_an_accent_is_never_dropped(relation, a, b):
    assert relation.key(a) != relation.key(b)
    assert relation.key(unicodedata.normalize("NFD", a)) == relation.key(a)


def test_flags_that_differ_in_tags_alone_stay_apart():
    england, scotland = (
        "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in code) + "\U000e007f" for code in ("gbeng", "gbsct")
    )
    assert cleaned(england) != cleaned(scotland)


def test_every_decimal_digit_is_read():
    for code in range(sys.maxunicode + 1):
        once = cleaned(chr(code))
        value = unicodedata.decimal(chr(code), None)
        assert value is None or once == str(value)


@given(st.text(max_size=40))
def test_cleaning_twice_is_cleaning_once_in_any_text(text):
    assert cleaned(cleaned(text)) == cleaned(text)
