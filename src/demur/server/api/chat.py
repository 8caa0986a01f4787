"""`POST /v1/chat/completions`: one question in, an answer or an abstention out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from demur.backends import tracing
from demur.errors import DemurError
from demur.server.access.access import allowed
from demur.server.access.admission import Admission, Once
from demur.server.access.limits import refuse_long
from demur.server.api import replies
from demur.server.api.asking import question_of
from demur.server.api.bodies import read_body
from demur.server.api.description import described
from demur.server.api.forms import ChatRequest
from demur.server.api.replies import Reply
from demur.server.api.reply_forms import CompletionReply
from demur.server.api.written import JsonReply
from demur.server.errors import ApiError, as_api_error
from demur.server.service import Service

router = APIRouter()
PATH = "/v1/chat/completions"
_REFUSED_WITHIN = 0.05
"""Seconds that a stream waits for a refusal after nothing but the models is in its way."""
_GONE = 499
"""The status of a request whose caller went away, which nobody sees."""


@router.post(PATH, openapi_extra=described(ChatRequest, CompletionReply, streams=True))
async def complete(request: Request) -> Response:
    """Answer or abstain."""
    caller = await allowed(request, "ask")
    service: Service = request.app.state.service
    admission: Admission = request.app.state.admission
    body = await read_body(request, ChatRequest, service.settings.most_bytes)
    question = question_of(body, service.models)
    refuse_long(question.problem, service.settings.most_characters)
    key, once = request.headers.get("idempotency-key"), None
    if key is not None and admission.store is None:
        question = replace(question, ignored=(*question.ignored, "Idempotency-Key"))
    elif key is not None:
        once = Once.of(key, body.model_dump())
    tracing.follow(request.headers.get("traceparent"))
    admitted = _Admitted()
    work = asyncio.ensure_future(admission.reply(question, caller, once, admitted.tell))
    gone = asyncio.ensure_future(_gone(request))
    try:
        first: set[asyncio.Future[Any]] = {work, gone, *([admitted.told] if question.stream else [])}
        patience = service.settings.keep_alive if question.stream else None
        await asyncio.wait(first, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and not gone.done():  # a full queue refuses at once, and before a stream begins
            await asyncio.wait({work, gone}, timeout=_REFUSED_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()  # what is refused has a status of its own, streamed or not
        elif gone.done():
            admission.leave(work, once)
            return Response(status_code=_GONE)
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        gone.cancel()
    if question.stream:
        known = _named(work.result()) if work.done() else admitted.headers()
        headers = {**known, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        events = _events(request, work, lambda: admission.leave(work, once), wants_usage=question.include_usage)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)
    reply = work.result()
    return JsonReply(replies.completion(reply), headers=_named(reply))


class _Admitted:
    """Under which id a request is let through to the models, once it is."""

    def __init__(self) -> None:
        self.told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def tell(self, request_id: str) -> None:
        if not self.told.done():
            self.told.set_result(request_id)

    def headers(self) -> dict[str, str]:
        return {"x-demur-request-id": self.told.result()} if self.told.done() else {}


def _named(reply: Reply) -> dict[str, str]:
    return {"x-demur-request-id": reply.request_id, **reply.headers}


async def _gone(request: Request) -> None:
    """Ends when the caller goes away; what they send after the body is of no use."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(
    request: Request, work: asyncio.Future[Reply], leave: Callable[[], None], *, wants_usage: bool
) -> AsyncIterator[bytes]:
    """Comments that keep the stream open while paths are drawn, then the chunks."""
    try:
        service: Service = request.app.state.service
        while not (await asyncio.wait({work}, timeout=service.settings.keep_alive))[0]:
            yield b": paths are being drawn\n\n"
        for chunk in replies.chunks(work.result(), wants_usage=wants_usage):
            yield chunk
    except (ApiError, DemurError) as error:
        refused = error if isinstance(error, ApiError) else as_api_error(error)
        request.app.state.refusals.saw(request, refused, PATH)
        yield replies.event(refused.document())
    finally:
        leave()
