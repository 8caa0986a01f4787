"""The relation `text`: which short answers are the same, and which only look so to the usual normalisation."""

from __future__ import annotations

import datetime
import gzip
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import answers
from demur.answers import text
from demur.answers.equivalence.number_words import read

SAME = [
    ["The Beatles", "beatles", "the beatles.", "“The Beatles”", "**The Beatles**", r"\text{The Beatles}", "(The Beatles)"],
    ["Paris, France", "Paris (France)", "paris france", "Paris; France", "Paris - France", r"\boxed{\text{Paris, France}}"],
    ["U.S.", "US", "U.S", "the U.S.", "U. S."],
    ["J.R.R. Tolkien", "J. R. R. Tolkien", "JRR Tolkien", "J.R.R.Tolkien", "J. R.R. Tolkien"],
    ["Washington, D.C.", "Washington DC", "Washington D.C", "washington, dc."],
    ["George W. Bush", "George W Bush"],
    ["Ph.D.", "PhD", "Ph.D"],
    ["Dr. No", "Dr No"],
    ["Yahoo!", "Yahoo", "yahoo."],
    ["R&B", "R & B", "R and B"],
    ["Johnson & Johnson", "Johnson and Johnson"],
    ["Port-au-Prince", "Port au Prince"],
    ["COVID-19", "Covid 19", "COVID‑19"],
    ["1,000", "1000", "1000.0", "1 000", "one thousand", "a thousand", "+1000", "１０００"],
    ["5 million", "5,000,000", "five million", "5million", "5.0 million", "5000 thousand"],
    ["$5 million", "5 million dollars", "$5,000,000"],
    ["2.5 billion", "2,500,000,000", "2500 million"],
    ["205", "two hundred and five", "two hundred five", "Two-hundred-and-five"],
    ["25", "twenty-five", "twenty five", "Twenty-Five", "25.", '"25"', "٢٥", "२५"],
    ["-5", "−5", "minus five", "negative 5", "-5.0"],
    [".5", "0.5", "0.50"],
    ["5%", "5 %", "5 percent", "5 per cent", "five percent", r"5\%"],
    ["$5", "$5.00", "$ 5", "5 dollars", "five dollars", r"\$5"],
    ["3 PM", "3:00 PM", "3pm", "3:00 p.m.", "15:00", "03:00 PM", "3:00:00 pm", "3 P.M."],
    ["12 AM", "midnight", "12:00 a.m."],
    ["noon", "12 PM", "12:00 p.m.", "12 noon"],
    ["3:00", "3 o'clock", "03:00"],
    ["1980-1990", "1980–1990", "1980 - 1990", "1980 — 1990"],
    ["3-2", "3–2", "3 - 2"],
    ["A+B", "A + B", "a+b"],
    ["< 5", "<5"], ["x >= 5", "x ≥ 5", "x≥5"], ["x != 3", "x ≠ 3"],
    ["5°C", "5 °C", "5 °c"],
    ["5 km", "5km", "5 KM"],
    ["H₂O", "H2O"], ["x²", "x^2"], ["1½", "1 1/2"],
    ["No. 1", "#1", "number one", "Number 1"],
    ["rock 'n' roll", "rock ’n’ roll", "rock n roll"],
    ["don't", "don’t"],
    ["the movie \"Apollo 13\"", "the movie Apollo 13"],
    ["July 4, 1776", "4 July 1776", "1776-07-04", "Jul 4th, 1776", "4th of July, 1776", "July 4 1776", "1776/7/4",
     "Thursday, July 4, 1776", "4-Jul-1776", "the 4th of July 1776"],
    ["13/01/2020", "01/13/2020", "13 January 2020", "13.01.2020", "2020-01-13", "January 13, 2020"],
    ["31/12/99", "12/31/99", "31 December 1999", "Dec. 31, '99", "31 Dec 99"],
    ["5/5/2005", "05/05/2005", "May 5, 2005"],
    ["March 1999", "Mar 1999", "March '99", "March, 1999", "Mar. 1999"],
    ["May 5", "5 May", "May 5th", "5th of May"],
    ["1/2/2020", "01/02/2020"],
    ["Class of '99", "class of 1999"], ["the '90s", "1990s"],
    ["año", "an\u0303o", "AÑO"],
    ["naïve", "nai\u0308ve"],
    ["co\u00adoperate", "cooperate"], ["\u200eParis\u200f", "Paris"], ["Pa\u2060ris", "Paris"], ["Ｐａｒｉｓ", "Paris"],
]  # fmt: skip

