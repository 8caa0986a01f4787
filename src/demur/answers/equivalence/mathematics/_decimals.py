"""What a written decimal stands for: itself, or the number that a program meant when it printed so many digits.

A decimal of 15 or more significant digits is a printed double, whose last digits are rounding noise. It is rounded, by
itself, to 14 digits: where four or more of those are trailing noughts it is the short decimal that is left
(5.000000000000002 is 5, 0.5600000000000005 is 14/25), and where a fraction of small denominator agrees with it to 14
digits it is that fraction (3.3333333333333335 is 10/3). A decimal with 15 or more places of which at least 12 are
significant (as `%.15f` prints them) stands for such a fraction too. Two answers are never compared by a tolerance.
"""

from __future__ import annotations

from fractions import Fraction

_PRINTED_DIGITS = 15
_KEPT_DIGITS = 14
_NOUGHTS = 4
_LEAST_DIGITS = 12
_LARGEST_DENOMINATOR = 10_000


def meant(mantissa: str, power: int = 0) -> Fraction | None:
    """The rational number that mantissa · 10^power stands for; None for a printed double that is none."""
    value = Fraction(mantissa.rstrip(".") or "0") * Fraction(10) ** power
    whole, point, places = mantissa.partition(".")
    digits = (whole + places).lstrip("0")
    printed = bool(point) and len(digits) >= _PRINTED_DIGITS
    if not printed and (len(digits) < _LEAST_DIGITS or len(places) - power < _PRINTED_DIGITS):
        return value
    size = len(digits) - len(places) + power  # 10^(size - 1) ≤ value < 10^size
    kept = Fraction(10) ** (size - _KEPT_DIGITS)
    if printed:
        rounded = round(value / kept)
        if rounded % 10**_NOUGHTS == 0:
            return rounded * kept
    simple = value.limit_denominator(_LARGEST_DENOMINATOR)
    last = Fraction(10) ** (power - len(places))
    if simple and abs(simple - value) <= max(kept, last) / 2:
        return simple
    return None if printed else value


def decimal_value(text: str) -> Fraction:
    """The value of a decimal inside a formula."""
    value = meant(text)
    return Fraction(text.removesuffix(".")) if value is None else value
