"""What a user says of how structured answers are compared: a schema and rules, in a file, in Python or in a policy.

    {"schema": {…} or "schema.json", "ignore": ["/id"], "unordered": ["/tags"], "compare": {"/total": "mathematics"}}

All of it together has one written form, which names it in a policy and is read back without any file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demur.answers.equivalence.structured.rules import KeyOf, Rules
from demur.answers.equivalence.structured.schemas import Schema
from demur.errors import InvalidValue
from demur.files.inputs import text_of
from demur.files.strict_json import NotJson, as_json, is_deep, parse

LARGEST = 64_000  # characters of the written form

_MEMBERS = ("schema", "ignore", "unordered", "compare")

Named = Callable[[str], tuple[str, KeyOf]]
"""From a relation's name to what a policy calls it, and its keys."""


@dataclass(frozen=True)
class Settings:
    """A schema and rules, and their written form: blank where nothing is said."""

    rules: Rules
    schema: Schema | None
    written: str

    @classmethod
    def of(cls, document: Any, named: Named) -> Settings:
        """From plain values; raises where something in them makes no sense."""
        if not isinstance(document, Mapping):
            raise InvalidValue(f"rules for answers must be a JSON object, got {document!r:.60}")
        unknown = next((name for name in document if name not in _MEMBERS), None)
        if unknown is not None:
            raise InvalidValue(f"rules for answers have no {unknown!r:.60}; expected {', '.join(_MEMBERS)}")
        ignore, unordered = (_pointers(document.get(name), name) for name in ("ignore", "unordered"))
        compare = document.get("compare") or {}
        if not isinstance(compare, Mapping) or not all(isinstance(name, str) for name in compare.values()):
            raise InvalidValue(f"`compare` must name a relation for each pointer, got {compare!r:.60}")
        relations = {pointer: named(name) for pointer, name in compare.items()}
        rules = Rules(ignore, unordered, {pointer: key_of for pointer, (_, key_of) in relations.items()})
        specs = {pointer: spec for pointer, (spec, _) in relations.items()}
        schema = document.get("schema")
        if schema is not None and not isinstance(schema, Mapping):
            raise InvalidValue(f"a schema must be a JSON object, got {schema!r:.60}")
        said = {"compare": specs, "ignore": ignore, "unordered": unordered, "schema": schema}
        written = _canonical({name: part for name, part in said.items() if part not in (None, [], {})})
        checked = Schema(json.loads(written)["schema"]) if schema else None
        return cls(rules, checked, "" if written == "{}" else written)


def document_in(file: Path) -> Any:
    """The rules of a file; a schema that is named there is read from beside it."""
    document = _json_in(file)
    if isinstance(document, dict) and isinstance(name := document.get("schema"), str):
        document["schema"] = _json_in(file.parent / name)
    return document


def _json_in(file: Path) -> Any:
    try:
        return parse(text_of(file, InvalidValue), finite=True)
    except NotJson as error:
        raise InvalidValue(f"{file}, line {error.line}: {error}") from None


def _pointers(said: Any, name: str) -> list[str]:
    if said is None:
        return []
    if isinstance(said, str) or not isinstance(said, Sequence) or not all(isinstance(part, str) for part in said):
        raise InvalidValue(f"`{name}` must be a list of JSON pointers, got {said!r:.60}")
    return sorted(set(said))


def _canonical(document: Mapping[str, Any]) -> str:
    try:
        if is_deep(document):
            raise InvalidValue("the rules or their schema are nested too deeply")
        written = as_json(document, sort_keys=True, separators=(",", ":"), finite=True)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(f"the rules or their schema are not JSON: {error}") from None
    if len(written) > LARGEST:
        raise InvalidValue(f"the rules and their schema have {len(written)} characters, more than {LARGEST}")
    return written
