"""The application: routes, errors in the API's shape, security headers, and what is opened and closed with it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from demur.backends.redaction import redacted
from demur.errors import DemurError, StoreError
from demur.server import chat, decide, feedback, health, metrics, models
from demur.server.direct import Direct
from demur.server.errors import ApiError
from demur.server.service import Service
from demur.store.service import ServiceStore
from demur.version import __version__

_logger = logging.getLogger("demur.server")
_SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


def make_app(service: Service, store: ServiceStore | None = None) -> FastAPI:
    """The service as an ASGI application."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        for served in service.models.all:
            await served.answerer.open_async()
        try:
            yield
        finally:
            for served in service.models.all:
                await served.answerer.close_async()

    app = FastAPI(
        title="demur",
        version=__version__,
        description="An OpenAI-compatible service that answers or abstains, with a promise.",
        lifespan=living,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service, app.state.store = service, store
    app.state.metrics, app.state.readiness = metrics.Metrics(), health.Readiness(service, store)
    service.observers = (*service.observers, app.state.metrics)
    for part in (chat, decide, feedback, health, metrics, models):
        app.include_router(part.router)
    app.add_exception_handler(ApiError, _tell)
    app.add_exception_handler(HTTPException, _tell_http)
    app.add_exception_handler(DemurError, _tell_own)
    app.add_exception_handler(Exception, _tell_unexpected)

    app.add_middleware(Direct, path=chat.PATH, function=chat.complete)
    app.add_middleware(Secured)
    return app


class Secured:
    """Puts the headers that tell browsers what not to do on every response that has none of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                there = {name.lower() for name, _ in headers}
                headers.extend(header for header in _SECURITY if header[0] not in there)
            await send(message)

        await self.app(scope, receive, secured if scope["type"] == "http" else send)


async def _tell(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    request.app.state.metrics.refused.labels(str(error.status)).inc()
    return JSONResponse(error.document(), error.status, error.headers)


async def _tell_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {404: f"there is no {request.url.path[:200]!r} here", 405: "this route does not take this method"}
    said = ApiError(error.status_code, told.get(error.status_code, str(error.detail)), headers=error.headers)
    return await _tell(request, said)


async def _tell_own(request: Request, error: Exception) -> Response:
    if isinstance(error, StoreError):
        _logger.error("the store: %s", redacted(str(error)))
        return await _tell(request, ApiError(503, "decisions cannot be kept now; try again", code="store_unavailable"))
    return await _tell(request, ApiError(400, redacted(str(error)), code="invalid_value"))


async def _tell_unexpected(request: Request, error: Exception) -> Response:
    _logger.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__, exc_info=error)
    return await _tell(request, ApiError(500, "the service failed; its log says more", code="internal_error"))
