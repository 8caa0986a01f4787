"""The relation `auto`, for answers of no known task: mathematics where that is beyond doubt, else an open answer."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import answers
from demur.answers import auto, choice, mathematics, text
from demur.answers.relations import Relation

SAME = [
    ["18", "18.0", "$18", "18 dollars", "$18.00", "eighteen", r"\$18", r"\boxed{18}", '"18"', "18.", "+18", "**18**", "$18$",
     "18 USD", "eighteen dollars", "18%", "18 percent", r"18\%", "18°", r"18^\circ", "x = 18", "١٨"],
    ["1234", "1,234", "1 234", "$1,234.00", r"\$ 1,234", "1{,}234", r"1,\!234"],
    ["0.5", "1/2", r"\frac12", r"\dfrac{1}{2}", "½", ".5", "\x0crac{1}{2}"],
    ["1.5", "3/2", "1 1/2", "1½"],
    ["-3", "−3", "-$3", "minus three"],
    ["5 million", "5,000,000", "$5 million", "5 million dollars"],
    ["1e5", "100000", "10^5", "100,000"],
    ["x^2+1", "1+x^2", "x² + 1", "y = x^2 + 1"],
    [r"2\pi", "2π"], [r"\sqrt{2}", "√2", "sqrt(2)"],
    ["(1,2)", "(1, 2)", r"\left(1,2\right)"],
    ["{1,2}", r"\{2, 1\}"],
    ["0<x<1", "1 > x > 0"],
    ["Paris", "paris.", r"\text{Paris}", "“Paris”"],
    ["A", "(A)", "a.", "**A**"],
    [r"5^\circ C", "5°C", "5 °C", r"5^{\circ}\text{C}", "5 degrees Celsius"], [r"\frac13 \text{ cm}", r"\frac{1}{3} cm"],
    ["May 5", "5 May"], ["3:00 PM", "15:00"], ["The Beatles", "Beatles"],
]  # fmt: skip
OPEN = """
    Paris | A | B+ | C++ | I | e | i | x | pi | NaN | WWII | U2 | 4K | 3d | 5G | COVID-19 | 7-Eleven | 10 Downing Street
    yes | no | true | May 5 | 2020-01-02 | 12/31/1999 | 01/02/2020 | 3:00 PM | 15:30 | 3-2 | 1980-1990 | 3–5 | 4:3 | 1.2.3
    555-1234 | (555) 123-4567 | 978-3-16-148410-0 | 192.168.0.1 | 007 | 02134 | 10/4 | 50/50 | 20/20 | 24/6 | 5/1 | 90+3
    3×4 | 1, 2 | 3 and 5 | 3 apples | 3 years | 3 dozen | 5 km | 5' | 6'2" | 5! | <5 | >5 | ~5 | n/a | a/b | A+B | w/o | 1st
    42nd Street | Catch-22 | 1990s | €5 | £5 | 20 °C | #1 | not 5 | 5 or 6 | at least 3 | A = B | x not = 5 | total = 5 | 2nd
    728,000 ft² | 6×10^8 m | 3×10^5 kg | x = 5 m | K-12 | F-16 | B-52 | Route 66 | Apollo 11 | -A | (A) | (a, b) | [x] | ^_^ | 100 m | 5 m | one of them | no one | first
