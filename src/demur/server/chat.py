"""`POST /v1/chat/completions`: one question in, an answer or an abstention out."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from demur.backends import tracing
from demur.server import replies
from demur.server.access import allowed
from demur.server.asking import question_of
from demur.server.bodies import read_body
from demur.server.description import described
from demur.server.errors import ApiError
from demur.server.forms import ChatRequest
from demur.server.outcomes import Outcome
from demur.server.service import Service

router = APIRouter()
PATH = "/v1/chat/completions"


@router.post(PATH, openapi_extra=described(ChatRequest))
async def complete(request: Request) -> Response:
    """Answer or abstain."""
    caller = await allowed(request, "ask")
    service: Service = request.app.state.service
    body = await read_body(request, ChatRequest, service.settings.most_bytes)
    question = question_of(body, service.models)
    tracing.follow(request.headers.get("traceparent"))
    request_id = new_id()
    named = {"x-demur-request-id": request_id}
    if question.stream:
        work = asyncio.ensure_future(service.answer(question, request_id, caller.id))
        headers = {**named, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_events(service, work), media_type="text/event-stream", headers=headers)
    outcome = await service.answer(question, request_id, caller.id)
    return JSONResponse(replies.completion(outcome, service.settings), headers={**named, **replies.headers(outcome)})


def new_id() -> str:
    """What a request is known by from now on."""
    return "req_" + secrets.token_hex(16)


async def _events(service: Service, work: asyncio.Future[Outcome]) -> AsyncIterator[bytes]:
    """Comments that keep the stream open while paths are drawn, then the chunks."""
    try:
        while not (await asyncio.wait({work}, timeout=service.settings.keep_alive))[0]:
            yield b": paths are being drawn\n\n"
        for chunk in replies.chunks(work.result(), service.settings):
            yield chunk
    except ApiError as error:
        yield replies.event(error.document())
    finally:
        work.cancel()