DIFFERENT = [
    ["C++", "C#", "C", "C--", "C+"], ["F#", "F", "F major"], ["B+", "B-", "B", "B*", "+B"], [".NET", "net"],
    ["<5", ">5", "5", "≤5", "=5", "~5"], ["3:00 PM", "3:00 AM", "3:00", "3"], ["5 million", "5 billion", "5", "million"],
    ["cats and dogs", "cats or dogs", "cats dogs", "dogs and cats", "cat and dog"],
    ["1980-1990", "19801990", "1980 1990", "1980/1990"], ["3-2", "32", "2-3", "3:2", "3+2"], ["A+B", "AB", "A B", "A-B", "A/B"],
    ["$5", "5%", "5", "€5", "5°", "#5", "5!", "5'", '5"', "-5", "5 x"], ["Vitamin A", "Vitamin", "Vitamin B", "Vitamin K"],
    ["Hepatitis A", "Hepatitis", "Hepatitis B"], ["Type A personality", "Type personality"], ["Plan A", "Plan"],
    ["A minor", "minor", "a major"], ["a few", "few"], ["a little", "little"], ["R&B", "RB"], ["AT&T", "ATT", "AT T"],
    ["3.5", "35", "3 5"], ["0.5", "5"], ["1.2.3", "123", "12.3"], ["Python 3.10", "Python 3.1"], ["007", "7", "07"],
    ["The The", "The", "A", "an", "the a"], ["A. Lincoln", "Lincoln"], ["No one", "No. 1", "one"], ["No, 5", "No. 5"],
    ["O'Neil", "Oneil"], ["we're", "were"], ["it's", "its"], ["re-sign", "resign"], ["año", "ano"], ["résumé", "resume"],
    ["01/02/2020", "2 January 2020", "1 February 2020"], ["31 February 2020", "February 2020"],
    ["13/01/20", "13 January 2020", "2013-01-20"], ["15 March 45", "15 March 1945", "15 March 2045"],
    ["Monday, July 4, 1776", "July 4, 1776"], ["July 4, 1776", "July 5, 1776", "June 4, 1776", "July 4", "July 1776"],
    ["x²", "x2"], ["10₂", "102"], ["1½", "11/2", "1/2"], ["(0, 1)", "[0, 1]", "0, 1", "(0, 1]"], ["f(x)", "fx", "f(x)'"],
    ["6'2\"", "62", "6 2"], ["5 MW", "5 mW"], ["5M", "5m"], ["yes", "no", "true", "false", "not yes"],
    ["one hundred and two hundred", "102", "300"], ["twenty first", "21st", "21"], ["five, six", "56"], ["three dozen", "3", "36"],
    ["3 north", "3 south", "3"], ["3 years", "3 months"], ["2 pi", "2"], ["🙂", "🙁"], ["I ♥ NY", "I NY"], ["100 m", "100"],
    ["x_1", "x1"], ["t sin t", "t - sin t"], ["Y^l", "y^l"], ["minus -5", "-5"], ["$0", "0"], ["std::map", "std map", "map"], ["a/b", "ab", "a b"], ["user@a.com", "user a.com"], ["5 - 3", "- 5 3"],
    ["90s", "90 s"], ["- 5", "5"], ["1,2", "1.2", "12"], ["B", "В"], ["Straße", "Strase"], ["A*", "A"], ["5!", "120"],
]  # fmt: skip


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_one_answer_written_in_many_ways(group):
    assert len({text.key(answer) for answer in group}) == 1, {a: text.key(a) for a in group}


@pytest.mark.parametrize("group", DIFFERENT, ids=lambda group: group[0])
def test_answers_that_are_never_the_same(group):
    assert len({text.key(answer) for answer in group}) == len(group), {a: text.key(a) for a in group}


@pytest.mark.parametrize(
    "nothing", ["", "  ", "...", "?", "___", "--", "()", '""', "\u200b", "\x00", "**", "``", "「」"]
)
def test_marks_alone_are_no_answer(nothing):
    assert text.key(nothing) is None
    assert not answers.equivalent(nothing, nothing, text)


@pytest.mark.parametrize("sign", ["%", "+", "∞", "#", "=", "♥"])
def test_a_sign_alone_is_one(sign):
    assert text.key(sign) == f"p:{sign}"


_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety"


