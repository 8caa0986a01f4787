"""What became of the last requests to each policy's models: whether the next one is likely to fail too.

One failure says little, since a question may be what a model cannot take. So after a failure the model is asked for
one token, at most every few seconds, and only while somebody asks whether the service is ready; until that succeeds,
or a request does, the service is not ready. It comes back without traffic. Where requests fail one after another
although a token comes, the service is not ready for a while after each.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

from demur.backends.endpoint import UsesEndpoint
from demur.errors import DemurError, EndpointRefused, EndpointSilent, LogprobsMissing
from demur.server.live import one_token
from demur.server.outcomes import CAUSES, Outcome
from demur.server.served import Models, Served

IN_A_ROW = 5
"""As many requests must fail one after another to say something although a token comes."""
_KEPT = 30.0
"""Seconds for which they do."""
_TRUSTED = 60.0
"""Seconds after an answer in which a list of models that is refused means nothing."""
_EVERY, _TOKEN_SECONDS = 5.0, 20.0
REFUSALS = (401, 402, 403)


@dataclass
class _Calls:
    """The last requests to the models of one policy."""

    answered: float = float("-inf")
    failed: float = float("-inf")
    in_a_row: int = 0
    kind: str = "upstream_failed"
    asked: float = float("-inf")
    token: asyncio.Task[str] | None = None
    """What is asked for, after a failure, ends with what is in the way, or blank."""


class LastCalls:
    """Sees every decision; says what is in the way of the next."""

    def __init__(self) -> None:
        self._of: dict[str, _Calls] = {}

    def saw(self, outcome: Outcome) -> None:
        """A decision; one whose pool was drawn for another request, or elsewhere, says nothing new."""
        if outcome.shared or not outcome.waited:
            return
        calls = self._calls(outcome.question.served.name)
        if outcome.failure is None:
            calls.answered, calls.in_a_row = time.monotonic(), 0
        elif outcome.failure.kind != "shutting_down":
            calls.failed, calls.kind = time.monotonic(), outcome.failure.kind
            calls.in_a_row += 1

    def suspect(self, name: str) -> None:
        """Its server refused to list its models: its key may have expired, or nobody is told that list."""
        calls = self._calls(name)
        if time.monotonic() - calls.answered >= _TRUSTED:
            calls.failed = time.monotonic()

    async def troubles(self, models: Models, patience: float) -> list[str]:
        """What is in the way, looked up within so many seconds."""
        told = [await self._trouble(served, patience) for name, served in models.active.items() if name in self._of]
        return [words for words in told if words]

    async def stop(self) -> None:
        """Ask for nothing more."""
        tokens = [calls.token for calls in self._of.values() if calls.token is not None]
        for token in tokens:
            token.cancel()
        await asyncio.gather(*tokens, return_exceptions=True)

    def _calls(self, name: str) -> _Calls:
        return self._of.setdefault(name, _Calls())

    async def _trouble(self, served: Served, patience: float) -> str:
        calls, now = self._calls(served.name), time.monotonic()
        if calls.failed > calls.answered:
            if calls.token is None or (calls.token.done() and now - calls.asked >= _EVERY):
                calls.asked, calls.token = now, asyncio.create_task(self._ask(served, calls, now))
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(asyncio.shield(calls.token), patience) or self._many(served, calls)
            return f"the model of {served.name} failed, and has not answered since: {CAUSES[calls.kind]}"
        return self._many(served, calls)

    def _many(self, served: Served, calls: _Calls) -> str:
        if calls.in_a_row < IN_A_ROW or time.monotonic() - calls.failed >= _KEPT:
            return ""
        return f"the last {calls.in_a_row} requests to {served.name} failed: {CAUSES[calls.kind]}"

    async def _ask(self, served: Served, calls: _Calls, began: float) -> str:
        """Ask for one token, and whether scorers take their keys; what is in the way, or blank."""
        try:
            async with asyncio.timeout(_TOKEN_SECONDS):
                await one_token(served)
                words = await _of_scorers(served)
        except (EndpointSilent, TimeoutError):
            return f"the model of {served.name} does not answer"
        except EndpointRefused:
            return f"the model of {served.name} refuses requests: check its key, its name and its address"
        except LogprobsMissing:
            return f"the model of {served.name} gives no log-probabilities, of which the score is made"
        except DemurError:
            return f"the model of {served.name} fails"
        if not words:
            calls.answered = max(calls.answered, began)
        return words


async def _of_scorers(served: Served) -> str:
    """What is in the way of scorers that are asked elsewhere; not every server lists its models."""
    pipeline = served.answerer.pipeline
    for scorer in (pipeline.scorer, *pipeline.also):
        if isinstance(scorer, UsesEndpoint):
            status, _ = await scorer.endpoint.get("/models")
            if status in REFUSALS or status >= 500:
                return f"the scorer {scorer.name} of {served.name} answers {status}: check its server and its key"
    return ""
