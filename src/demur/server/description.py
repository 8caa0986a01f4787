"""The description of the interface, for forms that are read by hand."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def described(form: type[BaseModel]) -> dict[str, Any]:
    """What an operation takes, as OpenAPI has it."""
    schema = form.model_json_schema()
    defined = schema.pop("$defs", {})
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema, defined)}}}}


def _inlined(value: Any, defined: dict[str, Any]) -> Any:
    """A schema whose references are in their place; none of the forms holds itself."""
    if isinstance(value, list):
        return [_inlined(part, defined) for part in value]
    if not isinstance(value, dict):
        return value
    if isinstance(named := value.get("$ref"), str):
        return _inlined(defined[named.rpartition("/")[2]], defined)
    return {name: _inlined(part, defined) for name, part in value.items()}
