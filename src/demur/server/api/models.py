"""`GET /v1/models`: what can be asked, under which names, with which promise."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from demur.server.access.access import allowed
from demur.server.api.description import described_reading
from demur.server.api.reply_forms import ModelReply, ModelsReply
from demur.server.errors import ApiError
from demur.server.service import Service

router = APIRouter()


@router.get("/v1/models", openapi_extra=described_reading(ModelsReply))
async def listed(request: Request) -> dict[str, Any]:
    """Every policy, each of its alphas, and every alias."""
    await allowed(request, "ask")
    service: Service = request.app.state.service
    return {"object": "list", "data": [_model(service, name) for name in service.models.ids()]}


@router.get("/v1/models/{name:path}", openapi_extra=described_reading(ModelReply, by_name=True))
async def one(request: Request, name: str) -> dict[str, Any]:
    """One of them."""
    await allowed(request, "ask")
    service: Service = request.app.state.service
    if name not in service.models.ids():
        raise ApiError(404, f"there is no model {name!r:.120}", param="model", code="model_not_found")
    return _model(service, name)


def _model(service: Service, name: str) -> dict[str, Any]:
    served, rule = service.models.ids()[name]
    told = {
        "policy": served.full_name,
        "fingerprint": served.policy.fingerprint,
        "alpha": rule.alpha,
        "guarantee": rule.guarantee.name,
        "threshold": rule.threshold,
        "paths": served.policy.n_paths,
        "promise": rule.promise,
    }
    return {"id": name, "object": "model", "created": 0, "owned_by": "demur", "demur": told}
