"""Values of a policy file, checked for type and range before they are used."""

from __future__ import annotations

import re
from typing import Any

from demur.policy.file import Document

_MOST_VOTES = 10**15
_FRACTION = re.compile(r"[0-9]{1,41}/[0-9]{1,41}")


def typed(document: Document, name: str, kind: type) -> Any:
    value = document.get(name)
    if not isinstance(value, kind):
        raise ValueError(f"`{name}` must be {'an object' if kind is dict else 'a list'}, got {value!r:.60}")
    return value


def strings(document: Document, name: str) -> list[str]:
    values: list[str] = typed(document, name, list)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"`{name}` must hold strings")
    return values


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_VOTES


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300


def is_fraction(value: Any) -> bool:
    return isinstance(value, str) and _FRACTION.fullmatch(value) is not None
