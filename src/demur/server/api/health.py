"""`/healthz`: the process lives. `/readyz`: it can decide and keep what it decides."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from demur.backends.interchangeable import Interchangeable
from demur.backends.openai import OpenAI
from demur.errors import DemurError
from demur.server.api.written import JsonReply
from demur.server.served import Models
from demur.server.service import Service

router = APIRouter()
_FRESH = 5.0
_PATIENCE = 3.0


class Readiness:
    """What stands in the way of a decision, looked up at most every few seconds."""

    def __init__(self, service: Service, store: Any) -> None:
        self.service, self.store = service, store
        self._looked, self._found = -_FRESH, [""]
        self._looking = asyncio.Lock()

    async def troubles(self) -> list[str]:
        """Why nothing can be decided now; nothing where it can."""
        if self.service.closing:
            return ["the service is shutting down"]
        async with self._looking:
            if time.monotonic() - self._looked >= _FRESH:
                self._found = [*await _of_models(self.service.models), *await self._of_store()]
                self._looked = time.monotonic()
        return self._found

    async def _of_store(self) -> list[str]:
        if self.store is None:
            return []
        try:
            async with asyncio.timeout(_PATIENCE):
                await asyncio.to_thread(self.store.check_writing)
        except (DemurError, TimeoutError):
            return ["the store cannot be reached"]
        return []


async def _of_models(models: Models) -> list[str]:
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
            if status >= 500:
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
