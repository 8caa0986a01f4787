"""Any OpenAI-compatible server.

All paths of a pool in one request where the server can, fewer at a time where it limits, one by one where it must; what
it can do is remembered, and how many at once is tried again now and then.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Any

from demur.backends._portion_size import PortionSize
from demur.backends.endpoint import Endpoint, Refused, UsesEndpoint
from demur.backends.protocol import Completion, Portions, Settings, Wanted, consecutive, read_choices
from demur.errors import BackendError, EndpointRefused
from demur.prompts import Prompt

_ALTERNATIVES = (1, 0, None)
"""How many likelier tokens to ask for beside each log-probability. llama.cpp gives none at all unless asked for one."""
_SECONDS_PER_TOKEN = 0.1
"""What an answer may take for each token of its longest path, on top of ten minutes."""


class OpenAI(UsesEndpoint):
    """A model on a server that speaks the OpenAI API.

    `patience` is how long nothing may come from the server, in seconds, and `answer_seconds` how long one answer may
    take in all; unless it is given, ten minutes and a tenth of a second for each of the tokens a path may have.
    `largest_n` is the most paths ever to ask for at once.
    """

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        *,
        concurrency: int = 32,
        connect_seconds: float = 10.0,
        answer_seconds: float | None = None,
        patience: float | None = None,
        largest_n: int | None = None,
    ) -> None:
        self.model, self.concurrency = model or "default", concurrency
        self.endpoint = Endpoint(
            base_url,
            "OPENAI",
            concurrency=concurrency,
            connect_seconds=connect_seconds,
            answer_seconds=answer_seconds,
            patience=patience,
            serves=f"the model ({self.model})",
        )
        self._size = PortionSize(largest_n)
        self._old_length_field = False
        self._seeds = True
        self._alternatives: int | None = _ALTERNATIVES[0]

    @property
    def largest_n(self) -> int | None:
        """The most paths that are asked for at once, as things stand; None: any number."""
        return self._size.limit

    def describe(self) -> dict[str, Any]:
        return {"backend": "openai", "model": self.model}

    async def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        """Paths as they arrive; asks again for what a server that takes smaller portions left out.

        Where one portion fails, the others are still taken before it is told.
        """
        remaining, most, smaller = list(wanted), len(wanted), False
        failure: BackendError | None = None
        while remaining and failure is None:
            portions = consecutive(remaining, min(most, self._size.next(len(remaining))))
            asked = [self._portion(prompt, settings, portion) for portion in portions]
            tasks = [asyncio.ensure_future(portion) for portion in asked] if len(asked) > 1 else []
            got: set[int] = set()
            try:
                for arriving in asyncio.as_completed(tasks) if tasks else asked:
                    try:
                        completions, refused = await arriving
                    except EndpointRefused:
                        raise
                    except BackendError as error:
                        failure = failure or error
                        continue
                    if refused is not None:
                        held = self._size.limit  # what is known to work, where more was only tried
                        fewer = held if held is not None and held < refused else refused // 2
                        most, smaller = min(most, max(1, fewer)), True
                    elif completions and smaller:  # fewer at once do work: so from now on
                        self._size.takes_at_most(most)
                    got.update(completion.path for completion in completions)
                    if completions:
                        yield completions
            finally:
                for task in tasks:
                    task.cancel()
                if tasks:
                    await asyncio.gather(*tasks, return_exceptions=True)
            remaining = [want for want in remaining if want.path not in got]
        if failure is not None:
            raise failure

    async def _portion(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> tuple[list[Completion], int | None]:
        """One request's worth of paths; or none, and how many at once were refused."""
        asked, n = time.monotonic(), len(wanted)
        route, body = self._request(prompt, settings, wanted)
        try:
            document = await self.endpoint.post(route, body, seconds=600 + _SECONDS_PER_TOKEN * settings.max_tokens)
        except Refused as refused:
            if self._put_another_way(body, str(refused)):
                return [], None
            if n > 1:  # it may be too many
                return [], n
            raise BackendError(str(refused)) from None
        completions = read_choices(document, wanted, time.monotonic() - asked)
        self._size.answered(asked_for=n, got=len(completions))
        return completions, None

    def _put_another_way(self, body: dict[str, Any], said: str) -> bool:
        """Whether a refused request may be put another way from now on, by the field that the server names."""
        words = said.lower()
        if '"messages"' in words:  # it only repeats the request
            return False
        if "max_completion_tokens" in body and "max_completion_tokens" in words:
            self._old_length_field = True
        elif "seed" in body and re.search(r"\bseed\b", words):
            self._seeds = False
        elif "top_logprobs" in body and "logprob" in words:
            if body["top_logprobs"] == self._alternatives:  # else another request was told so, too
                self._alternatives = _ALTERNATIVES[_ALTERNATIVES.index(self._alternatives) + 1]
        elif "logprobs" in body and "logprob" in words:
            raise EndpointRefused(
                f"the endpoint gives no token log-probabilities ({said})",
                "start it with them, or sample with {logprobs=False} and choose a score that does not need them",
            )
        else:
            return False
        return True

    def _request(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> tuple[str, dict[str, Any]]:
        manners: dict[str, Any] = {
            "seeds": self._seeds,
            "alternatives": self._alternatives,
            "old_length_field": self._old_length_field,
        }
        return request_of(self.model, prompt, settings, wanted, **manners)


def request_of(
    model: str,
    prompt: Prompt,
    settings: Settings,
    wanted: Sequence[Wanted],
    *,
    seeds: bool = True,
    alternatives: int | None = _ALTERNATIVES[0],
    old_length_field: bool = False,
) -> tuple[str, dict[str, Any]]:
    """What asks for some paths of one prompt: the route, and the body as any OpenAI-compatible server takes it."""
    body: dict[str, Any] = {"model": model, "temperature": settings.temperature}
    body |= {"top_p": settings.top_p} if settings.top_p != 1 else {}
    body |= {"stop": list(settings.stop)} if settings.stop else {}
    body |= {"n": len(wanted)} if len(wanted) > 1 else {}
    body |= {"seed": wanted[0].seed} if seeds else {}
    if prompt.text is not None:
        body |= {"prompt": prompt.text, "max_tokens": settings.max_tokens}
        return "/completions", body | ({"logprobs": 1} if settings.logprobs else {})
    length = "max_tokens" if old_length_field else "max_completion_tokens"
    body |= {"messages": [dict(message) for message in prompt.messages], length: settings.max_tokens}
    if settings.logprobs:
        body["logprobs"] = True
        body |= {} if alternatives is None else {"top_logprobs": alternatives}
    return "/chat/completions", body
