"""Answers of no known task: mathematics where that is beyond doubt, else an open answer. Decided by the answer alone.

    mathematics    42, -3.5, 1,234, twenty-five, 5 million, $18, 18 dollars, 12%, 90°, 1/2, 1 1/2, 1e5; formulas:
                   \\frac12, x^2+1, 2π, x=5, 0<x<1; numbers in brackets: (1,2), [0,1), {1,2}
    open answers   words, letters, dates, clock times, scores and ranges (3-2, 1980-1990), versions (1.2.3), ratios
                   (4:3), sums (90+3), sizes (3×4), bare lists (1, 2), numbers with a unit (3 years is not 3 months,
                   5^\\circ C is not 5^\\circ F)
                   and fractions not in lowest terms, which may be days or shares (10/4, 50/50)

The two kinds of keys never meet: those of open answers begin with p: or d:, and none of mathematics does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import gcd

from demur.answers.equivalence import text
from demur.answers.equivalence.dress import undressed
from demur.answers.equivalence.mathematics import keys as mathematics

_FIGURES = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,9})?", re.A)  # most answers, without further ado
_NUMBER = re.compile(r"p:(-?)(?!\$.*[%°])\$?((?:0|[1-9]\d*)(?:\.\d+)?(?:e[-+]?\d{1,3})?)[%°]?", re.A)
_FRACTION = re.compile(r"p:(-?)(?:([1-9]\d{0,8}) )?([1-9]\d{0,8})/([1-9]\d{0,8})", re.A)

_FUNCTIONS = "arcsin|arccos|arctan|sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi"
_COMMAND = re.compile(
    rf"\\(?:{_FUNCTIONS}|[dtc]?frac|[dt]?binom|cdot|times|div|pm|mp|leq?|geq?|neq?|infty|cup|cap|in|sum|prod|int|lim|circ|"
    r"degree|begin|left|right|overline|mathbb|emptyset|varnothing|approx|equiv|alpha|beta|gamma|delta|epsilon|theta|"
    r"lambda|mu|rho|sigma|tau|phi|varphi|omega|\{)(?![a-zA-Z])"
    r"|\x0crac\{|\x08(?:egin|inom)\{"  # what a JSON reader makes of \frac and \begin
)
_NAME = re.compile(r"[A-Za-z](?:_?\w)?(?:\(\w{1,3}\))?\s?(?==)", re.A)
_SIGNS = "=<>≤≥≠^√π∞±∪∩²³⁴⁵⁶⁷⁸⁹+*/×·÷|_()[]{}!-"
_CHARACTERS = re.compile(rf"[\da-z\s.,;{re.escape(_SIGNS)}]*", re.A)
_FUNCTION = re.compile(rf"(?<![a-z])(?:{_FUNCTIONS})(?![a-z])")
_LETTERS = re.compile(r"[a-z]+")
_BEYOND_DOUBT = re.compile(r"[√π∞±²³⁴⁵⁶⁷⁸⁹]|\S\s?\^\s?\S|[^\s=<>]\s?=\s?[^\s=]")
_BOUND = re.compile(r"[\da-z)]\s?[<>≤≥≠]=?\s?[\da-z(-]")
_SUM = re.compile(r"[\da-z)]\s?[+*]\s?[\da-z(]")
_SHORT = re.compile(
    r"\d{0,9}[xyzn]\s?[-/]\s?\d{1,9}|\d{1,9}\s?[-/]\s?\d{0,9}[xyzn]|\d{1,9}[xyzn]"  # x-5, 5/x, 2x
    r"|-?\d{1,9}\s?-\s?\d{0,9}i|-?\d{1,20}_(?:\d\d?|\{\d\d?\})", re.A,  # 2-3i, 204_5
)  # fmt: skip
_UNIT = re.compile(r"[\d)]\s+[a-z]+(?:[²³]|\^\d)?\s?(?:$|[,;)\]}])", re.A)
_VALUE = r"\s?[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:/\d+)?\s?"
_IN_BRACKETS = re.compile(rf"[(\[{{]{_VALUE}(?:[,;]{_VALUE})+[)\]}}]", re.A)
_DEGREES = re.compile(r"\s?(?:\^\s?)?(?:\{\s?\\circ\s?\}|\\circ(?![a-zA-Z])|\\degree(?![a-zA-Z]))\s?")
_SCALE = re.compile(r"(?<=°)(?:\s|\\[,;: ]|\$)*(?:\\(?:text|mathrm)\s?\{\s?([A-Z])\s?\}|([A-Z])(?![a-zA-Z]))")
_UNREAD = ("s", "w", "r", "k")  # what mathematics takes for text, words, a ratio or a number with words


@lru_cache(maxsize=65_536)
def key(answer: str) -> str | None:
    """The key as mathematics or as an open answer."""
    if _FIGURES.fullmatch(answer):
        return mathematics.key(answer)
    words = text.key(answer)
    if words is None or len(answer.strip()) > text.MAX_LENGTH:
        return words
    if number := _number(words):
        return _mathematics(number) or words
    if _COMMAND.search(answer):
        return _formula(answer) or words
    return (_mathematics(answer) if _is_formula(undressed(answer.strip())) else None) or words


def _formula(answer: str) -> str | None:
    """The key of LaTeX. Mathematics drops a unit behind it; here it stays, and so does the scale of degrees."""
    if r"\circ" in answer or r"\degree" in answer:
        answer = _DEGREES.sub("°", answer)
        if _SCALE.search(answer):
            return text.key(_SCALE.sub(r"\1\2", answer).replace("$", ""))
    found, unit = mathematics.key(answer), mathematics.unit_behind(answer)
    return f"k:{found} {unit}" if found and unit and found[:2] not in ("s:", "k:") else found


def _mathematics(answer: str) -> str | None:
    found = mathematics.key(answer)
    return None if found is None or found.partition(":")[0] in _UNREAD else found


def _number(words: str) -> str | None:
    """The number that is all an open answer says, money and percent aside."""
    if number := _NUMBER.fullmatch(words):
        return number.group(1) + number.group(2)
    if fraction := _FRACTION.fullmatch(words):
        _, whole, top, bottom = fraction.groups()
        proper = int(top) < int(bottom) if whole else int(bottom) > 1
        return words.removeprefix("p:") if proper and gcd(int(top), int(bottom)) == 1 else None
    return None


def _is_formula(bare: str) -> bool:
    """Whether a text without LaTeX can only be a formula: single small letters, and signs that nothing else has."""
    name = _NAME.match(bare)
    formula = "x" + bare[name.end() :] if name else bare
    if not _CHARACTERS.fullmatch(formula) or _UNIT.search(formula):
        return False
    functions, letters = _FUNCTION.search(formula), _LETTERS.findall(_FUNCTION.sub("", formula))
    certain = _BEYOND_DOUBT.search(formula)
    if any(len(run) > (2 if certain else 1) for run in letters):
        return False
    if certain or _SHORT.fullmatch(formula) or _IN_BRACKETS.fullmatch(formula):
        return True
    return bool((letters and (_BOUND.search(formula) or _SUM.search(formula))) or (functions and "(" in formula))
