"""The description of the interface, for forms that are read and written by hand."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from demur.server.api.reply_forms import ErrorReply

_ALWAYS = {401: "No key, or none that is known.", 403: "The key may not do this.", 503: "Not now: try again later."}
_OF_BODIES = {
    400: "The body is not as it must be, or asks for what was not calibrated.",
    404: "There is no such model or request.",
    408: "The body took too long.",
    409: "Something else was said under the same idempotency key.",
    413: "The body is too large.",
    415: "The body is no JSON.",
    429: "Too much at once, or too much in a while.",
}


def described(form: type[BaseModel], gives: type[BaseModel] | None = None, *, streams: bool = False) -> dict[str, Any]:
    """What an operation takes and gives, as OpenAPI has it; what it gives is left open where no form says it."""
    taken = {"required": True, "content": {"application/json": {"schema": _schema(form)}}}
    return {"requestBody": taken, "responses": _responses(gives, _ALWAYS | _OF_BODIES, streams=streams)}


def described_reading(gives: type[BaseModel], *, by_name: bool = False) -> dict[str, Any]:
    """What an operation without a body gives."""
    return {"responses": _responses(gives, _ALWAYS | ({404: _OF_BODIES[404]} if by_name else {}))}


def _responses(gives: type[BaseModel] | None, failures: dict[int, str], *, streams: bool = False) -> dict[str, Any]:
    error = {"application/json": {"schema": _schema(ErrorReply)}}
    told = {str(status): {"description": why, "content": error} for status, why in sorted(failures.items())}
    if gives is None:
        return told
    content: dict[str, Any] = {"application/json": {"schema": _schema(gives)}}
    if streams:
        event = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
        content["text/event-stream"] = {"schema": event}
    return {"200": {"description": gives.__doc__ or "As asked.", "content": content}, **told}


def _schema(form: type[BaseModel]) -> Any:
    schema = form.model_json_schema()
    return _inlined(schema, schema.pop("$defs", {}))


def _inlined(value: Any, defined: dict[str, Any]) -> Any:
    """A schema whose references are in their place; none of the forms holds itself."""
    if isinstance(value, list):
        return [_inlined(part, defined) for part in value]
    if not isinstance(value, dict):
        return value
    if isinstance(named := value.get("$ref"), str):
        return _inlined(defined[named.rpartition("/")[2]], defined)
    return {name: _inlined(part, defined) for name, part in value.items()}
