"""Cells of tables that people open in a spreadsheet."""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9.,]{1,40}")


def harmless(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula; whatever is no such text stays what it is."""
    risky = isinstance(value, str) and looks_like_formula(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if risky else value


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet would take a cell for a formula, or it was quoted because one would."""
    return _FORMULA.match(text) is not None
