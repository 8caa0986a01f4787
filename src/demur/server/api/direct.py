"""The short way to the route that is asked most: past the router and what it wraps around every route.

Requests get there what they would get through the router, errors included. The route stays with the router too, which
describes it and answers whatever is not for it: another method, say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


class Direct:
    """Takes what is posted to one path to its function, and everything else to the application."""

    def __init__(self, app: ASGIApp, path: str, function: Callable[[Request], Awaitable[Response]]) -> None:
        self.app, self.path, self.function = app, path, function

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self.path or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            response = await self.function(request)
        except Exception as error:
            # What `Exception` itself is told by stands around all of this, and wants to see it raised.
            told = next((kind for kind in type(error).__mro__ if kind in request.app.exception_handlers), Exception)
            if told is Exception:
                raise
            response = await request.app.exception_handlers[told](request, error)
        await response(scope, receive, send)
