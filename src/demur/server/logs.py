"""Log lines for machines: one JSON object each, without what anybody asked or wrote unless that is wanted."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from demur.backends.redaction import redacted
from demur.server.outcomes import Outcome

logger = logging.getLogger("demur.server")
_LONGEST = 4_000
_WRITTEN = json.JSONEncoder(ensure_ascii=True, default=str)


class _Lines(logging.Formatter):
    """A record as one line of JSON: whatever is in it, it cannot begin another."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts: dict[str, Any] | None = getattr(record, "facts", None)
        event = redacted(record.getMessage()) if facts is None else record.msg  # facts come with a fixed word
        line = {"at": at, "level": record.levelname.lower(), "event": event, **(facts or {})}
        if record.exc_info and record.exc_info[0] is not None:
            line["trace"] = redacted(self.formatException(record.exc_info))[-_LONGEST:]
        return _WRITTEN.encode(line)


def to_stderr() -> None:
    """Have the service's lines written to standard error, and its server's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for told, level in ((logger, logging.INFO), (logging.getLogger("uvicorn"), logging.WARNING)):
        told.handlers, told.propagate = [handler], False
        told.setLevel(level)


class RequestLines:
    """One line per decision."""

    def __init__(self, *, texts: bool = False) -> None:
        self.texts = texts

    def saw(self, outcome: Outcome) -> None:
        """Write the line of one decision."""
        question, asked = outcome.question, outcome.asked
        facts: dict[str, Any] = {
            "request": outcome.request_id,
            "policy": question.served.full_name,
            "alpha": question.rule.alpha,
            "decision": outcome.decision,
            "paths": 0 if asked is None else asked.n_drawn,
            "milliseconds": round(outcome.seconds * 1000, 1),
        }
        if outcome.failure is not None:
            facts |= {"cause": outcome.failure.kind, "detail": redacted(outcome.failure.detail)[:500]}
        if self.texts:
            facts["question"] = (question.problem.question or "")[:_LONGEST]
        logger.info("decided", extra={"facts": facts})
