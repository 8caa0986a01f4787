"""Any OpenAI-compatible server.

All paths of a pool in one request where the server can, fewer at a time where it limits, one by one where it must; what
it can do is found out once, and remembered.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from demur.backends.endpoint import Endpoint, Refused
from demur.backends.protocol import Completion, Prompt, Settings, Wanted, consecutive, read_choices
from demur.errors import BackendError, EndpointRefused


class OpenAI:
    """A model on a server that speaks the OpenAI API. `patience` is how long a server may be away, in seconds."""

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        *,
        concurrency: int = 32,
        connect_seconds: float = 10.0,
        read_seconds: float = 600.0,
        patience: float = 300.0,
        largest_n: int | None = None,
    ) -> None:
        self.model, self.concurrency, self.largest_n = model or "default", concurrency, largest_n
        self.endpoint = Endpoint(
            base_url, "OPENAI", concurrency=concurrency, connect_seconds=connect_seconds, read_seconds=read_seconds,
            patience=patience, serves=f"the model ({self.model})",
        )  # fmt: skip
        self._worked = 0
        self._short: Counter[int] = Counter()
        self._old_length_field = False
        self._seeds = True
        self._alternatives = 0

    @property
    def retries(self) -> int:
        """Requests that had to be tried again."""
        return self.endpoint.retries

    @property
    def trouble(self) -> str:
        """Why the last of them had to."""
        return self.endpoint.trouble

    def describe(self) -> dict[str, Any]:
        return {"backend": "openai", "model": self.model}

    async def sample(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> AsyncGenerator[list[Completion], None]:
        """Paths as they arrive; asks again for what a server that takes smaller portions left out.

        Where one portion fails, the others are still taken before it is told.
        """
        remaining, most, smaller = list(wanted), len(wanted), False
        failure: BackendError | None = None
        while remaining and failure is None:
            most = min(most, self.largest_n or most)
            portions = consecutive(remaining, most)
            tasks = [asyncio.ensure_future(self._portion(prompt, settings, portion)) for portion in portions]
            got: set[int] = set()
            try:
                for arriving in asyncio.as_completed(tasks):
                    try:
                        completions, refused = await arriving
                    except EndpointRefused:
                        raise
                    except BackendError as error:
                        failure = failure or error
                        continue
                    if refused is not None:
                        most, smaller = min(most, max(1, refused // 2)), True
                    elif completions and smaller:  # fewer at once do work: so from now on
                        self.largest_n = min(self.largest_n or most, most)
                    got.update(each.path for each in completions)
                    if completions:
                        yield completions
            finally:
                for task in tasks:
                    task.cancel()
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
            document = await self.endpoint.post(route, body)
        except Refused as refused:
            if self._put_another_way(body, refused.message):
                return [], None
            if n > max(1, self._worked):  # so many never worked: it may be too many
                return [], n
            raise BackendError(refused.message) from None
        found = read_choices(document, wanted, time.monotonic() - asked)
        if body.get("top_logprobs") == 0 and all(each.logprobs is None for each in found if each.text):
            self._alternatives = 1  # llama.cpp gives none at all unless asked for one alternative; ask again, once
            return [], None
        self._learn(asked_for=n, got=len(found))
        return found, None

    def _learn(self, *, asked_for: int, got: int) -> None:
        """Remember how many paths the server gives at once. One short answer is an accident, two are a habit."""
        self._worked = max(self._worked, got)
        if got < asked_for:
            self._short[got] += 1
            if self._short[got] > 1 or got == 1:
                self.largest_n = min(self.largest_n or got, got)

    def _put_another_way(self, body: dict[str, Any], said: str) -> bool:
        """Whether a refused request may be put another way from now on, by the field that the server names."""
        words = said.lower()
        if '"messages"' in words:  # it only repeats the request
            return False
        if "max_completion_tokens" in body and "max_completion_tokens" in words:
            self._old_length_field = True
        elif "seed" in body and re.search(r"\bseed\b", words):
            self._seeds = False
        elif "logprobs" in body and "logprob" in words:
            raise EndpointRefused(
                "the endpoint gives no token log-probabilities; start it with them, or add --no-logprobs and choose a "
                f"score that does not need them ({said})"
            )
        else:
            return False
        return True

    def _request(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": self.model, "temperature": settings.temperature}
        if settings.top_p != 1:
            body["top_p"] = settings.top_p
        if settings.stop:
            body["stop"] = list(settings.stop)
        if len(wanted) > 1:
            body["n"] = len(wanted)
        if self._seeds:
            body["seed"] = wanted[0].seed
        if prompt.text is not None:
            body |= {"prompt": prompt.text, "max_tokens": settings.max_tokens}
            if settings.logprobs:
                body["logprobs"] = 1
            return "/completions", body
        length = "max_tokens" if self._old_length_field else "max_completion_tokens"
        body |= {"messages": [dict(message) for message in prompt.messages], length: settings.max_tokens}
        if settings.logprobs:
            body |= {"logprobs": True, "top_logprobs": self._alternatives}
        return "/chat/completions", body

    async def close(self) -> None:
        await self.endpoint.close()
