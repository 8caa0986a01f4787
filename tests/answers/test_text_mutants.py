"""Open answers with one token changed: every mutant that is still the same answer has a reason that is written here.

What a rule does not read, it must not drop. The reasons below are the whole list of what the relation `text` drops.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import pytest

from demur.answers import auto, text

_WRITTEN = """
    C++ | C# | C | F# major | B+ | B- | A+B | A* | .NET | Node.js | R&B | AT&T | Procter & Gamble | Yahoo! | X-ray
    -5 | 5 | +5 | 3.5 | -0.25 | 1,000 | 12,345.60 | 1980-1990 | 3-2 | 3 - 2 | 3:00 PM | 10:30 am | 15:00 | 4:3 | 1/2
    $5 | $5.50 | -$3 | €20 | 5% | 12.5 % | 90° | 20 °C | 5 million | 5 billion | $3 million | 1.5 trillion | 6'2"
    5! | <5 | >5 | x ≤ 5 | x = 5 | x != 3 | y >= 2 | 2^10 | x^2+1 | 2*3 | 10±2 | ~40 | #1 | No. 5 | @nasa | a‖b
    50/50 | twenty-five | two hundred and five | one thousand | seven | zero | no one | five hundred thousand
    July 4, 1776 | 4 July 1776 | 1776-07-04 | 13/01/2020 | 01/02/2020 | March 1999 | 15 March '99 | May 5
    31 February 2020 | 1.2.3 | Python 3.10 | 007 | 555-1234 | 978-3-16-148410-0 | +1 555 0100 | 1st | 42nd Street
    U2 | 7-Eleven | COVID-19 | Vitamin A | Hepatitis B | Type O | Plan A | A minor | a few | The The | The Who
    the Netherlands | A Tale of Two Cities | cats and dogs | cats or dogs | neither cats nor dogs | not guilty
    guilty | yes | no | true | false | unknown | Washington, D.C. | U.S. | J. R. R. Tolkien | George W. Bush
    Dr. No | St. Louis | Martin Luther King Jr. | Ph.D. | e.g. | O'Neil | don't | rock 'n' roll | "Hamlet" | (Paris)
    Paris (France) | Port-au-Prince | Jean-Luc Godard | Alexander the Great | año | ano | São Paulo | naïve
    Motörhead | Ångström | 東京 | Москва | القاهرة | Ελλάδα | नई दिल्ली | Đà Nẵng | H₂O | CO2 | x² | 10₂ | 1½ | π | ∞
    🙂 | I ♥ NY | NaN | N/A | TCP/IP | and/or | A/B | 5 km | 5 MW | 5 mW | 100 m | 3 dozen | 3 north | 3 years
    3 months | 2 pi | 300 acres of corn and 200 of wheat | first, second and third | Red, white and blue
    from 3 to 5 | between 1990 and 1995 | World War II | Henry VIII | Apollo 11 | 10 Downing Street | Catch-22
    1984 | 90s | (0, 1) | [0, 1] | {1, 2} | f(x) | user@example.com | example.com/a?b=1 | more than 10
    less than 10 | at least 3 | 2nd half | red shift | blue shift | the left bank | the right bank | increase
    decrease | he hit her | she hit him | A is B | B is A
