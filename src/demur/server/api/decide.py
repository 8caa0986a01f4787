"""`POST /v1/decide`: a pool that was sampled and scored elsewhere, decided by a policy."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from demur import event_loop
from demur.backends.protocol import Completion
from demur.errors import DemurError, StoreError
from demur.records import Path, Pool, Problem
from demur.server.access.access import allowed
from demur.server.access.limits import refuse_long
from demur.server.api import replies
from demur.server.api.asking import Question, problem_of
from demur.server.api.bodies import read_body
from demur.server.api.description import described
from demur.server.api.forms import DecideRequest, Extension, SampledPath
from demur.server.api.reply_forms import DecisionReply
from demur.server.api.request_ids import new_id
from demur.server.api.written import JsonReply
from demur.server.errors import ApiError, refused
from demur.server.served import Served
from demur.server.service import Service

router = APIRouter()


@router.post("/v1/decide", openapi_extra=described(DecideRequest, DecisionReply))
async def decide(request: Request) -> Response:
    """Vote on the paths as the policy was calibrated, and answer or abstain."""
    caller = await allowed(request, "ask")
    service: Service = request.app.state.service
    body = await read_body(request, DecideRequest, service.settings.most_bytes)
    beside = body.demur or Extension()
    served, rule = service.models.find(body.model, beside.alpha, beside.guarantee)
    _refuse_another_number(served, body)
    problem = _problem(served, body, beside)
    refuse_long(problem, service.settings.most_characters)
    question = Question(served, rule, problem, body.model)
    length = sum(len(path.text or "") for path in body.paths) + len(problem.question or "")
    pool = await event_loop.read_aside(length, _pool, served, problem, body.paths)
    request_id = new_id()
    try:
        outcome = await service.decide(question, pool, request_id, caller.id)
    except StoreError:
        raise  # the paths are as they should be
    except DemurError as error:
        raise refused(str(error), "paths") from None
    return JsonReply(replies.extension(outcome), headers={"x-demur-request-id": request_id, **replies.headers(outcome)})


def _problem(served: Served, body: DecideRequest, beside: Extension) -> Problem:
    if (body.question is None) == (body.messages is None):
        raise ApiError(400, "give the question either as `question` or as `messages`", param="question")
    messages = body.messages or [{"role": "user", "content": body.question}]
    return problem_of(served, messages, beside)


def _refuse_another_number(served: Served, body: DecideRequest) -> None:
    """Raise where there are more or fewer paths than were calibrated, before any is read."""
    if not served.policy.strata.knows(given := len(body.paths)):
        raise refused(f"the policy was calibrated on {served.policy.told_sizes} paths, and these are {given}", "paths")


def _pool(served: Served, problem: Problem, paths: Sequence[SampledPath]) -> Pool:
    return Pool(problem, tuple(_path(served, problem, path) for path in paths))


def _path(served: Served, problem: Problem, path: SampledPath) -> Path:
    """A path as the vote takes it: its answer as it is given, or as the policy's pipeline reads it in the text."""
    scores = {name: _number(value) for name, value in path.scores.items()}
    if "answer" in path.model_fields_set:
        return Path(path.answer, path.text, scores)
    if path.text is None:
        raise ApiError(400, "a path needs an answer or a text", param="paths", code="invalid_value")
    read = served.answerer.read(problem, Completion(0, path.text, path.finish_reason))
    return Path(read.answer, path.text, scores)


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ApiError(400, "a score is beyond all measure", param="paths", code="invalid_value") from None
