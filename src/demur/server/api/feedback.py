"""`POST /v1/feedback`: what turned out about a decision."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request

from demur import event_loop
from demur.server.access.access import allowed
from demur.server.api.bodies import read_body
from demur.server.api.description import described
from demur.server.api.forms import FeedbackRequest
from demur.server.api.reply_forms import FeedbackReply
from demur.server.errors import ApiError
from demur.server.service import Service
from demur.store.service import Decision

router = APIRouter()


@router.post("/v1/feedback", openapi_extra=described(FeedbackRequest, FeedbackReply))
async def give(request: Request) -> dict[str, Any]:
    """Keep a verdict or the true answer; the same again changes nothing, another is kept beside it.

    What a key with the role `review` says is a label. Without keys nobody is known to be a reviewer here.
    """
    caller = await allowed(request, "ask", "review")
    service: Service = request.app.state.service
    body = await read_body(request, FeedbackRequest, service.settings.most_bytes)
    store = request.app.state.store
    if store is None:
        raise ApiError(404, "this service keeps no log, and so takes no feedback", code="no_log")
    if body.verdict is None and body.answer is None:
        raise ApiError(400, "give a verdict (right, wrong, unsure) or the true answer", param="verdict")
    if body.answer is not None and not body.answer.strip():
        raise ApiError(400, "the true answer is blank", param="answer", code="invalid_value")
    decision = await asyncio.to_thread(store.decisions.get, body.request_id)
    if decision is None or not (decision.caller == caller.id or caller.may("review")):
        raise ApiError(404, f"there is no request {body.request_id!r}", param="request_id", code="request_not_found")
    length = len(body.answer or "") + len(decision.winner or "") + len(decision.question or "")
    verdict = await event_loop.read_aside(length, _verdict, body, decision, service)
    reviews = caller.id is not None and caller.may("review")
    said = await asyncio.to_thread(
        store.feedback.give,
        body.request_id,
        caller.id or caller.name,
        time.time_ns() // 1_000_000,
        verdict=verdict,
        answer=service.settings.kept(body.answer),
        source="review" if reviews else "api",
        note=service.settings.kept(body.note),
    )
    told = {"request_id": said.request, "verdict": said.verdict, "answer": said.answer, "said_before": said.turn}
    return told | {"by": "reviewer" if reviews else "caller"}


def _verdict(body: FeedbackRequest, decision: Decision, service: Service) -> str | None:
    """The verdict to keep: without texts it is read from a true answer, which is not kept.

    Raises where the verdict says one thing of the vote and the true answer another.
    """
    served = service.models.numbered(decision.policy)
    agrees = None if body.answer is None or served is None else served.spoken.agrees(decision, body.answer)
    if body.verdict is None and not service.settings.texts:
        if agrees is None:
            told = "this service keeps no texts: give a verdict (right, wrong, unsure) in place of the true answer"
            raise ApiError(400, told, param="verdict", code="no_texts")
        return "right" if agrees else "wrong"
    if body.verdict in ("right", "wrong") and agrees is not None and agrees != (body.verdict == "right"):
        told = "the vote's own" if agrees else "another than the vote's"
        raise ApiError(
            400, f"the verdict is {body.verdict!r}, and the true answer is {told}: give one of the two",
            param="answer", code="contradiction",
        )  # fmt: skip
    return body.verdict