"""
ANSWERS = [answer.strip().replace("‖", "|") for answer in _WRITTEN.replace("\n", " | ").split(" | ") if answer.strip()]
OPERATORS = "+-*/^=<>:≤≥×"
SWAPPED = {"and": "or", "or": "and", "pm": "am", "am": "pm", "million": "billion", "billion": "million", "not": "now",
           "north": "south", "left": "right", "more": "less", "less": "more", "yes": "no", "no": "yes", "true": "false",
           "years": "months", "increase": "decrease", "to": "from", "first": "second", "II": "III"}  # fmt: skip


def mutants(answer: str) -> Iterator[tuple[str, str]]:
    """Every answer that differs from this one in one token, and what was changed."""
    for place, character in enumerate(answer):
        before, after = answer[:place], answer[place + 1 :]
        if character.isdigit() and character.isascii():
            yield from (("digit", before + other + after) for other in "0179" if other != character)
            yield "digit dropped", before + after
            yield "digit doubled", before + character * 2 + after
            yield "sign", f"{before}-{character}{after}"
        elif character in OPERATORS:
            yield from (("operator", before + other + after) for other in OPERATORS if other != character)
            yield "operator dropped", before + after
        elif not character.isalnum() and not character.isspace():
            yield "mark dropped", before + after
            yield from (("mark", before + other + after) for other in "+#%$-/!" if other != character)
        elif character.isspace():
            yield "blank dropped", before + after
        elif (bare := unicodedata.normalize("NFD", character)[0]) != character:
            yield "accent dropped", before + bare + after
        if character.isalpha():
            yield "letter dropped", before + after
            yield "letter doubled", before + character * 2 + after
            yield "letter", before + ("q" if character.lower() != "q" else "z") + after
    for mark in "+-#%$€!*'\"/:<>=^&@~°":
        yield "mark put before", mark + answer
        yield "mark put behind", answer + mark
    words = answer.split()
    for place, word in enumerate(words):
        before, after = words[:place], words[place + 1 :]
        yield "word dropped", " ".join([*before, *after])
        yield "word doubled", " ".join([*before, word, word, *after])
        yield "word", " ".join([*before, SWAPPED.get(word, SWAPPED.get(word.lower(), "other")), *after])
        yield "word put in", " ".join([*before, "not", word, *after])
        if after:
            yield "order", " ".join([*before, after[0], word, *after[1:]])


REASONS = {
    "commas part words": r",",
    "marks that end words": r"(?<!\d)[.,:!?]+(?=\s|$)|(?<=\d)[.:?]+(?=[\s,]|$)",
    "quotes and brackets around words": r"(?<!\S)['\"]*[(\[{]?['\"]*(?=\D)|(?<=[^\d)\]}])[)\]}!]?['\"]*(?!\S)",
    "quotes that begin an answer": r"^['\"]+",
    "quotes behind brackets": r"(?<=[\]}])['\"]$|(?<=e\))['\"]$|(?<=s\))['\"]$",
    "marks behind a date or clock time": r"(?<=\d\d[-/]\d\d\d\d)[!'\"]$|(?<=-\d\d-\d\d)[!'\"]$|(?<=^\d\d:\d\d)[!'\"]$",
    "& is and, with and without blanks": r" ?& ?",
    "the commas of thousands": r"(?<=\d),(?=\d{3}(?!\d))",
    "a zero before the point": r"(?<!\d)0(?=\.\d)",
    "zeros that end the decimals of a number alone": r"(?<=\.\d)0+$(?<![a-z] \d\.\d0)",
    "the sign of a positive number": r"(?<!\S)\+(?=[\d$€.])",
    "the": r"(?i)(?<!\w)the (?=\w)",
    "an article that begins the answer": r"(?i)^an? (?=\w\w)",
    "initials, with and without dots": r"(?<=\b[A-Za-z])\.|(?<=\bPh)\.(?=D)|(?<=\b[A-Z]\.) (?=[A-Z])|\.$",
    "the dash of a list": r"^- (?=\D)",
    "a blank before a unit, scale or half of the day": r"(?<=\d) (?=km|MW|mW|°|%|(?:m|b|tr)illion|pm|am|PM|AM)",
    "blanks around a sign": r" (?=[-=≤>+!])|(?<=[-=≤+]) ",
    "the and of number words": r"(?<=hundred )and ",
    "leading zeros of days and months": r"\b0(?=\d[/-])|(?<=-)0(?=\d$)",
    "short names of months": r"(?<=Jul)y",
}
"""What may be taken out of an answer, and where, without making it another."""


def reason(answer: str, mutant: str) -> str | None:
    """Why the two may be the same: the first pattern whose matches are all that they differ in, or a date's order."""
    for name, pattern in REASONS.items():
        first, second = (re.sub(pattern, " " if pattern == "," else "", text).lower() for text in (answer, mutant))
        if first.split() == second.split():
            return name
    first, second = (sorted(re.findall(r"\w+", text)) for text in (answer, mutant))
    is_date = first == second and {"March", "May", "July"}.intersection(first)
    return "the order of day and month" if is_date else None


def unchanged(relation) -> Iterator[tuple[str, str, str]]:
    """What was changed, the answer, and a mutant that is still the same."""
    for answer in ANSWERS:
        key = relation.key(answer)
        for change, mutant in mutants(answer):
            if mutant.strip() != answer.strip() and key is not None and relation.key(mutant) == key:
                yield change, answer, mutant


def test_there_are_some_hundred_answers_of_many_kinds():
    assert len(ANSWERS) == len(set(ANSWERS)) > 180
    assert sum(1 for answer in ANSWERS for _ in mutants(answer)) > 14_000


def test_every_mutant_that_stays_the_same_has_a_reason():
    found = [(reason(answer, mutant), change, answer, mutant) for change, answer, mutant in unchanged(text)]
    assert [row for row in found if row[0] is None] == []
    assert 500 < len(found) < 1500


@pytest.mark.parametrize(
    ("answer", "mutant"), [("-5", "5"), ("C++", "C#"), ("3-2", "32"), ("año", "ano"), ("Python 3.10", "Python 3.1")]
)
def test_the_reasons_do_not_cover_what_must_be_told_apart(answer, mutant):
    assert reason(answer, mutant) is None


def test_auto_drops_no_more_than_that_but_for_the_signs_of_money_percent_and_degrees():
    """Formulas are left to mathematics, whose mutants have a test of their own."""
    more = [
        (a, m) for _, a, m in unchanged(auto) if text.key(a) != text.key(m) and not re.search("[=≤>^²π∞±,|]", a + m)
    ]
    bare = re.compile(r"[$+]|[%°!]$|\s")
    assert [(a, m) for a, m in more if bare.sub("", a) != bare.sub("", m)] == []
    assert len(more) > 10


def test_no_two_of_the_answers_are_the_same_but_those_that_are():
    by_key: dict[str | None, list[str]] = {}
    for answer in ANSWERS:
        by_key.setdefault(text.key(answer), []).append(answer)
    shared = [group for group in by_key.values() if len(group) > 1]
    assert shared == [
        ["5", "+5"],
        ["1,000", "one thousand"],
        ["3-2", "3 - 2"],
        ["3:00 PM", "15:00"],
        ["July 4, 1776", "4 July 1776", "1776-07-04"],
    ]
