"""From a written mathematical answer to the key of its equivalence class.

The key says what kind of thing the answer is, and then its value in one canonical form:

    n: rational number      c: constant, to 15 digits     e: expression with letters, by values at fixed points
    i: pair or interval     t: tuple of three or more     u: union       m: matrix       {…} set or bare list
    q: equation             a: assignments to letters     b: number in a base            r: ratio or time
    w: word or letter       s: anything else, as tidied text
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from demur.answers.equivalence.mathematics import _values as values
from demur.answers.equivalence.mathematics._numerals import NUMBER, number_key, numeral_key, rational_key
from demur.answers.equivalence.mathematics._surface import MAX_LENGTH, tidy, without_unit
from demur.answers.equivalence.mathematics._syntax import FUNCTIONS, Node, Unreadable, parse

_BASE = re.compile(r"(-?\d[0-9A-Za-z]*)\s*_\s*\{?\s*(\d{1,2}|[a-z])\s*\}?", re.ASCII)
_RATIO = re.compile(r"\d+(?:\s*:\s*\d+)+", re.ASCII)
_WORD = re.compile(r"\\text\s*\{([^{}]*)\}")
_PLAIN_WORDS = re.compile(r"[A-Za-z][A-Za-z ,.'\-]*")
_MEMBER = re.compile(r"\s*[a-zA-Z]\w*\s*\\in\s*(?!\\text)")
_COMPARISON = re.compile(r"(<=|>=|\\le(?![a-z])|\\ge(?![a-z])|<|>|\\ne(?![a-z]))")
_MATRIX = re.compile(r"\(?\s*\\begin\s*\{(\w*matrix|array|cases)\}(?:\s*\{[lcr| ]*\})?(.*)\\end\s*\{\1\}\s*\)?", re.S)
_INFINITY = {r"\infty": "inf", r"+\infty": "inf", r"-\infty": "-inf"}
_NOT_NAMES = "|".join(sorted([*FUNCTIONS, "frac", "sqrt", "sum", "int", "lim", "prod", "binom", "begin"]))
_ATOM = r"(?:\\[a-zA-Z]+|[a-zA-Z])(?:_(?:\{[^{}]{1,20}\}|\w))?'{0,3}"  # one letter or command each: no two readings
_NAME = re.compile(
    rf"(?!\\?(?:{_NOT_NAMES})(?![a-zA-Z]))(?:"
    rf"{_ATOM}(?: ?{_ATOM})*(?: ?\( ?\\?[a-zA-Z]+(?: ?, ?[a-zA-Z])* ?\))?"  # x, S_n, AB, \theta, f(x)
    r"|\| ?[A-Z]{1,3} ?\|"  # |AB|
    r"|\( ?[a-z](?: ?, ?[a-z])+ ?\)"  # (x, y)
    rf"|{_ATOM} ?: ?{_ATOM})"  # A:B
)
_LONGEST_NAME = 40


def _is_name(text: str) -> bool:
    """Whether a side of an equation only names what the other side gives."""
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


@lru_cache(maxsize=65_536)
def key(answer: str) -> str | None:
    """The key of a written answer; None where none is: no letter, no digit."""
    plain = answer.strip()
    if not plain:
        return None
    if number := NUMBER.fullmatch(plain):
        return number_key(number)
    if len(plain) > MAX_LENGTH:
        return "s:" + "".join(plain.split())
    text = tidy(answer)
    if _is_blank(plain) and _is_blank(text):
        return None
    if not text:
        return "s:" + "".join(plain.split())
    try:
        return _statement(without_unit(text))
    except (Unreadable, RecursionError, OverflowError, ZeroDivisionError):
        return "s:" + "".join(text.split())


def _is_blank(text: str) -> bool:
    """Nothing but a blank to fill in: ___, ?, --."""
    return not any(character.isalnum() or character == "\\" for character in text)


def _statement(text: str) -> str:
    """A bare list of statements, or one of them."""
    parts = _split(text, ",;")
    return _listing(parts) if len(parts) > 1 else _relation(text)


def _split(text: str, separators: str) -> list[str]:
    """Split at separators outside brackets; blank parts vanish."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(0, depth - 1)
        elif character in separators and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _listing(parts: list[str]) -> str:
    """A bare list is a set: its order says nothing. Values of several letters belong to their letters."""
    names: list[str | None] = []
    for part in parts:
        sides = _split(part, "=")
        named = len(sides) == 2 and _is_name(sides[0])
        names.append("".join(sides[0].split()) if named else None)
    keys = [_relation(part) for part in parts]
    if None not in names and len(set(names)) > 1:
        return "a:" + _join(sorted(f"{name}={value}" for name, value in zip(names, keys, strict=True)))
    return _set(keys)