def spelled(number: int) -> str:
    """A number in words, written here once more, the other way round."""
    small, tens = _SMALL.split(), _TENS.split()
    if number < 20:
        return small[number]
    if number < 100:
        return tens[number // 10] + (f"-{small[number % 10]}" if number % 10 else "")
    for size, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            joint = " and " if 0 < rest < 100 else " "
            return f"{spelled(number // size)} {name}" + (joint + spelled(rest) if rest else "")
    raise AssertionError


@given(st.integers(0, 10**12 - 1))
def test_numbers_in_words_are_their_figures(number):
    words = spelled(number)
    assert read(words.replace("-", " ").split(), 0) == (number, len(words.replace("-", " ").split()))
    assert text.key(words) == text.key(str(number)) == text.key(f"{number:,}") == f"p:{number}"


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
def test_a_date_is_one_however_written_and_no_other(date):
    name = date.strftime("%B")
    forms = [f"{name} {date.day}, {date.year}", f"{date.day} {name} {date.year}", f"{date.year}-{date.month:02}-{date.day:02}",
             f"{name[:3]}. {date.day}, {date.year}",
             date.strftime("%A, ") + f"{name} {date.day} {date.year}", f"{date.year}/{date.month}/{date.day}"]  # fmt: skip
    if date.day > 12 or date.day == date.month:
        forms += [f"{date.day}/{date.month}/{date.year}", f"{date.month:02}/{date.day:02}/{date.year}"]
    assert {text.key(form) for form in forms} == {f"d:{date.isoformat()}"}
    assert text.key(f"{name} {date.day}") == f"d:--{date.month:02}-{date.day:02}"


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 23), st.integers(0, 59))
def test_clock_times_are_the_same_exactly_when_they_are_equal(hour, minute, other_hour, other_minute):
    def half(h, m):
        return f"{h % 12 or 12}:{m:02} {'PM' if h >= 12 else 'AM'}"

    same = (hour, minute) == (other_hour, other_minute)
    assert answers.equivalent(half(hour, minute), half(other_hour, other_minute), text) == same
    if hour >= 13:
        assert answers.equivalent(half(hour, minute), f"{hour}:{minute:02}", text)


_PIECES = """
    the a an Vitamin A B and or not 5 -5 3.5 1,000 million % $5 C++ (x) 'n' U.S. J. , - + May 1999 July 4, PM 3:00 twenty
    five hundred '99 x² “so” ½ & no. #1 ! ? 日本 é
"""
WORDS = st.lists(st.sampled_from(_PIECES.split()), max_size=8)


@given(WORDS.map(" ".join))
def test_blank_space_and_a_final_stop_say_nothing(answer):
    key = text.key(answer)
    assert text.key(f"  {answer}\n") == key
    assert text.key(answer.replace(" ", "\u00a0 ")) == key
    assert text.key(unicodedata.normalize("NFD", answer)) == key
    if (
        key is not None
        and answer[-1].isalpha()
        and not answer.endswith((" A", "B", "no"))
        and len(answer.split()[-1]) > 1
    ):
        assert text.key(answer + ".") == key


@given(
    st.lists(st.sampled_from(["Paris", "the", "A", "dog", "Éire", "and", "Ürümqi", "5", "U.S.", "don't", "Мир"])).map(
        " ".join
    )
)
def test_case_says_nothing_of_words(answer):
    assert text.key(answer.upper()) == text.key(answer.lower()) == text.key(answer)


@given(WORDS.map(" ".join), WORDS.map(" ".join), WORDS.map(" ".join))
def test_sameness_is_an_equivalence(a, b, c):
    if text.key(a) is not None:
        assert answers.equivalent(a, a, text)
    assert answers.equivalent(a, b, text) == answers.equivalent(b, a, text)
    if answers.equivalent(a, b, text) and answers.equivalent(b, c, text):
        assert answers.equivalent(a, c, text)


def test_long_answers_are_compared_as_they_stand():
    long = "The quick, brown fox. " * 100
    assert answers.equivalent(long, long.upper() + " ", text)
    assert not answers.equivalent(long, long.replace(",", "", 1), text)


@pytest.mark.real_data
def test_options_of_one_question_keep_apart_but_for_case_and_the_spelling_of_numbers(recorded_pools):
    """Fourteen thousand texts that their authors meant to be different, ten to a question."""
    with gzip.open(recorded_pools / "mmlupro_text_1in8.jsonl.gz", "rt", encoding="utf-8") as stream:
        questions = [dict.fromkeys(map(str, json.loads(line)["options"])) for line in stream]
    merged = 0
    for options in questions:
        by_key: dict[str | None, list[str]] = {}
        for option in options:
            by_key.setdefault(text.key(option), []).append(option)
        for group in by_key.values():
            merged += len(group) > 1
            assert len({re.sub(r"(?<=[.\d])0+\b|[,.]|\s", "", option).lower() for option in group}) == 1, group
    assert merged < 20 < len(questions)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not (A or B)", "(not A) or B"),
        ("(p → q) → r", "p → (q → r)"),
        ("A ∪ (B ∩ C)", "(A ∪ B) ∩ C"),
        ("(2n)!", "2n!"),
        ("0.333...", "0.333"),
        ("1,2,3,...", "1,2,3"),
        ("1, 2, ..., 10", "1, 2, 10"),
    ],
)
def test_brackets_that_group_and_dots_that_go_on_stay(one, other):
    assert text.key(one) != text.key(other)


@pytest.mark.parametrize(("one", "other"), [("Paris (France)", "Paris France"), ("wait...", "wait")])
def test_brackets_and_dots_of_sentences_go(one, other):
    assert text.key(one) == text.key(other)
