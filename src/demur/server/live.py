"""Before anything listens: models and scorers are asked, once, whether they are there and do as a policy needs."""

from __future__ import annotations

import contextlib

from demur.backends.openai import OpenAI
from demur.backends.protocol import Settings, Wanted
from demur.errors import BackendError, EndpointRefused, EndpointSilent, LogprobsMissing, PipelineMismatch
from demur.prompts import Prompt
from demur.server.served import Models, Served


async def check_live(models: Models) -> list[str]:
    """What cannot be reached yet, in words; raises where what is there is not what was calibrated."""
    notes = []
    for served in models.active.values():
        try:
            await _check_model(served)
            await served.answerer.open_async()
        except EndpointSilent as error:
            notes.append(f"{served.name}: {error.message}; it starts all the same, and /readyz says when it is there")
        finally:
            await served.answerer.close_async()
    return notes


async def _check_model(served: Served) -> None:
    """One token of the model: it knows the name, and gives log-probabilities where the score is made of them."""
    pipeline = served.answerer.pipeline
    backend = pipeline.backend
    if not isinstance(backend, OpenAI):
        return
    chat = ({"role": "user", "content": "1 + 1"},)
    prompt = Prompt("probe", text="1 + 1 =") if served.template.kind == "completion" else Prompt("probe", chat)
    settings = Settings(max_tokens=1, logprobs=pipeline.needs_logprobs)
    try:
        async with contextlib.aclosing(backend.sample(prompt, settings, [Wanted(0, 0)])) as portions:
            drawn = [path async for portion in portions for path in portion]
    except EndpointSilent:
        raise
    except EndpointRefused as error:
        raise PipelineMismatch([f"{served.name}: sampling.model is {backend.model!r} in the policy; {error}"]) from None
    except BackendError as error:
        raise EndpointSilent(error.message, error.remedy) from None
    if pipeline.needs_logprobs and any(path.logprobs is None and path.text for path in drawn):
        raise LogprobsMissing(
            f"the score of {served.name} is made of log-probabilities, and its model gives none",
            "start the model's server with them",
        )
