"""A measured figure beside the floor (or the ceiling) that was promised, and the report that holds them.

Claims are printed and never asserted: a busy machine must not fail anything.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from typing import Any

Claim = dict[str, Any]


def at_least(floor: float, claim: str, measured: float) -> Claim:
    return {"claim": claim, "measured": measured, "floor": floor, "met": bool(measured >= floor)}


def at_most(ceiling: float, claim: str, measured: float) -> Claim:
    return {"claim": claim, "measured": measured, "ceiling": ceiling, "met": bool(measured <= ceiling)}


def print_report(title: str, claims: Sequence[Claim], *, packages: Sequence[str], **figures: Any) -> None:
    """Print one JSON object: versions, the figures as measured, and the claims made of them."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    report = {"benchmark": title, "versions": versions, **figures, "claims": list(claims)}
    print(json.dumps(_plain(report), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    """Plain values, floats to four significant digits: more would be noise."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
