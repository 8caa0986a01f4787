"""Connections that dawdle: the head of a request must come in time, and so must a body that is no longer wanted."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0
_ANSWERED: tuple[Any, ...] = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)


class PunctualConnection(H11Protocol):
    """Closes a connection on which nothing whole arrives for too long; the server itself times only idle ones."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Set the clock where a head, or the rest of a body that was answered already, is still to come."""
        state = self.conn.their_state
        late = state is h11.IDLE or (state is h11.SEND_BODY and self.conn.our_state in _ANSWERED)
        if not late:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
