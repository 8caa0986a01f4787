"""The plainest relation, for answers of no known task: after stripping, and plain decimals by value.

`6`, `6.0` and ` +06 ` are one answer; `6 apples` and `six` are others. The key of an answer is a function of the
answer alone, so sameness is an equivalence relation and never depends on other answers or on gold.
"""

from __future__ import annotations

import re

from demur.answers.extraction import TRUNCATED, Extraction, final_part, settle

_DECIMAL = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*?)0*)?", re.ASCII)


def key(answer: str) -> str | None:
    """The text that equal answers share; None where nothing is written."""
    return _decimal_key(answer.strip()) or None


def _decimal_key(text: str) -> str:
    found = _DECIMAL.fullmatch(text)
    if found is None or not any(character.isdigit() for character in text):
        return text
    sign, whole, fraction = found.group(1), found.group(2) or "0", found.group(3)
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if sign == "-" and number != "0" else number


def extract(text: str, *, truncated: bool = False) -> Extraction:
    """The whole final part of the text."""
    return TRUNCATED if truncated else settle(final_part(text), "whole text")
