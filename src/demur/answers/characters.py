"""Characters that are written in many ways and mean one thing, or that cannot be seen: the same for every relation."""

from __future__ import annotations

import re
import unicodedata

_ALONE = (0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0)
_RUNS = (
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFFF9, 0xFFFB),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0100, 0xE01EF),
)  # fmt: skip
_INVISIBLE = dict.fromkeys([*_ALONE, *(code for first, last in _RUNS for code in range(first, last + 1))])
"""Soft hyphens, joiners, direction marks, fillers and variation selectors; not the tags that tell flags apart."""
_WIDTHS = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFEF)}
"""Full-width Latin and half-width Japanese and Korean."""
_BLANKS = dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_SIGNS = {0x2010: "-", 0x2011: "-", 0x2212: "-", 0xFE63: "-", 0x66A: "%", 0x66B: ".", 0x66C: ","}
"""Hyphens and the minus sign; the percent sign, decimal point and grouping comma of Arabic digits."""

_TABLE = {**_WIDTHS, **_BLANKS, **_SIGNS, **_INVISIBLE}
_DIGIT = re.compile(r"(?![0-9])\d")  # of any script but ours


def cleaned(text: str) -> str:
    """Without what cannot be seen; accents composed, one width, and the digits of all scripts alike.

    An accent is never dropped.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text.translate(_TABLE))
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), text)
