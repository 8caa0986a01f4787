"""Characters that are written in many ways and mean one thing, or that cannot be seen: the same for every relation."""

from __future__ import annotations

import unicodedata

_ALONE = (0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0)
_RUNS = ((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFFF9, 0xFFFB))
_INVISIBLE = dict.fromkeys([*_ALONE, *(code for first, last in _RUNS for code in range(first, last + 1))])
"""Soft hyphens, joiners, direction marks, fillers and variation selectors."""
_FULL_WIDTH = {0x3000: " ", **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}}
_TABLE = {**_INVISIBLE, **_FULL_WIDTH, 0xA0: " ", 0x202F: " ", 0x2007: " ", 0x2009: " ", 0x200A: " "}


def cleaned(text: str) -> str:
    """Without what cannot be seen; accents composed, full-width forms narrow, the digits of all scripts alike.

    An accent is never dropped.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text.translate(_TABLE))
    if text.isascii():
        return text
    return "".join(_digit(character) if character > "\x7f" else character for character in text)


def _digit(character: str) -> str:
    value = unicodedata.decimal(character, None)
    return character if value is None else str(value)
