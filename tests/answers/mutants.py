"""Mutants: an answer with one token changed, which as a rule makes it another answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\\begin\{\w+\}|\\end\{\w+\}|\\[a-zA-Z]+|\\[^a-zA-Z]|[^\W\d_]+(?:\.[a-z]\.)?|\d+(?:\.\d+)?|<=|>=|!=|\s+|.", re.S
)
_SIGNS = {
    "+": "-", "-": "+", "*": "+", "/": "*", "=": "<", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "=", "±": "+",
    "(": "[", ")": "]", "[": "(", "]": ")", "≤": "≥", "≥": "≤", "∪": "∩", ":": "/", ",": ";", ";": ",", "%": "x",
}  # fmt: skip
_COMMANDS = r"""
    \le \ge|\ge \le|\leq <|\geq >|\neq =|\ne =|\lt >|\gt <|\cup \cap|\pm +|\cdot +|\times +|\sin \cos|\cos \sin|
    \tan \cot|\ln \log|\pi e|\infty 0|\sqrt \sin|\in \notin|\alpha \beta|\theta \phi|\overline \sqrt
"""
_OPPOSITES = """
    and or|am pm|AM PM|a.m. p.m.|million billion|north south|east west|more less|left right|before after|early late|
    yes no|even odd|true false|least most|max min|above below|over under|red blue|first second|one two
"""
_WORDS = "thousand million|hundred thousand|dozen hundred|fewer more|two three"
_PAIRS = [tuple(pair.split()) for pair in f"{_COMMANDS}|{_OPPOSITES}|{_WORDS}".split("|")]
_BACK = [tuple(pair.split())[::-1] for pair in _OPPOSITES.split("|")]
_OTHERS = _SIGNS | dict(_BACK) | dict(_PAIRS)
"""What a token becomes: something that changes the answer, and can be read as well."""
_DROPPED_ALONE = frozenset("+-*/^=<>!%|_'\"")


@dataclass(frozen=True)
class Mutant:
    """What became of an answer, and how."""

    change: str
    """What was done: replaced, dropped, repeated, swapped, or a sign put in."""
    token: str
    before: str
    """The text in front of the token."""
    after: str
    """The text behind it."""
    answer: str


def mutants(answer: str) -> Iterator[Mutant]:
    """Every mutant of an answer, in order; none is the answer itself."""
    tokens = [(match.start(), match.group()) for match in _TOKEN.finditer(answer)]
    for start, token in tokens:
        before, after = answer[:start], answer[start + len(token) :]
        for change, other in _changes(token, before):
            if other != token:
                yield Mutant(change, token, before, after, before + other + after)
    yield from _reordered(answer)
    for power in re.finditer(r"(\w+)\^(\w+)", answer):
        before, after = answer[: power.start()], answer[power.end() :]
        if power[1] != power[2]:
            yield Mutant("base and power", power[0], before, after, f"{before}{power[2]}^{power[1]}{after}")
    if any(digit in answer for digit in "123456789"):
        for word in ("-", "not ", "at least ", "2", "<", "7777-"):
            yield Mutant("put in front", word, "", answer, word + answer)


def _changes(token: str, before: str) -> Iterator[tuple[str, str]]:
    """(what is done, what stands in the token's place)."""
    if token.isspace():
        return
    if token in _OTHERS:
        yield "replaced", _OTHERS[token]
    if token[0].isdecimal():
        yield "first digit", _next(token[0]) + token[1:]
        yield "last digit", token[:-1] + _next(token[-1])
        if "." in token:
            yield "point dropped", token.replace(".", "")
        if len(token) == 1 or not before.endswith((".", ",")):
            yield "digit more", token + "7"
        yield "word put in", token + " north"
        if float(token) != 0:
            yield "letter put in", token + "y"
            yield "sign put in", "-" + token
            yield "scale put in", token + " million"
        if float(token) not in (0, 1):
            yield "exponent put in", token + "^3"
    elif token.isalpha() and len(token) == 1:
        yield "replaced", "k" if token != "k" else "n"
        yield "case", token.swapcase()
        yield "squared", token + "^2"
        yield "multiplied", "2" + token
    elif token.isalpha():
        if token not in _OTHERS:
            yield "word replaced", "green" if token != "green" else "brown"
        yield "word dropped", ""
        yield "unit put in", "liters" if token != "liters" else "dollars"
        yield "letters swapped", token[1] + token[0] + token[2:]
    elif token in _DROPPED_ALONE:
        yield "dropped", ""
    elif token.startswith("\\") and token not in _OTHERS and token[1].isalpha():
        yield "command replaced", "\\gamma " if not token.startswith(("\\begin", "\\end")) else token


def _next(digit: str) -> str:
    return str((int(digit) + 1) % 10)


def _reordered(answer: str) -> Iterator[Mutant]:
    """Neighbours in a list changed over, an entry repeated, an entry dropped."""
    parts = re.split(r"(,|;|&|\\\\|:|/|<|>|-|\}\{| to | and )", answer)
    for place in range(0, len(parts) - 2, 2):
        first, sign, second = parts[place : place + 3]
        before, after = "".join(parts[:place]), "".join(parts[place + 3 :])
        pieces = {"swapped": second + sign + first, "repeated": first + sign + first, "entry dropped": second}
        for change, piece in pieces.items():
            if before + piece + after != answer:
                yield Mutant(change, sign, before, after, before + piece + after)
