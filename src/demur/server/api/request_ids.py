"""What a request is known by: our own id, and the caller's where it has one that is plain.

Every response has `x-request-id`. A gateway that numbers requests gets its number back; else it is the id of the
decision, or one that the log line of a refusal has too.
"""

from __future__ import annotations

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def new_id() -> str:
    """A name for a request, from now on."""
    return "req_" + secrets.token_hex(16)


class RequestIds:
    """Gives every request an id, and every response its header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        brought, own = Headers(scope=scope).get(HEADER, ""), new_id()
        known = brought if _PLAIN.fullmatch(brought) else None
        scope.setdefault("state", {})["request_id"] = own

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[HEADER] = known or headers.get("x-demur-request-id", own)
            await send(message)

        await self.app(scope, receive, sending)
