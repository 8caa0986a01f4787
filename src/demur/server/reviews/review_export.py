"""`GET /review/api/labelled`: what people found, as a file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain
from typing import Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from demur.server.access.access import allowed
from demur.server.errors import ApiError
from demur.server.reviews.labelled import csv_lines, judged, label_lines, pool_lines
from demur.store.service import ReviewFilter, ServiceStore

_KINDS = {"pools": ("application/jsonl", "jsonl"), "labels": ("application/jsonl", "jsonl"), "csv": ("text/csv", "csv")}
router = APIRouter(prefix="/review/api")


@router.get("/labelled")
async def labelled(
    request: Request,
    what: Literal["audits", "judged"] = "audits",
    form: Literal["pools", "labels", "csv"] = "pools",
    policy: int | None = Query(default=None, ge=0, le=2**31 - 1),
    since: int | None = Query(default=None, ge=0, le=2**53),
    until: int | None = Query(default=None, ge=0, le=2**53),
) -> Response:
    """Labelled problems: pools for `demur import` and `demur calibrate`, a file of labels for them, or a table."""
    await allowed(request, "review")
    store: ServiceStore | None = request.app.state.store
    if store is None:
        raise ApiError(404, "this service keeps no log, and so nothing was labelled", code="no_log")
    if policy is None and form != "csv":
        raise ApiError(400, "pools and labels are those of one version of a policy: give its number", param="policy")
    wanted = ReviewFilter(None, audited=True if what == "audits" else None, policy=policy, since=since, until=until)
    lines = await asyncio.to_thread(_begun, store, wanted, what, form)
    kind, ending = _KINDS[form]
    name = f"{what}{'' if policy is None else f'-{policy}'}-{form}.{ending}"
    told = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines, media_type=f"{kind}; charset=utf-8", headers=told)


def _begun(store: ServiceStore, wanted: ReviewFilter, what: str, form: str) -> Iterator[str]:
    """The lines of a file, of which the first is there already: what is wrong is said before anything is sent."""
    rows = judged(store, wanted, with_paths=form != "csv")
    if what == "judged":
        rows = (row for row in rows if row.words)
    if form == "csv":
        lines = csv_lines(rows, {row.policy: f"{row.name}:v{row.version}" for row in store.policies.all()})
    else:
        known = {row.policy: row for row in store.policies.all()}
        if wanted.policy not in known:
            raise ApiError(404, f"there is no policy number {wanted.policy}", param="policy", code="policy_not_found")
        version = known[wanted.policy]
        lines = pool_lines(rows, version) if form == "pools" else label_lines(list(rows), version)
    return chain([next(lines)], lines)
