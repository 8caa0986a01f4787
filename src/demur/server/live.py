"""Before requests are served: models and scorers are asked, once, whether they are there and do as a policy needs.

Until they answer, `Starting` tells whoever asks what is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from demur.backends.endpoint import UsesEndpoint
from demur.backends.openai import OpenAI
from demur.backends.protocol import Settings, Wanted
from demur.errors import BackendError, EndpointRefused, EndpointSilent, LogprobsMissing, PipelineMismatch
from demur.prompts import Prompt
from demur.server.access.security_headers import SecurityHeaders
from demur.server.api.written import JsonReply
from demur.server.errors import ApiError
from demur.server.running import waited_for
from demur.server.served import Models, Served

_AGAIN = {"Retry-After": "5"}


def wait_for_models(models: Models, listening: socket.socket, address: str, say: Callable[[str], None]) -> None:
    """Check models before they are served; whoever asks on the socket meanwhile is told to come back."""

    def slow() -> None:
        ready = f"{address.removesuffix('/v1')}/readyz"
        say(f"{', '.join(awaited(models))}; until then {ready} and all requests get status 503")

    for note in waited_for(check_live(models), listening, Starting(models), slow):
        say(note)


async def check_live(models: Models) -> list[str]:
    """What cannot be reached yet, in words; raises where what is there is not what was calibrated."""
    notes = await asyncio.gather(*map(_check, models.active.values()))
    return [note for note in notes if note is not None]


def awaited(models: Models) -> list[str]:
    """Which servers have not answered yet, in words."""
    pipelines = [served.answerer.pipeline for served in models.active.values()]
    asked: list[object] = [part for one in pipelines for part in (one.backend, one.scorer, *one.also)]
    endpoints = [part.endpoint for part in asked if isinstance(part, UsesEndpoint)]
    silent = dict.fromkeys(endpoint.shown for endpoint in endpoints if endpoint.never_served)
    return [f"waiting for the first answer of {address}" for address in silent] or ["checking the models"]


class Starting:
    """The application while `check_live` is under way: alive, not ready, and no request is taken."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":  # there is nothing to open or close
            await SecurityHeaders(self._reply(scope["path"]))(scope, receive, send)

    def _reply(self, path: str) -> JsonReply:
        if path == "/healthz":
            return JsonReply({"status": "ok"})
        troubles = awaited(self._models)
        if path == "/readyz":
            return JsonReply({"ready": False, "troubles": troubles}, 503, _AGAIN)
        refused = ApiError(503, f"the service is starting: {', '.join(troubles)}", code="starting")
        return JsonReply(refused.document(), refused.status, _AGAIN)


async def _check(served: Served) -> str | None:
    """A note where its model or scorers cannot be reached yet."""
    try:
        await _check_model(served)
        await served.answerer.open_async()
    except EndpointSilent as error:
        return f"{served.name}: {error.message}; it starts all the same, and /readyz says when it is there"
    finally:
        await served.answerer.close_async()
    return None


async def _check_model(served: Served) -> None:
    """A model on a server knows the name, and gives log-probabilities where the score is made of them."""
    backend = served.answerer.pipeline.backend
    if not isinstance(backend, OpenAI):
        return
    try:
        await one_token(served)
    except EndpointSilent:
        raise
    except EndpointRefused as error:
        raise PipelineMismatch([f"{served.name}: sampling.model is {backend.model!r} in the policy; {error}"]) from None
    except BackendError as error:
        raise EndpointSilent(error.message, error.remedy) from None


async def one_token(served: Served) -> None:
    """Ask the model of a policy for one token; raises where it gives none, or no log-probabilities that are needed."""
    pipeline = served.answerer.pipeline
    chat = ({"role": "user", "content": "1 + 1"},)
    prompt = Prompt("probe", text="1 + 1 =") if served.template.kind == "completion" else Prompt("probe", chat)
    settings = Settings(max_tokens=1, logprobs=pipeline.needs_logprobs)
    async with contextlib.aclosing(pipeline.backend.sample(prompt, settings, [Wanted(0, 0)])) as portions:
        drawn = [path async for portion in portions for path in portion]
    if pipeline.needs_logprobs and any(path.logprobs is None and path.text for path in drawn):
        raise LogprobsMissing(
            f"the score of {served.name} is made of log-probabilities, and its model gives none",
            "start the model's server with them",
        )
