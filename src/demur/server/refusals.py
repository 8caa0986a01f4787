"""Requests that get no decision: all are counted by cause, and a few of each cause have log lines.

Whoever is refused can cause as many refusals as they like, so of each cause the first in a minute have a line each, and
the others one together. Lines name the key by its id, and quote nothing that was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from fastapi import Request

from demur.backends.redaction import redacted
from demur.errors import StoreError
from demur.server.api.metrics import Metrics
from demur.server.errors import ApiError

_logger = logging.getLogger("demur.server")
FIRST = 10
"""Refusals of one cause that have lines of their own within a minute."""
_SECONDS = 60.0
_EVERY = 1.0
_UNNAMED = {400: "invalid_value", 404: "not_found", 405: "method_not_allowed"}
"""Causes of refusals that clients get no code for."""


@dataclass
class _Minute:
    """The refusals of one cause, since the first of them."""

    began: float
    lines: int = 0
    without_line: int = 0


class Refusals:
    """Counts and tells them."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self.metrics, self._clock = metrics, clock
        self._minutes: dict[str, _Minute] = {}

    def saw(self, request: Request, error: ApiError, route: str) -> None:
        """One refusal, on a route as it is declared."""
        cause = error.code or _UNNAMED.get(error.status, f"status_{error.status}")
        self.metrics.refused.labels(str(error.status), cause).inc()
        self.tell_rest()
        minute = self._minutes.setdefault(cause, _Minute(self._clock()))
        if minute.lines >= FIRST:
            minute.without_line += 1
            return
        minute.lines += 1
        facts: dict[str, Any] = {"status": error.status, "cause": cause, "route": route}
        with contextlib.suppress(ValueError, AttributeError):  # what a proxy says may be anything
            facts["from"] = str(ip_address(request.client.host))  # type: ignore[union-attr]
        facts |= {"request": own} if (own := getattr(request.state, "request_id", None)) is not None else {}
        facts |= {"key": key} if (key := getattr(request.state, "key", None)) is not None else {}
        if isinstance(error.__cause__, StoreError):  # for the operator, not for the client
            facts["detail"] = redacted(str(error.__cause__))
        level = logging.WARNING if error.status in (401, 403) or error.status >= 500 else logging.INFO
        _logger.log(level, "refused", extra={"facts": facts})

    def tell_rest(self, *, all_of_them: bool = False) -> None:
        """One line for those of a cause that had none, when their minute is over."""
        for cause, minute in list(self._minutes.items()):
            seconds = self._clock() - minute.began
            if all_of_them or seconds >= _SECONDS:
                del self._minutes[cause]
                if minute.without_line:
                    facts = {"cause": cause, "more": minute.without_line, "seconds": round(seconds)}
                    _logger.warning("refused", extra={"facts": facts})

    async def follow(self) -> None:
        """Tell the rest of each minute, until this is cancelled, and then what is left."""
        try:
            while True:
                await asyncio.sleep(_EVERY)
                self.tell_rest()
        finally:
            self.tell_rest(all_of_them=True)
