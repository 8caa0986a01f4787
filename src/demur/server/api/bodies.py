"""Reading a request's body: of bounded size and depth, as JSON that says nothing twice, of a known form."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from demur.files.strict_json import NotJson, as_json, parse
from demur.server.errors import ApiError

Form = TypeVar("Form", bound=BaseModel)


async def read_body(request: Request, form: type[Form], most: int) -> Form:
    """The body of a request in its form; raises ApiError where it has another."""
    raw = await limited(request, most)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json":
        raise ApiError(415, f"the body must be application/json, got {kind[:60]!r}", code="not_json")
    if (packed := request.headers.get("content-encoding", "identity").strip().lower()) != "identity":
        raise ApiError(415, f"the body must not be compressed, got {packed[:60]!r}", code="not_json")
    try:
        document = parse(raw.decode(), finite=True)
    except UnicodeDecodeError:
        raise ApiError(400, "the body is not UTF-8", code="not_json") from None
    except NotJson as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="not_json") from None
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be a JSON object", code="not_json")
    if b"\\ud" in raw.lower() and _has_half_a_character(document):
        raise ApiError(400, "the body holds half of a surrogate pair, which is no text", code="not_json")
    try:
        return form.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:200]
        raise ApiError(400, f"{place}: {first['msg']}", param=place or None, code="invalid_value") from None


async def limited(request: Request, most: int) -> bytes:
    """The bytes of a body, of which there are at most so many, and which arrives in time."""
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > most:
        raise _too_large(most)
    seconds, body = request.app.state.service.settings.body_seconds, bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise _too_large(most)
    except TimeoutError:
        closing = {"Connection": "close"}
        raise ApiError(408, f"the body took longer than {seconds:g} s", code="too_slow", headers=closing) from None
    return bytes(body)


def _has_half_a_character(value: Any) -> bool:
    """Whether a text in it cannot be written as UTF-8, so that neither a store nor a reply could hold it."""
    try:
        as_json(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"the body has more than the {most:,} bytes that are taken", code="too_large")
