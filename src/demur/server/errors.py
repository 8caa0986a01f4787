"""Errors as clients of the OpenAI API expect them: a status, and an object `error` that says what and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demur.backends.redaction import redacted
from demur.errors import DemurError, StoreError

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}


class ApiError(Exception):
    """A request that gets no decision, and why."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers = dict(headers or {})

    def document(self) -> dict[str, Any]:
        """The body of the response."""
        kind = _KINDS.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def refused(message: str, param: str | None = None, code: str = "not_calibrated") -> ApiError:
    """A request that asks for something the policy was not calibrated on."""
    return ApiError(400, message, param=param, code=code)


def busy(message: str, seconds: float, code: str = "busy") -> ApiError:
    """Too much at once, or too much in a while: come back after so many seconds."""
    return ApiError(429, message, code=code, headers={"Retry-After": str(max(1, round(seconds + 0.5)))})


def as_api_error(error: DemurError) -> ApiError:
    """What a client is told of an error that was not made for it."""
    if isinstance(error, StoreError):
        told, again = "decisions cannot be kept now; try again", {"Retry-After": "5"}
        refused_ = ApiError(503, told, code="store_unavailable", headers=again)
        refused_.__cause__ = error  # its words are for the log alone
        return refused_
    return ApiError(400, redacted(str(error)), code="invalid_value")
