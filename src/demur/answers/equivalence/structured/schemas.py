"""JSON schemas: whether a value is what was asked for. Needs `jsonschema`, which is installed separately.

Nothing is fetched: a schema may refer to its own parts alone. Numbers are compared exactly, texts are matched in
time that grows with them (see `patterns`), and repeated elements are looked for in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from demur.answers.equivalence.structured import values
from demur.answers.equivalence.structured.patterns import Pattern
from demur.errors import InvalidValue, MissingExtra
from demur.files.strict_json import as_json

_MOST_ZEROS = 400
_MOST_PARTS = 2000


class Schema:
    """A schema that was checked itself."""

    def __init__(self, document: dict[str, Any]) -> None:
        try:
            import jsonschema
            import referencing.jsonschema
        except ImportError:
            raise MissingExtra("a schema needs jsonschema", "schema") from None
        kind = jsonschema.validators.validator_for(document, default=None)
        if "$schema" in document and kind is None:
            raise InvalidValue(f"the schema's own version {document['$schema']!r:.80} is not known")
        kind = kind or jsonschema.Draft202012Validator
        try:
            kind.check_schema(document)
        except jsonschema.SchemaError as error:
            raise InvalidValue(f"the schema is none: {error.message:.120} at {error.json_path:.80}") from None
        exact, _ = values.value_at(as_json({name: part for name, part in document.items() if name != "$schema"}), 0)
        self._patterns: dict[str, Pattern] = {}
        self._error = jsonschema.ValidationError
        types = kind.TYPE_CHECKER.redefine("integer", _is_integer)
        own = jsonschema.validators.extend(kind, self._keywords(), type_checker=types)
        self._validator = own(exact, registry=referencing.Registry())  # an empty one, which fetches nothing
        self.top = document.get("type") if document.get("type") in ("object", "array") else None
        """What kind of value is asked for, where that is one kind."""
        specification = referencing.jsonschema.specification_with(kind.META_SCHEMA["$schema"])
        self._check_parts(exact, referencing.Registry().resolver_with_root(specification.create_resource(exact)))

    def allows(self, value: Any) -> bool:
        """Whether a value is as the schema says; one of more parts than can be checked in time is not."""
        if values.count_parts(value) > _MOST_PARTS:
            return False
        try:
            return bool(self._validator.is_valid(value))
        except RecursionError:  # a schema that leads to itself without going deeper
            return False

    def _check_parts(self, schema: Any, resolver: Any) -> None:
        """Raise where a part leads out of the schema or nowhere, or holds a pattern that cannot be used."""
        left, seen = [schema], set[str]()
        while left:
            part = left.pop()
            left.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
            if not isinstance(part, dict):
                continue
            seen |= part.keys()
            if part is not schema and any(isinstance(part.get(name), str) for name in ("$schema", "$id")):
                raise InvalidValue("a part of the schema has a $schema or $id of its own", "make it one schema")
            for name in ("$ref", "$dynamicRef", "$recursiveRef"):
                if isinstance(target := part.get(name), str) and not _leads_to_part(target, resolver):
                    alone = "a schema may refer to its own parts alone; nothing is fetched"
                    raise InvalidValue(f"the schema refers to {target!r:.80}, which it does not hold", alone)
            if isinstance(text := part.get("pattern"), str):
                self._pattern(text)
            if isinstance(named := part.get("patternProperties"), dict):
                for text in named:
                    self._pattern(text)
        if {"patternProperties", "unevaluatedProperties"} <= seen:
            raise InvalidValue("a schema with patternProperties cannot have unevaluatedProperties here")

    def _pattern(self, text: str) -> Pattern:
        if text not in self._patterns:
            self._patterns[text] = Pattern(text)
        return self._patterns[text]

    def _keywords(self) -> dict[str, Any]:
        """The keywords that are decided in another way than the library does."""
        return {
            "pattern": self._has_pattern,
            "patternProperties": self._named_by_pattern,
            "additionalProperties": self._others,
            "uniqueItems": self._no_repeats,
            "multipleOf": self._divides,
            "divisibleBy": self._divides,
        }

    def _has_pattern(self, validator: Any, pattern: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and not self._pattern(pattern).found_in(value):
            yield self._error("no match")

    def _named_by_pattern(self, validator: Any, parts: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            for text, part in parts.items():
                for name in filter(self._pattern(text).found_in, value):
                    yield from validator.descend(value[name], part, path=name)

    def _others(self, validator: Any, part: Any, value: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(value, dict):
            return
        known, patterns = schema.get("properties", {}), [*map(self._pattern, schema.get("patternProperties", {}))]
        for name in value:
            if name not in known and not any(pattern.found_in(name) for pattern in patterns):
                yield from validator.descend(value[name], part, path=name)

    def _no_repeats(self, validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        if wanted and isinstance(value, list) and len(set(map(values.written, value))) < len(value):
            yield self._error("repeated")

    def _divides(self, validator: Any, step: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, Decimal) and not _is_multiple(value, step):
            yield self._error("no multiple")


def _leads_to_part(target: str, resolver: Any) -> bool:
    from referencing.exceptions import Unresolvable

    try:
        return target.startswith("#") and bool(resolver.lookup(target))
    except Unresolvable:
        return False


def _is_integer(_: Any, value: Any) -> bool:
    return isinstance(value, Decimal) and value == value.to_integral_value()


def _is_multiple(value: Decimal, step: Decimal) -> bool:
    if not value:
        return True
    if max(abs(value.adjusted()), abs(step.adjusted())) > _MOST_ZEROS:  # too long to divide
        return False
    return Fraction(value) % Fraction(step) == 0
