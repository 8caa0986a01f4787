"""The plainest relation, for those who ask for it: answers as they stand, and plain decimals by value.

`6`, `6.0` and ` +06 ` are one answer; `6 apples` and `six` are others. The key of an answer is a function of the
answer alone, so sameness is an equivalence relation and never depends on other answers or on gold.
"""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?", re.ASCII)  # no two parts that could share a run of zeros


def key(answer: str) -> str | None:
    """The text that equal answers share; None where nothing is written."""
    text = answer.strip()
    decimal = _DECIMAL.fullmatch(text)
    if decimal is None or not any(character.isdigit() for character in text):
        return text or None
    sign, whole, fraction = decimal.group(1), decimal.group(2).lstrip("0") or "0", (decimal.group(3) or "").rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if sign == "-" and number != "0" else number
