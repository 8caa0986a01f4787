"""The page itself: one HTML file with its data inside. It loads nothing, and nothing in its data can become markup."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from typing import Any

_DATA = "@@DATA@@"


def page_of(facts: dict[str, Any]) -> str:
    """The report as HTML."""
    before, _, behind = _template().partition(_DATA)
    return before + _script_safe(json.dumps(_plain(facts), ensure_ascii=False, separators=(",", ":"))) + behind


@cache
def _template() -> str:
    return resources.files("demur.report").joinpath("page.html").read_text(encoding="utf-8")


def _script_safe(text: str) -> str:
    """JSON that cannot end the element it stands in, whatever a model wrote."""
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for sign, escape in escapes.items():
        text = text.replace(sign, escape)
    return text.encode("utf-8", "replace").decode()


def _plain(value: Any) -> Any:
    """Numbers that are not defined become null."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