def _join(keys: list[str]) -> str:
    return "{" + "|".join(keys) + "}"


def _set(keys: list[str]) -> str:
    members = {part for key in keys for part in (_split(key[1:-1], "|") if key.startswith("{") else [key])}
    distinct = sorted(members)
    return distinct[0] if len(distinct) == 1 else _join(distinct)


def _relation(text: str) -> str:
    """An inequality, a chain of equalities, a membership, or a quantity."""
    text = _before_approximation(text)
    if _COMPARISON.search(text):
        return _inequality(text)
    sides = _split(text, "=")
    if len(sides) < 2:
        return _quantity(_MEMBER.sub("", text, count=1) if _MEMBER.match(text) else text)
    first, last = sides[0], sides[-1]
    if _is_name(first) and not _is_name(last):
        return _quantity(last)
    nodes = [parse(side) for side in sides]
    if not any(values.letters(node) for node in nodes):
        return _quantity(last)
    if len(nodes) > 2:
        raise Unreadable("a chain of equations")
    return "q:" + _equation(nodes[0], nodes[1])


def _before_approximation(text: str) -> str:
    """`x = 1/3 ≈ 0.33` is 1/3, and `x ≈ 11` is 11."""
    exactly, *roughly = text.split(r"\approx")
    if not roughly:
        return text
    return roughly[0] if not exactly.strip() or _is_name(exactly.strip()) else exactly


def _equation(left: Node, right: Node) -> str:
    """f = g as the ratios of f − g between points: the same for every multiple of the equation."""
    node = ("add", left, ("neg", right))
    first, *others = at_points = [values.numeric(node, number) for number in range(values.POINTS)]
    if any(value == 0 for value in at_points):
        raise Unreadable("degenerate equation")
    ratios = ";".join(values.digits(value / first) for value in others)
    return ",".join(sorted(values.letters(node))) + ":" + ratios


def _inequality(text: str) -> str:
    """An inequality that bounds one letter is the interval of its values."""
    pieces = _COMPARISON.split(text)
    sides = [piece.strip() for piece in pieces[::2]]
    signs = [{"<=": r"\le", ">=": r"\ge"}.get(sign, sign) for sign in pieces[1::2]]
    if any(sign in (">", r"\ge") for sign in signs) and len(sides) == 3:
        sides, signs = sides[::-1], [{">": "<", r"\ge": r"\le"}.get(sign, "") for sign in signs[::-1]]
    if len(sides) == 3 and all(sign in ("<", r"\le") for sign in signs):
        opening, closing = "(" if signs[0] == "<" else "[", ")" if signs[1] == "<" else "]"
        return _pair(opening, _quantity(sides[0]), _quantity(sides[2]), closing)
    if len(sides) != 2 or signs[0] == r"\ne":
        raise Unreadable("inequality")
    strict, upward = signs[0] in ("<", ">"), signs[0] in (">", r"\ge")
    left, right = parse(sides[0]), parse(sides[1])
    if _is_name(sides[0]) and not values.letters(right):
        bound = _quantity(sides[1])
    elif _is_name(sides[1]) and not values.letters(left):
        bound, upward = _quantity(sides[0]), not upward
    else:
        slope, offset = _linear(("add", left, ("neg", right)))
        bound, upward = rational_key(-offset / slope), upward == (slope > 0)
    if upward:
        return _pair("(" if strict else "[", bound, "inf", ")")
    return _pair("(", "-inf", bound, ")" if strict else "]")


def _linear(node: Node) -> tuple[Fraction, Fraction]:
    """Slope and offset of an expression that is linear in its one letter, with rational coefficients."""
    names = values.letters(node)
    if len(names) != 1:
        raise Unreadable("not one letter")
    at = [values.exact(values.substitute(node, next(iter(names)), Fraction(x))) for x in (0, 1, 2, 5)]
    known = [value for value in at if value is not None]
    if len(known) < len(at):
        raise Unreadable("not rational")
    zero, one, two, five = known
    slope = one - zero
    if slope == 0 or two - one != slope or five - zero != 5 * slope:
        raise Unreadable("not linear")
    return slope, zero


