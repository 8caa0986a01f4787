"""TOML files and settings, checked against the fields of a dataclass: unknown names and wrong types are refused."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from demur.errors import InvalidValue
from demur.files.inputs import text_of

_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
_DEEP_KEY = re.compile(r"(?<![\"'\w-])(?:[\"'\w-]++[ \t]*+\.[ \t]*+){100}")
"""A key of more parts than any setting has; the parser takes the square of their number, in time and in memory."""


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The whole file; an error says `what` could not be read."""
    try:
        text = text_of(path, InvalidValue).replace("\r\n", "\n")
        if _DEEP_KEY.search(text):
            raise ValueError("a key has more than 100 parts")
        return tomllib.loads(text)
    except InvalidValue as error:
        raise InvalidValue(f"{what} {path} cannot be read: {error.message}", error.remedy) from None
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{what} {path} cannot be read: {error}") from None


def typed_fields(
    kind: type, section: Any, where: str, *, only: Collection[str] | None = None, as_text: bool = False
) -> dict[str, Any]:
    """A section's entries as arguments of a dataclass, or of those of its fields that `only` names.

    `as_text`: values come from flags, where a number is written as text.
    """
    if not isinstance(section, Mapping):
        raise InvalidValue(f"{where} must be a section, [{where.rpartition(' ')[2]}]")
    known = {entry.name: entry for entry in fields(kind) if only is None or entry.name in only}
    arguments: dict[str, Any] = {}
    for name, value in section.items():
        if name not in known:
            raise InvalidValue(f"{where}: unknown key {name!r}; expected one of {', '.join(known)}")
        wanted = str(known[name].type).removesuffix(" | None")
        fitting = _from_text(value, wanted) if as_text and isinstance(value, str) else value
        if not _fits(fitting, wanted):
            raise InvalidValue(f"{where}.{name} must be {wanted}, got {value!r:.60}")
        arguments[name] = tuple(fitting) if wanted.startswith("tuple[") else fitting
    for name, entry in known.items():
        if entry.default is MISSING and entry.default_factory is MISSING and name not in arguments:
            raise InvalidValue(f"{where} needs {name!r}")
    return arguments


def _fits(value: Any, wanted: str) -> bool:
    if wanted == "Any":
        return True
    if " | " in wanted:
        return any(_fits(value, kind) for kind in wanted.split(" | "))
    if wanted.startswith(("list[", "tuple[")):
        inner = wanted.partition("[")[2].removesuffix("]").removesuffix(", ...")
        return isinstance(value, list) and all(_fits(entry, inner) for entry in value)
    return isinstance(value, _KINDS[wanted]) and (wanted == "bool" or not isinstance(value, bool))


def _from_text(value: str, wanted: str) -> Any:
    if wanted == "bool":
        return {"true": True, "false": False}.get(value.lower(), value)
    try:
        return int(value) if wanted == "int" else float(value) if wanted == "float" else value
    except ValueError:
        return value
