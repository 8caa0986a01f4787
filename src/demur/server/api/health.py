"""`/healthz`: the process lives. `/readyz`: it can decide and keep what it decides."""

from __future__ import annotations

import asyncio
import logging
import time

from fastapi import APIRouter, Request
from fastapi.responses import Response

from demur.backends.interchangeable import Interchangeable
from demur.backends.openai import OpenAI
from demur.errors import DemurError, StoreError, StoreUnreachable
from demur.server.api.written import JsonReply
from demur.server.last_calls import REFUSALS, LastCalls
from demur.server.served import Models
from demur.server.service import Service

router = APIRouter()
_logger = logging.getLogger("demur.server")
_FRESH = 5.0
_PATIENCE = 3.0


class Readiness:
    """What stands in the way of a decision; models are looked up at most every few seconds."""

    def __init__(self, service: Service) -> None:
        self.service, self.last_calls = service, LastCalls()
        self._looked, self._found = -_FRESH, [""]
        self._looking = asyncio.Lock()
        self._told: list[str] = []

    async def troubles(self) -> list[str]:
        """Why nothing can be decided now; nothing where it can."""
        if self.service.closing:
            return ["the service is shutting down"]
        async with self._looking:
            if time.monotonic() - self._looked >= _FRESH:
                self._found = await _of_models(self.service.models, self.last_calls)
                self._looked = time.monotonic()
        of_calls = [] if self._found else await self.last_calls.troubles(self.service.models, _PATIENCE)
        return self._noted([*self._found, *of_calls, *await self._of_store()])

    async def _of_store(self) -> list[str]:
        """Whether a decision could be committed, found out by a write that is shared with requests."""
        if self.service.log is None:
            return []
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.service.log.check()
        except (StoreUnreachable, TimeoutError):
            return ["the store cannot be reached"]
        except StoreError:
            return ["the store cannot be written"]
        return []

    def _noted(self, troubles: list[str]) -> list[str]:
        """A line in the log whenever something else is in the way."""
        if troubles != self._told:
            _logger.warning("not ready: %s", "; ".join(troubles)) if troubles else _logger.info("ready again")
            self._told = troubles
        return troubles


async def _of_models(models: Models, last_calls: LastCalls) -> list[str]:
    """Which endpoints do not answer; a model in this process always does."""
    found = []
    for name, served in models.active.items():
        backend = served.answerer.pipeline.backend
        try:
            async with asyncio.timeout(_PATIENCE):
                if isinstance(backend, Interchangeable) and not await backend.reachable():
                    found.append(f"no endpoint of the model of {name} can be reached")
                if not isinstance(backend, OpenAI):
                    continue
                status, _ = await backend.endpoint.get("/models")
            if status in REFUSALS:
                last_calls.suspect(name)
            elif status >= 500:
                found.append(f"the model of {name} answers {status}")
        except (DemurError, TimeoutError):
            found.append(f"the model of {name} cannot be reached")
    return found


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def alive() -> dict[str, str]:
    """The process lives."""
    return {"status": "ok"}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Whether requests can be decided now."""
    troubles = await request.app.state.readiness.troubles()
    return JsonReply({"ready": not troubles, "troubles": troubles}, 503 if troubles else 200)
