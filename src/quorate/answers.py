"""When two written answers are the same: after stripping, and plain decimals by value.

`6`, `6.0` and ` +06 ` are one answer; `6 apples` and `six` are others. The key of an answer is a function of the
answer alone, so sameness is an equivalence relation and never depends on other answers or on gold.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

RELATION = "stripped-decimal@1"

_DECIMAL = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*?)0*)?", re.ASCII)


def key(answer: Any) -> str | None:
    """The text that equal answers share; None for no answer (None, NaN, blank)."""
    if answer is None or answer != answer:
        return None
    if isinstance(answer, bool):
        return "true" if answer else "false"
    if isinstance(answer, float) and math.isfinite(answer):
        return _decimal_key(format(Decimal(repr(answer)), "f"))
    return _decimal_key(str(answer).strip()) or None


def _decimal_key(text: str) -> str:
    found = _DECIMAL.fullmatch(text)
    if found is None or not any(character.isdigit() for character in text):
        return text
    sign, whole, fraction = found.group(1), found.group(2) or "0", found.group(3)
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if sign == "-" and number != "0" else number