"""
FORMULAS = [
    "x^2+1", "2x+3", "a+b", "2x", "x-5", "n/2", "x=5", "A = 10", "x=1, y=2", "f(x)=2x+1", "0<x<1", "x ≥ 2", "√2", "2π",
    "∞", "2^10", "10-3=7", "sqrt(2)", "cos(x)", "(1,2)", "[0,1)", "{1,2}", "(1, 2, 3)", "2+3i", "2-3i", "204_5", "±2", "x²", "6×10^8",
]  # fmt: skip


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_one_answer_written_in_many_ways(group):
    assert len({auto.key(answer) for answer in group}) == 1, {a: auto.key(a) for a in group}


def test_no_two_groups_share_a_key():
    keys = [auto.key(group[0]) for group in SAME]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "answer", [a.strip() for a in OPEN.replace("\n", "|").replace("|  ", "|").split("|") if a.strip()]
)
def test_what_is_not_beyond_doubt_is_an_open_answer(answer):
    assert auto.key(answer) == text.key(answer)
    assert auto.key(answer).startswith(("p:", "d:"))


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_are_mathematics(formula):
    assert auto.key(formula) == mathematics.key(formula)
    assert not auto.key(formula).startswith(("p:", "d:"))


@pytest.mark.parametrize(("a", "b"), [
    ("3 years", "3 months"), ("3 north", "3 south"), ("5 million", "5 billion"), ("3 dozen", "3"), ("2 pi", "2"), ("5 km", "5 miles"),
    (r"5^\circ C", r"5^\circ F"), (r"5^{\circ}\text{C}", r"5^{\circ}\text{F}"), ("$5^\\circ$C", "$5^\\circ$F"), (r"5^\circ C", "5"), (r"-3^\circ\mathrm{C}", r"-3^\circ\mathrm{F}"),
    (r"\frac12 \text{ cm}", r"\frac12 \text{ m}"), (r"\frac12 \text{ cm}", r"\frac12"), (r"2\pi \text{ cm}", r"2\pi \text{ km}"), (r"3\times 10^3 \text{ m}", r"3\times 10^3 \text{ km}"),
    ("5 mm", "5 Mm"), ("5mm", "5Mm"), ("5 mg", "5 Mg"), ("5 ms", "5 Ms"), ("5ms", "5Ms"), ("5 ml", "5 Ml"), ("20 degrees Celsius", "20 degrees Fahrenheit"), ("3%, 4", "3, 4%"), ("f'(x)=3x", "f(x)=3x"),
    ("(x,y)=(1,2)", "(y,x)=(1,2)"), ("x_1=3", "x_2=3"), ("f(2)=3", "f(3)=3"), ("AB=5", "CD=5"), ("P(A)=1/2", "P(B)=1/2"),
    ("3-2", "1"), ("1980-1990", "-10"), ("2/4", "1/2"), ("50/50", "1"), ("90+3", "93"), ("3×4", "12"), ("4:3", "8:6"), ("1, 2", "2, 1"),
    ("9/10", "10/9"), ("007", "7"), ("A", "B"), ("3:00 PM", "3:00 AM"), ("B2", "2B"), ("-5", "5"), ("<5", ">5"), ("(0,1)", "[0,1]"),
    ("5", "5!"), ("Vitamin A", "Vitamin"), ("x+1", "x-1"), ("€5", "$5"), ("12%", "0.12"), ("4 red and 6 blue", "6 red and 4 blue"),
])  # fmt: skip
def test_different_answers_are_never_merged(a, b):
    assert not answers.equivalent(a, b, auto)


@given(st.text(max_size=40))
def test_a_key_is_that_of_mathematics_or_of_an_open_answer_never_between(answer):
    key = auto.key(answer)
    if key is not None and key.startswith(("p:", "d:")):
        assert key == text.key(answer)
    assert not (mathematics.key(answer) or "").startswith(("p:", "d:"))


@given(st.integers(-(10**9), 10**9), st.integers(1, 999))
def test_numbers_fall_together_by_value(whole, cents):
    plain = auto.key(str(whole))
    assert plain == f"n:{whole}"
    assert {auto.key(form) for form in (f"{whole:,}", f"{whole}.0", f"{whole}.00", f"{whole}%")} == {plain}
    if whole >= 0:
        assert {auto.key(form) for form in (f"${whole}", f"{whole} dollars", f"${whole:,}.00")} == {plain}
    assert auto.key(f"{whole}.{cents:03}1") != plain


PIECES = ["1", "23", ".5", "x", "y", "A", "+", "-", "*", "/", "^", "=", "<", "(", ")", "[", ",", " ", "%", "$", "and", "Paris", "\\frac",
          "{", "}", "!", ":", "π", "√", "pm", "dollars", "million", "the", "#", "'", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_anything_gets_one_key_whatever_blanks_surround_it(answer):
    assert auto.key(f"  {answer}\n") == auto.key(answer)


def partition(keys):
    names: dict[str, int] = {}
    return [None if key is None else names.setdefault(key, len(names)) for key in keys]


RECORDED = [
    ("openai_gsm8k_examples", "answer", mathematics, 0.99), ("qwen25math_rm_math100", "answer", mathematics, 0.97),
    ("wisdom_gpt35_nlu_asdiv_single_answer", "answer_x", mathematics, 0.99), ("smollm2_add1", "answer", mathematics, 0.99),
    ("zeroeval_math_l5", "answer_x", mathematics, 0.93), ("verifycot_gpt35_date", "answer", text, 1), ("smollm2_cap", "answer", text, 1),
    ("mmlupro_text_1in8", "answer", choice, 1),
]  # fmt: skip


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "field", "own", "share"), RECORDED, ids=[name for name, *_ in RECORDED])
def test_recorded_pools_fall_into_the_classes_of_their_own_relation(recorded_pools, name, field, own: Relation, share):
    with gzip.open(recorded_pools / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        pools = [[path.get(field) for path in json.loads(line)["paths"]] for line in stream]
    same = sum(partition(map(auto.key, pool)) == partition(map(own.key, pool)) for pool in pools)
    assert same >= share * len(pools)


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "field"), [("faithfulcot_gsm8k_pool", "answer"), ("zeroeval_gsm8k", "answer_x")])
def test_word_problems_of_many_spellings_lose_almost_no_votes(recorded_pools, name, field):
    """A unit behind a number stays (3 years is not 3 months); it must cost the winner no more than a few votes."""
    with gzip.open(recorded_pools / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        pools = [[path.get(field) for path in json.loads(line)["paths"]] for line in stream]

    def largest(relation, pool):
        keys = [key for key in map(relation.key, pool) if key is not None]
        return max(map(keys.count, keys), default=0)

    assert sum(largest(auto, pool) for pool in pools) > 0.95 * sum(largest(mathematics, pool) for pool in pools)
