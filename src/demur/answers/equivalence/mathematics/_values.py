"""What an expression is worth: an exact fraction where it has one, else a fingerprint.

The fingerprint of a constant is its value to 15 significant digits, computed with 40. That of an expression with
letters is its value at three fixed points (each letter has its own, chosen by its name), of which the last is negative;
where it is not real there, that fact takes the value's place, so √(1/n) and 1/√n agree and √(x²) and x do not.
Work is bounded by the size of numbers, never by the clock.
"""

from __future__ import annotations

import math
import operator
import zlib
from fractions import Fraction
from functools import lru_cache
from typing import Any

from demur.answers.equivalence.mathematics._syntax import Node, Unreadable

MAX_BITS = 4096
MAX_FACTORIAL = 300
MAX_DEGREE = 64
MAX_LOG = 20_000.0  # |log| of the largest and smallest magnitude that is followed
POINTS = 3
DIGITS = 15
_ARITHMETIC = {"add": operator.add, "mul": operator.mul, "div": operator.truediv}
_SAME_IN_MPMATH = "sin cos tan cot sec csc sinh cosh tanh asin acos atan exp"
_IN_MPMATH = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"} | {name: name for name in _SAME_IN_MPMATH.split()}


@lru_cache(maxsize=1)
def _context() -> Any:
    from mpmath import MPContext

    context = MPContext()
    context.dps = 40
    return context


def exact(node: Node) -> Fraction | None:
    """The rational value of an expression without letters; None where it has none."""
    kind = node[0]
    if kind == "num":
        return node[1]  # type: ignore[no-any-return]
    if kind in ("var", "const", "call", "inf", "pm", "matrix"):
        return None
    if kind == "fn":
        return _exact_function(node)
    children = [exact(child) for child in node[1:]]
    known = [child for child in children if child is not None]
    if len(known) < len(children):
        return None
    if kind == "neg":
        return -known[0]
    if kind == "fact":
        if known[0].denominator != 1 or not 0 <= known[0] <= MAX_FACTORIAL:
            raise Unreadable("factorial out of bounds")
        return Fraction(math.factorial(int(known[0])))
    a, b = known
    if kind == "root":
        return _exact_root(a, int(b)) if b.denominator == 1 and 2 <= b <= MAX_DEGREE else None
    return _exact_power(a, b) if kind == "pow" else _bounded(_arithmetic(kind, a, b))


def _arithmetic(kind: str, a: Any, b: Any) -> Any:
    """a + b, a · b or a / b."""
    if kind == "div" and b == 0:
        raise Unreadable("division by zero")
    if kind not in _ARITHMETIC:
        raise Unreadable(kind)
    return _ARITHMETIC[kind](a, b)


def _exact_function(node: Node) -> Fraction | None:
    arguments = [exact(child) for child in node[2:]]
    if node[1] == "abs":
        return None if arguments[0] is None else abs(arguments[0])
    if node[1] != "binom":
        return None
    top, bottom = arguments
    if top is None or bottom is None or not (top.denominator == bottom.denominator == 1 and 0 <= bottom <= top <= 500):
        raise Unreadable("binomial out of bounds")
    return Fraction(math.comb(int(top), int(bottom)))


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise Unreadable("number out of bounds")
    return value


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1:
        if exponent.denominator > MAX_DEGREE:
            return None
        root = _exact_root(base, exponent.denominator)
        return None if root is None else _exact_power(root, Fraction(exponent.numerator))
    power = exponent.numerator
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base == 0 and power < 0:
        raise Unreadable("division by zero")
    if abs(base) not in (0, 1) and size * abs(power) > MAX_BITS:
        raise Unreadable("power out of bounds")
    if abs(base) in (0, 1):
        power = min(abs(power), 2 + abs(power) % 2) if power else 0
    return base**power


def _exact_root(radicand: Fraction, degree: int) -> Fraction | None:
    if radicand < 0:
        return None
    numerator, denominator = _integer_root(radicand.numerator, degree), _integer_root(radicand.denominator, degree)
    return None if numerator is None or denominator is None else Fraction(numerator, denominator)


def _integer_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        root = low
    return root if root**degree == value else None


def letters(node: Node) -> frozenset[str]:
    if node[0] == "var":
        return frozenset([node[1]])
    return frozenset().union(*(letters(child) for child in node[1:] if isinstance(child, tuple)))


def calls(node: Node) -> frozenset[str]:
    """The unknown functions in an expression."""
    name = frozenset([node[1]]) if node[0] == "call" else frozenset()
    return name.union(*(calls(child) for child in node[1:] if isinstance(child, tuple)))


@lru_cache(maxsize=4096)
def _point(name: str, number: int) -> Any:
    """Where a letter is evaluated: two positive points and a negative one, the same on every machine."""
    seed = zlib.crc32(f"{name}:{number}".encode())
    value = _context().mpf(1) / 3 + _context().mpf(seed % 99991) / 40009
    return -value if number == POINTS - 1 else value


