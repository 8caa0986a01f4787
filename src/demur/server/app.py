"""The application: routes, errors in the API's shape, security headers, and what is opened and closed with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from demur.errors import DemurError
from demur.server import page_files
from demur.server.access import logins
from demur.server.access.access import Access
from demur.server.access.admission import Admission
from demur.server.access.failures import Failures
from demur.server.access.security_headers import SECURITY, SecurityHeaders
from demur.server.alarms import status
from demur.server.alarms.alarms import Alarms
from demur.server.alarms.canary_questions import CanaryQuestions
from demur.server.alarms.online import refuse_nothing_to_move
from demur.server.api import chat, decide, feedback, health, metrics, models
from demur.server.api.direct import Direct
from demur.server.api.request_ids import HEADER, RequestIds
from demur.server.api.written import JsonReply
from demur.server.errors import ApiError, as_api_error
from demur.server.refusals import Refusals
from demur.server.reviews import review, review_export
from demur.server.service import Service
from demur.store.service import ServiceStore
from demur.version import __version__

_logger = logging.getLogger("demur.server")


Chore = Callable[[], Coroutine[Any, Any, None]]
"""What goes on beside the requests, until it is cancelled."""


def make_app(
    service: Service,
    store: ServiceStore | None = None,
    *,
    require_keys: bool = False,
    chores: Sequence[Chore] = (),
    canaries: Mapping[str, CanaryQuestions] | None = None,
) -> FastAPI:
    """The service as an ASGI application; it asks for keys from the first one on that its store has, or at once."""

    refuse_nothing_to_move(service.models, service.settings.online_step, logged=store is not None)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        for served in service.models.all:
            await served.answerer.open_async()
        beside = [asyncio.create_task(chore()) for chore in chores]
        beside.append(asyncio.create_task(app.state.metrics.follow(service.fan_out)))
        beside.append(asyncio.create_task(app.state.refusals.follow()))
        try:
            if alarms is not None:
                await alarms.start()
            yield
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await app.state.readiness.last_calls.stop()
            if alarms is not None:
                await alarms.stop()
            for served in service.models.all:
                await served.answerer.close_async()

    app = FastAPI(
        title="demur",
        version=__version__,
        description="An OpenAI-compatible service that answers or abstains, with a promise.",
        lifespan=living,
        default_response_class=JsonReply,
        redirect_slashes=False,  # a redirect names the host that a request says it is for
        docs_url=None,
        redoc_url=None,
    )
    app.state.service, app.state.store = service, store
    app.state.admission = Admission(service, store)
    app.state.access, app.state.failed_logins = Access(store, require_keys=require_keys), Failures()
    app.state.metrics, app.state.readiness = metrics.Metrics(), health.Readiness(service)
    app.state.refusals = Refusals(app.state.metrics)
    service.observers = (*service.observers, app.state.metrics, app.state.readiness.last_calls)
    alarms = app.state.alarms = None if store is None else Alarms(service, store, app.state.metrics, canaries)
    if alarms is not None:
        service.observers = (*service.observers, alarms.reported, alarms.sizes)
    parts = (chat, decide, feedback, health, logins, metrics, models, page_files, review, review_export, status)
    for part in parts:
        app.include_router(part.router)
    app.add_exception_handler(ApiError, _tell)
    app.add_exception_handler(HTTPException, _tell_http)
    app.add_exception_handler(RequestValidationError, _tell_invalid)
    app.add_exception_handler(ClientDisconnect, _tell_nobody)
    app.add_exception_handler(DemurError, _tell_own)
    app.add_exception_handler(Exception, _tell_unexpected)

    app.add_middleware(Direct, path=chat.PATH, function=chat.complete)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestIds)
    return app


async def _tell(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    request.app.state.refusals.saw(request, error, _route(request))
    return JsonReply(error.document(), error.status, error.headers)


async def _tell_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {404: f"there is no {request.url.path[:200]!r} here", 405: "this route does not take this method"}
    said = ApiError(error.status_code, told.get(error.status_code, str(error.detail)), headers=error.headers)
    return await _tell(request, said)


async def _tell_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])[:200]
    return await _tell(request, ApiError(400, f"{place}: {first['msg']}", param=place or None, code="invalid_value"))


def _route(request: Request) -> str:
    """The route as it is declared, or blank where there is none: a path may hold what somebody wrote."""
    straight = request.url.path == chat.PATH
    return chat.PATH if straight else str(getattr(request.scope.get("route"), "path", ""))


async def _tell_nobody(request: Request, _: Exception) -> Response:
    """Whoever sent half a request and left: nobody hears this, and it is no failure of the service."""
    return await _tell(request, ApiError(400, "the request ended before it was whole", code="not_whole"))


async def _tell_own(request: Request, error: Exception) -> Response:
    assert isinstance(error, DemurError)
    return await _tell(request, as_api_error(error))


async def _tell_unexpected(request: Request, error: Exception) -> Response:
    _logger.error("%s %s failed: %s", request.method, _route(request), type(error).__name__, exc_info=error)
    own = {**SECURITY, HEADER: request.state.request_id}  # this response passes by what adds headers
    said = ApiError(500, "the service failed; its log says more", code="internal_error", headers=own)
    return await _tell(request, said)
