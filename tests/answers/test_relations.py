"""Relations: which answers are the same, that sameness is an equivalence relation, and that nothing hostile gets through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from demur import answers
from demur.answers import choice, mathematics, plain, text
from demur.answers.equivalence.mathematics.keys import key
from demur.errors import InvalidValue
from demur.tasks import task_named

SAME = [
    ["0.5", ".50", "1/2", "\\frac12", "\\dfrac{1}{2}", "½", "$\\frac{1}{2}$", "x = \\frac{1}{2}", "0.5.", "\\left(\\frac12\\right)"],
    ["50", "50\\%", "50 %", "50 percent", "50.0", "$50", "\\$50", "50^\\circ", "50 \\text{ cm}", "50 square units"],
    ["1234567", "1,234,567", "1{,}234{,}567", "1,\\!234,\\!567", "1 234 567"],
    ["1\\frac12", "1 1/2", "1.5", "\\frac{3}{2}", "3/2"],
    ["0.\\overline{3}", "\\frac13", "1/3"],
    ["0.8660254037844386", "\\frac{\\sqrt{3}}{2}", "\\sqrt3/2", "√3/2"],
    ["0.0833333333333333", "\\frac{1}{12}"],
    ["2.5e-10", "2.5 \\times 10^{-10}", "2.5·10⁻¹⁰"],
    ["3\\sqrt{13}", "\\sqrt{117}", "3*\\sqrt{13}"],
    ["\\frac{9}{4}\\pi", "\\frac94\\pi", "9\\pi/4", "2.25π"],
    ["1+2i", "i(2-i)", "2i+1"],
    ["x^2+2x+1", "(x+1)^2", "x^2 + 2*x - (-1)", "y = x^2+2x+1", "f(x)=(x+1)^2"],
    ["\\tan^2(y)+1", "\\sec^2(y)", "\\frac{1}{\\cos^2 y}"],
    ["\\sqrt{1/n}", "\\frac{1}{\\sqrt{n}}"],
    ["(1,\\frac{9}{2})", "(1,4.5)", "\\left(1, 4.5\\right)", "(x,y)=(1,4.5)", "\\begin{pmatrix}1\\\\4.5\\end{pmatrix}"],
    ["1,2,3", "3, 1 \\text{ and } 2", "\\{1,2,3\\}", "1 and 2 and 3", "x=1, x=2, x=3"],
    ["\\pm 2021", "\\{-2021, 2021\\}", "-2021, 2021"],
    ["x \\geq 5", "5 \\leq x", "[5, \\infty)", "x \\in [5,\\infty)", "-x \\le -5", "2x \\ge 10"],
    ["0<x<1", "(0,1)", "1>x>0"],
    ["[-1,0) \\cup (0,1]", "(0,1] \\cup [-1,0)"],
    ["34x+45y-20z+100=0", "-34x-45y+20z-100=0"],
    ["x^2/4 + y^2/3 = 1", "x^2/16 + y^2/12 = 1/4"],
    ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{bmatrix} 1 & 2 \\\\ 3 & \\frac{8}{2} \\end{bmatrix}"],
    ["4210_{7}", "4210_7"],
    ["\\text{E}", "E", "\\mathrm{E}", "\\text{(E)}"],
    ["\\text{Even}", "even", "Even."],
    ["−5", "-5", "\\text{-5}"],
    ["9 + 2√10", "9+2\\sqrt{10}", "9 + 2\\sqrt10", "2*sqrt(10) + 9"],
    ["\x0crac{1}{4}", "\\frac{1}{4}", "0.25"],
    ["3.3333333333333335", "10/3"], ["36.666666666666664", "110/3"],
    ["wendy_age/3 - 25", "-25 + wendy_age / 3"], ["-221_3", "-221_{3}"], ["\\{\\}", "\\emptyset", "∅"],
    ["\\sqrt[3]{2+\\sqrt{5}}+\\sqrt[3]{2-\\sqrt{5}}", "1"],
]  # fmt: skip

DIFFERENT = [
    ("1e-7", "2e-7"), ("0.0000001", "0.0000002"), ("\\frac{1}{2^{99}}", "\\frac{1}{2^{98}}"), ("4t", "4"), ("x+3d", "x+3"),
    ("i = 5", "i = -5"), ("e=5", "e=6"), ("204_5", "204_6"), ("28\\%", "0.28"), ("50", "0.5"), ("4", "4\\sqrt(2)"),
    ("\\frac{1}{2004!}", "\\frac{1}{2006!}"), ("[0,1)", "(0,1)"), ("(1,3)", "(3,1)"), ("x=1,y=2", "x=2,y=1"), ("x", "y"),
    ("\\sqrt{x^2}", "x"), ("123456789012345678", "123456789012345679"), ("2x+z=1", "1"), ("7 = 11a+c", "11a+c"),
    ("\\sin(x)=\\frac{42}{59}", "\\cos(x)=\\frac{42}{59}"), ("\\pm 2021", "2021"), ("12:00", "1:00"), ("f(x)", "f(y)"),
    ("300 \\text{ acres of corn and } 200 \\text{ acres of wheat}", "300"), ("1.732", "\\sqrt3"), ("(a+5)(b+2)", "(+5)(b+2)"),
    ("10cm", "10"), ("2", "AZYUK2A"), ("x<3", "x>3"), ("x<3", "x \\le 3"), ("1,2", "1,3"), ("32, 349", "32349"),
    ("(1,234)", "1234"), ("F_n", "F_k"), ("9999.857142857143", "9999.857142857"), ("p", "q"), ("100!", "101!"),
    ("9 + 2√10", "9"), ("7 + √29", "7 + √2 \\cdot 9"), ("4 blue and 6 red", "4 blue and 6 green"), ("2 is a part", "2 is a trap"),
    ("4 past + 1", "4 taps + 1"), ("wendy_age", "wendy_now"), ("floor(3)", "3 floor"), ("2*dogs", "2*gods"), ("10011_b", "10011"),
]  # fmt: skip

HOSTILE = [
    "9^{9^{9^{9}}}", "9**9**9**9", "2^{2^{2^{2^{2^2}}}}", "7^{10000000}", "10000000!", "(((9!)!)!)!", "\\binom{1000000}{500000}",
    "\\sum_{k=1}^{1000000000}\\frac{1}{k^3}", "(x+1)^{500}", "x^{50}+x+1=0", "(" * 1000 + "1" + ")" * 1000, "{" * 5000,
    "\\frac{1}{1+" * 30 + "1" + "}" * 30, ",".join(map(str, range(2000))), "1" + "+1" * 20000 + "x", "1\\pm1" * 50, "-" * 5000 + "1",
    "9" * 1_000_000, "0." + "3" * 1_000_000, "a " * 500_000, "=" * 10_000, "$" * 10_000, "\\" * 10_000, "x_{" * 3000, "|" * 3000,
    "__import__('os').system('touch hacked')", "(lambda: 1)()", "x.__class__.__mro__", "eval('1')", "\x00\x01\x02", "1\x002",
    "\u202e12", "\ud800", "１２", "Ⅻ", "e^{e^{e^{e^{e}}}}", "10^{-10^{10}}", "\\sqrt[1000000]{2}", "\\sqrt[0]{2}", "0^{-1}", "1/0",
    "\\log 0", "\\tan(\\pi/2)", "1e999999", "1e-999999", "\\text{" * 500, "\\begin{pmatrix}" * 200, "S" * 2000 + "=1", "a b c d e f " * 150 + "=1",
    "a=" * 900 + "1", "((((((((((a)b)c)d)e)f)g)h)i)j" * 50, " " * 100_000 + "1", "answer" + " " * 100_000, "f(" * 500 + "x" + ")" * 500,
    "When x = 6, substitute x into the equation to find the value of y: y = (1/4)(6 - 2)^2 + 3 = 4 + 3 = 7" * 15,
]  # fmt: skip


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_one_answer_written_in_many_ways(group):
    assert len({mathematics.key(answer) for answer in group}) == 1, {a: mathematics.key(a) for a in group}


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_answers_are_never_merged(a, b):
    assert not answers.equivalent(a, b)


def test_no_two_groups_share_a_key():
    keys = [mathematics.key(group[0]) for group in SAME]
    assert len(set(keys)) == len(keys)


def test_classes_are_transitive_where_graders_bridge():
    keys = answers.classes(["50", "50\\%", "0.5", "20.0\\%", "20"])
    assert keys[0] == keys[1] != keys[2]
    assert keys[3] == keys[4]


def bounded(key, answer):
    """The key, or a failure instead of a hang. The limit is wide: a busy machine must not fail this."""

    def give_up(*_):
        raise AssertionError(f"no key within twenty seconds for {answer[:60]!r}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    try:
        return key(answer)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("relation", answers.RELATIONS.values(), ids=answers.RELATIONS)
@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers_get_a_key_without_hanging_crashing_or_running(relation, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bounded(relation.key, answer) == relation.key(answer)
    bounded(lambda t: relation.extract(t), answer)
    assert not list(tmp_path.iterdir())


MEGABYTES = [
    "9" * 10**7, "1 " * 5 * 10**6, "(" * 10**7, "\\boxed{" * 1_500_000, "<answer>" * 1_250_000, "<think>" * 1_400_000 + "5",
    "the answer is " * 700_000, "A) " * 3_300_000, "\n" * 10**7 + "4", "\\frac{1}{" * 10**6, "=" * 10**7, "-" * 10**7, "," * 10**7, "0." * 5 * 10**6,
    "$" * 10**7, "\u202e" * 3 * 10**6, "a" * 10**7 + ".", "1," * 5 * 10**6, "I don't know " * 800_000, "\\" * 10**7,
]  # fmt: skip


@pytest.mark.parametrize("relation", answers.RELATIONS.values(), ids=answers.RELATIONS)
@pytest.mark.parametrize("answer", MEGABYTES, ids=lambda answer: ascii(answer[:12]))
def test_ten_megabytes_are_read_in_one_linear_pass(relation, answer):
    bounded(relation.key, answer)
    bounded(relation.extract, answer)


PIECES = ["\\frac", "{", "}", "(", ")", "[", "]", "1", "23", ".5", "x", "y", "e", "i", "\\pi", "^", "_", "+", "-", "*", "/", "=", "<",
          "\\le", ",", "\\sqrt", "\\sin", "!", "|", "\\text", " ", "\\cup", "\\pm", "\\infty", "%", "\\begin{pmatrix}", "\\\\", "&",
          "\\end{pmatrix}", "and", "\\%", "$", "\\overline", ":", ";", "'", "\\in", "\\approx", "cm", "9", "\\binom", "\\log"]  # fmt: skip


@settings(max_examples=600)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@example("\\frac{1}{x-x}")
def test_anything_like_latex_gets_a_key_and_blank_space_around_it_changes_nothing(answer):
    found = bounded(mathematics.key, answer)
    if any(character.isalnum() for character in answer):
        assert found is not None
    assert mathematics.key(f"  {answer}\n") == found


@pytest.mark.parametrize("blank", ["", "   ", "___", "?", "--", "…", "$$", "%"])
def test_a_blank_to_fill_in_is_no_answer(blank):
    assert mathematics.key(blank) is None
    assert answers.classes([blank, blank]) == [None, None]
    assert not answers.equivalent(blank, blank)


@settings(max_examples=300)
@given(st.text(max_size=60))
def test_any_text_gets_a_key_in_every_relation(answer):
    for relation in answers.RELATIONS.values():
        found = bounded(relation.key, answer)
        assert found is None or isinstance(found, str)
        extraction = bounded(relation.extract, answer)
        assert extraction.answer is None or extraction.answer.strip()


@settings(max_examples=300)
@given(st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_bytes_get_a_key_in_every_relation(answer):
    for relation in answers.RELATIONS.values():
        assert bounded(relation.key, answer) == relation.key(answer)
        bounded(relation.extract, answer)


@settings(max_examples=200)
@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_rational_numbers_are_the_same_exactly_when_they_are_equal(a: Fraction, b: Fraction):
    forms = [
        f"{a}",
        f"\\frac{{{a.numerator}}}{{{a.denominator}}}",
        f"x = {a}",
        f"{2 * a.numerator}/{2 * a.denominator}",
    ]
    assert len({mathematics.key(form) for form in forms}) == 1
    assert answers.equivalent(str(a), str(b)) == (a == b)


def test_gold_may_be_a_list_and_never_bridges_two_classes():
    assert answers.is_correct("0.50", ["1/3", "\\frac12"])
    assert not answers.is_correct("0.5", ["50\\%"])
    assert not answers.is_correct(None, [None])
    assert answers.is_correct(6, "6.0")


def test_relations_have_versioned_names_and_unknown_ones_are_refused():
    assert mathematics.spec == "mathematics@3"
    assert answers.auto.spec == "auto@2"
    assert task_named("math").relation is mathematics
    assert task_named("QA").relation is text
    assert task_named("multiple_choice").relation is choice
    assert task_named(None).relation is answers.auto
    with pytest.raises(InvalidValue, match="unknown relation 'maths'"):
        answers.relation_named("maths")


def test_explanations_name_both_readings():
    said = answers.explain("1/2", "0.5")
    assert "the number 1/2" in said
    assert "The same by mathematics@3" in said
    assert "Different" in answers.explain("4t", "4")
    assert "no answer" in answers.explain("", "4")


def test_keys_are_the_same_in_every_process():
    surfaces = [
        *(group[0] for group in SAME),
        *(answer for answer in HOSTILE if len(answer) < 3000 and answer.isascii()),
    ]
    script = (
        "import json, sys; from demur import answers; "
        "print(json.dumps([[r.key(a) for a in json.load(open(sys.argv[1]))] for r in answers.RELATIONS.values()]))"
    )
    with NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(surfaces, file)
        file.flush()
        said = {
            subprocess.run(
                [sys.executable, "-c", script, file.name],
                env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, timeout=120,
            ).stdout
            for seed in ("1", "2")
        }  # fmt: skip
    here = [[relation.key(answer) for answer in surfaces] for relation in answers.RELATIONS.values()]
    assert [json.loads(output) for output in said] == [here]


# --- open answers, choices, plain ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "group",
    [["The Beatles", "beatles", "the beatles.", "“The Beatles”"], ["1,000", "1000", "1000.0"], ["four", "4"],
     ["July 4, 1776", "4 July 1776", "1776-07-04", "Jul 4th, 1776"]],
    ids=lambda group: group[0],
)  # fmt: skip
def test_open_answers_that_are_the_same(group):
    assert len({text.key(answer) for answer in group}) == 1, {a: text.key(a) for a in group}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("3.5", "35"),
        ("-5", "5"),
        ("1980-1990", "19801990"),
        ("The The", "A"),
        ("the", "an"),
        ("July 4, 1776", "July 5, 1776"),
    ],
)
def test_open_answers_that_the_usual_normalisation_would_merge_by_accident(a, b):
    assert not answers.equivalent(a, b, text)


def test_choices_are_letters_however_dressed_or_their_text():
    forms = ["B", "(B)", "b", "B.", "\\text{(B)}", "**B**", "B: because it is", "$B$"]
    assert {choice.key(form) for form in forms} == {"o:B"}
    assert choice.key("Paris") == text.key("paris")


@pytest.mark.parametrize("answer", ["6", "6.0", " 6 ", "+6", "06", "6.", "6.000", 6, 6.0])
def test_the_plain_relation_compares_decimals_by_value(answer):
    assert plain.key(answer) == "6"


@given(st.from_regex(r"[+-]?([0-9]{1,6}(\.[0-9]{0,5})?|\.[0-9]{1,5})", fullmatch=True),
       st.from_regex(r"[+-]?([0-9]{1,6}(\.[0-9]{0,5})?|\.[0-9]{1,5})", fullmatch=True))  # fmt: skip
def test_plain_decimals_share_a_key_exactly_when_they_are_equal(a, b):
    assert (plain.key(a) == plain.key(b)) == (Fraction(a.removeprefix("+")) == Fraction(b.removeprefix("+")))
    assert answers.equivalent(a, b, mathematics) == (plain.key(a) == plain.key(b))


def test_a_second_pass_is_served_from_memory():
    surfaces = [f"\\frac{{{n}}}{{7}} + \\sqrt{{{n}}}" for n in range(300)]
    first = answers.classes(surfaces)
    before = key.cache_info()
    assert answers.classes(surfaces) == first
    assert key.cache_info().misses == before.misses


def test_a_batch_larger_than_the_memory_is_keyed_as_one_by_one():
    surfaces = [f"{n}/8" for n in range(100_000)]
    together = answers.classes(surfaces)
    assert key.cache_info().currsize <= key.cache_info().maxsize < len(surfaces)
    key.cache_clear()
    assert [mathematics.key(surface) for surface in reversed(surfaces)] == together[::-1]
    assert together[2] == together[0].replace("0", "1/4")
