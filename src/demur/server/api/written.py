"""JSON that is sent: models leave half of a surrogate pair now and then, which no reply can hold."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse


def written(document: Any) -> bytes:
    """A document as JSON in UTF-8; half of a surrogate pair is U+FFFD there, as browsers and the store have it."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class JsonReply(JSONResponse):
    """A reply that can be sent, whatever a model wrote."""

    def render(self, content: Any) -> bytes:
        return written(content)
