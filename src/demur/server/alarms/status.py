"""`GET /status/api`: how each policy does, and what is in doubt. `POST /status/api/clear`: that it no longer is."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from demur.server.access.access import allowed
from demur.server.alarms.alarms import Alarms, milliseconds
from demur.server.alarms.status_facts import status_facts
from demur.server.api.bodies import read_body
from demur.server.api.description import described
from demur.server.errors import ApiError

_MOST_BYTES = 8_192
router = APIRouter()


class ClearRequest(BaseModel):
    """Whose doubts are to be cleared, and why."""

    model_config = ConfigDict(extra="forbid")
    policy: StrictStr = Field(max_length=300, description="A policy with its version, such as `sums:v1`.")
    note: StrictStr | None = Field(default=None, max_length=2_000, description="Why; kept with the event.")


@router.get("/status/api")
async def status(request: Request) -> dict[str, Any]:
    """Rates, audits beside predictions, alarms in words, events: of each policy."""
    await allowed(request, "review")
    return await asyncio.to_thread(status_facts, _alarms(request), milliseconds())


@router.post("/status/api/clear", openapi_extra=described(ClearRequest))
async def clear(request: Request) -> dict[str, Any]:
    """Have a policy's monitors begin anew, so that its promise is no longer in doubt; who says so is kept."""
    caller = await allowed(request, "admin")
    alarms = _alarms(request)
    body = await read_body(request, ClearRequest, _MOST_BYTES)
    served = next((one for one in alarms.kept() if one.full_name == body.policy), None)
    if served is None:
        raise ApiError(404, f"there is no policy {body.policy!r:.120}", param="policy", code="policy_not_found")
    await asyncio.to_thread(alarms.clear, served, caller.name, body.note)
    return {"policy": served.full_name, "in_doubt": served.full_name in alarms.service.doubts}


def _alarms(request: Request) -> Alarms:
    alarms: Alarms | None = request.app.state.alarms
    if alarms is None:
        raise ApiError(404, "this service keeps no log, and so watches nothing", code="no_log")
    return alarms