def _pair(opening: str, low: str, high: str, closing: str) -> str:
    """A pair in brackets: a point of the plane or an interval, which are written alike."""
    return f"i:{'(' if low == '-inf' else opening}{low},{high}{')' if high == 'inf' else closing}"


def _quantity(text: str) -> str:
    """One number, word, bracket, matrix or expression."""
    text = text.strip()
    if not text:
        raise Unreadable("nothing")
    if r"\cup" in text:
        return "u:" + _join(sorted(_quantity(part) for part in text.split(r"\cup")))
    if r"\begin" in text:
        return _matrix(text)
    if numeral := numeral_key(text):
        return numeral
    if base := _BASE.fullmatch(text):
        return f"b:{base.group(1).upper()}_{base.group(2)}"
    if _RATIO.fullmatch(text):
        return "r:" + "".join(text.split())
    return _word(text) or _bracketed(text) or _expression(parse(text))


def _word(text: str) -> str | None:
    """A single letter, or words: in `\\text{…}`, or of more letters than a product of variables has."""
    wrapped = _WORD.fullmatch(text)
    bare = (wrapped.group(1) if wrapped else text).strip("().,' ")
    if not _PLAIN_WORDS.fullmatch(bare):
        return None
    if len(bare) == 1:
        return "w:" + bare
    if not wrapped and any(c in text for c in "(+"):
        return None
    if wrapped or len(bare) > 3 or bare.lower() in ("yes", "no"):
        return "w:" + " ".join(bare.lower().split())
    return None


def _bracketed(text: str) -> str | None:
    """Tuples, intervals and sets; None where brackets only group."""
    if text == r"\emptyset":
        return "{}"
    if text.startswith(r"\{") and text.endswith(r"\}"):
        return _braces(text[2:-2])
    if text[0] == "{" and text[-1] == "}" and len(_split(text[1:-1], ",;")) > 1:
        return _braces(text[1:-1])
    if text[0] in "([" and text[-1] in ")]" and _closes(text):
        parts = _split(text[1:-1], ",;")
        if len(parts) > 1:
            keys = [_INFINITY.get("".join(part.split())) or _statement(part) for part in parts]
            return _ordered(text[0], keys, text[-1])
    return None


def _braces(inside: str) -> str:
    parts = _split(inside, ",;")
    return _set([_statement(part) for part in parts]) if parts else "{}"


def _ordered(opening: str, keys: list[str], closing: str) -> str:
    return _pair(opening, keys[0], keys[1], closing) if len(keys) == 2 else "t:(" + ",".join(keys) + ")"


def _closes(text: str) -> bool:
    """Whether the first bracket is closed by the last."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return position == len(text) - 1
    return False


def _matrix(text: str) -> str:
    matrix = _MATRIX.fullmatch(text)
    if matrix is None or r"\begin" in matrix.group(2):
        raise Unreadable("matrix")
    rows = [row for row in matrix.group(2).split(r"\\") if row.strip()]
    if matrix.group(1) == "cases":
        return _set([_statement(row) for row in rows])
    table = [[_statement(cell) for cell in row.split("&")] for row in rows]
    if len(table) == 1 or all(len(row) == 1 for row in table):  # a row or column vector is a tuple
        return _ordered("(", [cell for row in table for cell in row], ")")
    return "m:" + ";".join(",".join(row) for row in table)


def _expression(node: Node) -> str:
    signs = values.count(node, "pm")
    if signs > 3:
        raise Unreadable("too many ±")
    if signs:
        return _set([_expression(reading) for reading in values.readings(node)])
    if node in (("inf",), ("neg", ("inf",))):
        return "inf" if node == ("inf",) else "-inf"
    value = values.exact(node)
    if value is not None:
        return rational_key(value)
    if node[0] == "var":
        return ("w:" if len(node[1]) == 1 else "e:") + str(node[1])
    if values.letters(node) or values.count(node, "call"):
        return "e:" + values.fingerprint(node)
    constant = values.numeric(node, 0)
    simple = values.as_fraction(constant)
    return "c:" + values.digits(constant) if simple is None else rational_key(simple)
