"""Numbers as they are written: decimals, scientific notation, mixed numbers, repeating decimals. All exact."""

from __future__ import annotations

import re
from fractions import Fraction

from demur.answers.equivalence.mathematics import _values as values
from demur.answers.equivalence.mathematics._decimals import meant
from demur.answers.equivalence.mathematics._syntax import Unreadable

NUMBER = re.compile(r"([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
_SCIENTIFIC = re.compile(
    r"([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:\\cdot|\*|x)\s*10\s*\^\s*(?:\{\s*([+-]?\d{1,4})\s*\}|([+-]?\d{1,4}))",
    re.ASCII,
)
_MIXED = re.compile(r"([+-]?)\s*(\d+)\s+(\d+)\s*/\s*(\d+)", re.ASCII)
_MIXED_FRACTION = re.compile(
    r"([+-]?)\s*+(\d++)\s*+\\frac\s*+(?:\{\s*+)?(\d++(?=[\s{}])|\d)\s*+(?:\}\s*+)?(?:\{\s*+)?(\d++)\s*+\}?", re.ASCII
)
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)\\overline\s*\{(\d+)\}", re.ASCII)
_SPACED = re.compile(r"([+-]?)\s*(\d{1,3})((?: \d{3})+)", re.ASCII)
_MOST_DIGITS = 1200


def rational_key(value: Fraction) -> str:
    return f"n:{value.numerator}" if value.denominator == 1 else f"n:{value.numerator}/{value.denominator}"


def numeral_key(text: str) -> str | None:
    """The key of a text that is one number; None where it is not."""
    for is_written, read in _READERS.items():
        if number := is_written(text):
            return read(number)
    return None


def number_key(number: re.Match[str]) -> str:
    """A plain or scientific decimal, exactly; a printed double that stands for no simple fraction, to 15 digits."""
    sign, mantissa, exponent = number.groups()
    power = int(exponent or 0)
    if len(mantissa) > _MOST_DIGITS or abs(power) > 1000:
        return "s:" + number.group().lower().lstrip("+")
    value = meant(mantissa, power)
    if value is not None:
        return rational_key(_signed(sign, value))
    exactly = _signed(sign, Fraction(mantissa) * Fraction(10) ** power)
    return "c:" + values.digits(values.high_precision(exactly))


def _scientific(number: re.Match[str]) -> str:
    sign, mantissa, *exponents = number.groups()
    exponent = next(filter(None, exponents))
    spelt = NUMBER.fullmatch(f"{sign}{mantissa}e{exponent}")
    assert spelt is not None
    return number_key(spelt)


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value


def _mixed(number: re.Match[str]) -> str:
    sign, whole, top, bottom = number.groups()
    if int(bottom) == 0:
        raise Unreadable("division by zero")
    return rational_key(_signed(sign, int(whole) + Fraction(int(top), int(bottom))))


def _repeating(number: re.Match[str]) -> str:
    sign, whole, fixed, cycle = number.groups()
    if len(whole) + len(fixed) + len(cycle) > 300:
        raise Unreadable("long decimal")
    scale = 10 ** len(fixed)
    value = Fraction(int((whole or "0") + fixed), scale) + Fraction(int(cycle), scale * (10 ** len(cycle) - 1))
    return rational_key(_signed(sign, value))


def _spaced(number: re.Match[str]) -> str:
    sign, head, groups = number.groups()
    return rational_key(_signed(sign, Fraction(head + groups.replace(" ", ""))))


_READERS = {
    NUMBER.fullmatch: number_key,
    _SCIENTIFIC.fullmatch: _scientific,
    _MIXED.fullmatch: _mixed,
    _MIXED_FRACTION.fullmatch: _mixed,
    _REPEATING.fullmatch: _repeating,
    _SPACED.fullmatch: _spaced,
}
