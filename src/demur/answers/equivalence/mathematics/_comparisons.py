"""Equations and inequalities: the same for every multiple, and whichever side is written first.

An inequality that bounds one letter is the interval of its values; any other keeps all that it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from demur.answers.equivalence.mathematics import _values as values
from demur.answers.equivalence.mathematics._names import is_name, plain_name
from demur.answers.equivalence.mathematics._numerals import rational_key
from demur.answers.equivalence.mathematics._syntax import Node, Unreadable, parse

Quantity = Callable[[str], str]

COMPARISON = re.compile(r"(<=|>=|\\le(?![a-z])|\\ge(?![a-z])|<|>|\\ne(?![a-z]))")
_SIGNS = {"<=": r"\le", ">=": r"\ge"}
_TURNED = {">": "<", r"\ge": r"\le"}


def equation_key(left: Node, right: Node) -> str:
    """f = g as the ratios of f − g between points: the same for every multiple of the equation."""
    difference = ("add", left, ("neg", right))
    first, *others = _at_points(difference)
    return _letters(difference) + ";".join(values.digits(value / first) for value in others)


def _at_points(difference: Node) -> list[Any]:
    at_points = [values.numeric(difference, number) for number in range(values.POINTS)]
    if not values.letters(difference) or any(value == 0 for value in at_points):
        raise Unreadable("nothing is said of a letter")
    return at_points


def _letters(node: Node) -> str:
    return ",".join(sorted(values.letters(node))) + ":"


def pair_key(opening: str, low: str, high: str, closing: str) -> str:
    """A pair in brackets: a point of the plane or an interval, which are written alike."""
    return f"i:{'(' if low == '-inf' else opening}{low},{high}{')' if high == 'inf' else closing}"


def bounded_name(text: str) -> str | None:
    """The one name that an inequality bounds; None where it has none."""
    names = [side.strip() for side in COMPARISON.split(text)[::2] if is_name(side.strip())]
    return plain_name(names[0]) if len(names) == 1 else None


def inequality_key(text: str, quantity: Quantity) -> str:
    pieces = COMPARISON.split(text)
    sides = [piece.strip() for piece in pieces[::2]]
    signs = [_SIGNS.get(sign, sign) for sign in pieces[1::2]]
    if signs == [r"\ne"]:
        return _unequal(sides[0], sides[1], quantity)
    if all(sign in _TURNED for sign in signs):
        sides, signs = sides[::-1], [_TURNED[sign] for sign in signs[::-1]]
    if any(sign not in _TURNED.values() for sign in signs):
        raise Unreadable("signs that point both ways")
    if len(sides) == 2:
        return _half_line(sides[0], signs[0], sides[1], quantity)
    if len(sides) == 3:
        return _between(sides, signs, quantity)
    raise Unreadable("a long chain of inequalities")


def _unequal(left: str, right: str, quantity: Quantity) -> str:
    """x ≠ b is the line without b."""
    name, bound = (left, right) if is_name(left) else (right, left)
    if is_name(name) and not values.letters(parse(bound)):
        value = quantity(bound)
        return f"u:{{{pair_key('(', '-inf', value, ')')}|{pair_key('(', value, 'inf', ')')}}}"
    return "l:≠" + equation_key(parse(left), parse(right))


def _half_line(low: str, sign: str, high: str, quantity: Quantity) -> str:
    """low < high, or ≤."""
    strict = sign == "<"
    left, right = parse(low), parse(high)
    if is_name(low) and not values.letters(right):
        return pair_key("(", "-inf", quantity(high), ")" if strict else "]")
    if is_name(high) and not values.letters(left):
        return pair_key("(" if strict else "[", quantity(low), "inf", ")")
    difference = ("add", right, ("neg", left))
    line = _linear(difference)
    if line is None:
        first, *others = _at_points(difference)
        ratios = [first / abs(first), *(value / abs(first) for value in others)]
        return f"l:{sign}" + _letters(difference) + ";".join(map(values.digits, ratios))
    slope, offset = line
    bound = rational_key(-offset / slope)
    if slope > 0:
        return pair_key("(" if strict else "[", bound, "inf", ")")
    return pair_key("(", "-inf", bound, ")" if strict else "]")


def _between(sides: list[str], signs: list[str], quantity: Quantity) -> str:
    """low < middle < high, each sign strict or not."""
    low, middle, high = sides
    opening, closing = "(" if signs[0] == "<" else "[", ")" if signs[1] == "<" else "]"
    if is_name(middle):
        return pair_key(opening, quantity(low), quantity(high), closing)
    line, least, most = _linear(parse(middle)), values.exact(parse(low)), values.exact(parse(high))
    if line is None or least is None or most is None:
        return "l:" + f"{quantity(low)}{signs[0]}{quantity(middle)}{signs[1]}{quantity(high)}"
    slope, offset = line
    ends = [rational_key((end - offset) / slope) for end in (least, most)]
    if slope > 0:
        return pair_key(opening, ends[0], ends[1], closing)
    return pair_key("(" if closing == ")" else "[", ends[1], ends[0], ")" if opening == "(" else "]")


def _linear(node: Node) -> tuple[Fraction, Fraction] | None:
    """Slope and offset of an expression that is linear in its one letter, with rational coefficients; or None."""
    if len(values.letters(node)) != 1:
        return None
    line = _slope_and_offset(node)
    return None if line is None or line[0] == 0 else line


def _slope_and_offset(node: Node) -> tuple[Fraction, Fraction] | None:
    if node[0] == "var":
        return Fraction(1), Fraction(0)
    if not values.letters(node):
        value = values.exact(node)
        return None if value is None else (Fraction(0), value)
    if node[0] not in ("neg", "add", "mul", "div"):
        return None
    lines = [_slope_and_offset(child) for child in node[1:]]
    known = [line for line in lines if line is not None]
    if len(known) < len(lines):
        return None
    (slope, offset), *others = known
    if node[0] == "neg":
        return -slope, -offset
    other_slope, other = others[0]
    if node[0] == "add":
        return slope + other_slope, offset + other
    if node[0] == "mul" and slope == 0:
        return offset * other_slope, offset * other
    if other_slope != 0 or (node[0] == "div" and other == 0):
        return None
    factor = other if node[0] == "mul" else 1 / other
    return slope * factor, offset * factor
