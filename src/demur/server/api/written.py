"""JSON that is sent: models leave half of a surrogate pair now and then, which no reply can hold."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse

from demur.files.strict_json import as_json


def written(document: Any) -> bytes:
    """A document as JSON in UTF-8; half of a surrogate pair is U+FFFD there, as browsers and the store have it."""
    text = as_json(document, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class JsonReply(JSONResponse):
    """A reply that can be sent, whatever a model wrote."""

    def render(self, content: Any) -> bytes:
        return written(content)
