"""Log lines for machines: one JSON object each, without questions and answers.

What an error quotes may be of either, so that without texts errors are named by their class.
"""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from demur.backends.redaction import redacted
from demur.errors import PipelineMismatch, PolicyFileError, StoreError
from demur.files.strict_json import as_json
from demur.server.outcomes import Outcome

logger = logging.getLogger("demur.server")
_LONGEST = 4_000
_OF_THE_OPERATOR = (StoreError, PolicyFileError, PipelineMismatch)
"""Errors that speak of the database and of policies: they quote nothing that was asked or answered."""


class _Lines(logging.Formatter):
    """A record as one line of JSON: whatever is in it, it cannot begin another.

    Without texts, an error in a message or a trace is its class, unless it speaks to the operator alone.
    """

    def __init__(self, *, texts: bool = True) -> None:
        super().__init__()
        self.texts = texts

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts: dict[str, Any] | None = getattr(record, "facts", None)
        event = redacted(self._message(record)) if facts is None else record.msg  # facts come with a fixed word
        line = {"at": at, "level": record.levelname.lower(), "event": event, **(facts or {})}
        if record.exc_info and record.exc_info[0] is not None:
            trace = self.formatException(record.exc_info) if self.texts else _places(record.exc_info[1])
            line["trace"] = redacted(trace)[-_LONGEST:]
        return as_json(line, default=str)

    def _message(self, record: logging.LogRecord) -> str:
        if not isinstance(record.args, tuple):
            return record.getMessage()
        return str(record.msg) % tuple(map(self._shown, record.args)) if record.args else str(record.msg)

    def _shown(self, value: object) -> object:
        """An error by its words if it has some and they may be told, else by its class."""
        if not isinstance(value, BaseException):
            return value
        told = str(value) if self.texts or isinstance(value, _OF_THE_OPERATOR) else ""
        return told or type(value).__name__


def _places(error: BaseException | None) -> str:
    """A trace without the words of its errors: where they were raised, and their classes."""
    told: list[str] = []
    while error is not None:
        told = [*traceback.format_tb(error.__traceback__), type(error).__name__, *told]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(told)


def to_stderr(*, texts: bool = True) -> None:
    """Have the lines of the service, its server and its libraries written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(texts=texts))
    libraries, server = logging.getLogger(), logging.getLogger("uvicorn")
    for told, level in ((logger, logging.INFO), (server, logging.WARNING), (libraries, logging.WARNING)):
        told.handlers, told.propagate = [handler], False
        told.setLevel(level)


class RequestLines:
    """One line per decision; the words of a failure only where texts are kept."""

    def __init__(self, *, texts: bool = True) -> None:
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
        if outcome.caller is not None:
            facts["key"] = outcome.caller
        if outcome.failure is not None:
            facts |= {"cause": outcome.failure.kind, "detail": outcome.failure.logged(500, texts=self.texts)}
        logger.info("decided", extra={"facts": facts})