def numeric(node: Node, number: int) -> Any:
    """The value at point `number`, complex in general."""
    m = _context()
    kind = node[0]
    if kind == "num":
        return m.mpf(node[1].numerator) / node[1].denominator
    if kind == "const":
        return {"pi": m.pi, "e": m.e, "i": m.mpc(0, 1)}[node[1]] * m.one
    if kind == "var":
        return _point(node[1], number)
    if kind == "call":
        total = m.mpf(zlib.crc32(node[1].encode()) % 9973) / 997
        for place, argument in enumerate(node[2:], start=1):
            total += m.sin(numeric(argument, number) * place + total)
        return total
    if kind in ("inf", "pm", "fact", "matrix"):
        raise Unreadable(kind)
    if kind == "neg":
        return -numeric(node[1], number)
    if kind == "root":
        degree = exact(node[2])
        if degree is None or degree.denominator != 1 or not 2 <= degree <= MAX_DEGREE:
            raise Unreadable("strange root")
        radicand = numeric(node[1], number)
        if degree % 2 and m.im(radicand) == 0 and m.re(radicand) < 0:
            return -m.root(-radicand, int(degree))
        return m.root(radicand, int(degree))
    if kind == "fn":
        return _function(node[1], [numeric(child, number) for child in node[2:]])
    a, b = numeric(node[1], number), numeric(node[2], number)
    return _power(a, b, node[2]) if kind == "pow" else _arithmetic(kind, a, b)


def _power(a: Any, b: Any, exponent: Node) -> Any:
    m = _context()
    if a == 0:
        if m.re(b) <= 0:
            raise Unreadable("zero to a power")
        return m.zero
    if abs(b) > MAX_LOG or abs(b) * abs(m.log(abs(a))) > MAX_LOG:
        raise Unreadable("power out of bounds")
    ratio = exact(exponent)
    if ratio is not None and ratio.denominator % 2 and ratio.denominator > 1 and m.im(a) == 0 and m.re(a) < 0:
        sign = -1 if ratio.numerator % 2 else 1  # odd roots of negative numbers are real, as schools have it
        return sign * m.power(-a, b)
    return m.power(a, b)


def _function(name: str, arguments: list[Any]) -> Any:
    if len(arguments) != 1:
        raise Unreadable(name)
    m, x = _context(), arguments[0]
    if abs(x) > MAX_LOG:
        raise Unreadable("argument out of bounds")
    if name in ("ln", "log", "lg"):
        if x == 0:
            raise Unreadable("log of zero")
        return m.log(x) if name == "ln" else m.log(x) / m.log(10)
    if name == "abs":
        return abs(x)
    if name not in _IN_MPMATH:
        raise Unreadable(name)
    try:
        return getattr(m, _IN_MPMATH[name])(x)
    except (ZeroDivisionError, ValueError):
        raise Unreadable(f"{name} is not defined there") from None


def high_precision(value: Fraction) -> Any:
    return _context().mpf(value.numerator) / value.denominator


def as_fraction(value: Any) -> Fraction | None:
    """The fraction of small denominator that a constant is, to 30 digits; None where it is none."""
    m = _context()
    if m.im(value) != 0 and abs(m.im(value)) > abs(value) * m.mpf(10) ** -30:
        return None
    real = m.re(value)
    if abs(real) > 10**9:
        return None
    exactly = Fraction(int(m.nint(real * 10**35)), 10**35)
    simple = exactly.limit_denominator(1000)
    return simple if abs(simple - exactly) < Fraction(1, 10**30) else None


def digits(value: Any) -> str:
    """A value to 15 significant digits, its imaginary part included; parts that are rounding noise are nought."""
    m = _context()
    real, imaginary = m.re(value), m.im(value)
    size = max(abs(real), abs(imaginary))
    if size < m.mpf(10) ** -30:
        return "0"
    noise = size * m.mpf(10) ** -25
    parts = [m.nstr(part, DIGITS) if abs(part) > noise else "0" for part in (real, imaginary)]
    return parts[0] if parts[1] == "0" else f"{parts[0]}+{parts[1]}i"


def fingerprint(node: Node) -> str:
    """An expression's values at the fixed points."""
    m = _context()
    parts = []
    for number in range(POINTS):
        value = numeric(node, number)
        real = abs(m.im(value)) <= abs(value) * m.mpf(10) ** -25
        parts.append(digits(value) if real or number < POINTS - 1 else "complex")
    return ";".join(parts)


def substitute(node: Node, name: str, value: Fraction) -> Node:
    if node[0] == "var":
        return ("num", value) if node[1] == name else node
    return (node[0], *(substitute(child, name, value) if isinstance(child, tuple) else child for child in node[1:]))


def count(node: Node, kind: str) -> int:
    return int(node[0] == kind) + sum(count(child, kind) for child in node[1:] if isinstance(child, tuple))


def readings(node: Node) -> list[Node]:
    """The expression with each ± read both ways."""
    options: list[list[Any]] = [[node[0]]]
    for child in node[1:]:
        ways: list[Any] = readings(child) if isinstance(child, tuple) else [child]
        options = [[*start, way] for start in options for way in ways]
    nodes: list[Node] = []
    for kind, *children in options:
        if kind == "pm":
            left, right = children
            nodes += [("add", left, right), ("add", left, ("neg", right))]
        else:
            nodes.append((kind, *children))
    return nodes
