"""A trace that goes on: what a caller's request was traced by is passed on to the servers asked for it."""

from __future__ import annotations

import re
from contextvars import ContextVar

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_current: ContextVar[str | None] = ContextVar("traceparent", default=None)


def follow(traceparent: str | None) -> None:
    """From here on, in this task, requests carry the trace; what is no trace is dropped."""
    _current.set(traceparent if traceparent and _TRACEPARENT.fullmatch(traceparent) else None)


def headers() -> dict[str, str]:
    """What a request carries besides."""
    return {} if (traceparent := _current.get()) is None else {"traceparent": traceparent}
