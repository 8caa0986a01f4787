"""Connections that dawdle or babble: the head of a request must come in time and be short.

So must a body that is no longer wanted come in time; one that is wanted has its own limits (`api.bodies`).
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0
HEAD_BYTES = 65_536


class PunctualConnection(HttpToolsProtocol):
    """Closes a connection on which nothing whole arrives for too long; the server itself times only idle ones."""

    _deadline: asyncio.TimerHandle | None = None
    _in_body = False
    _unread = 0
    """Bytes that no request has been given yet: of a head that is not whole, or around the pieces of a body."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of a request is too long.")
        self._look()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # what follows a body is no header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            raise ValueError("the head of a request is too long")
        self._in_body, self._unread = True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._unread = False, 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Set the clock where a head, or the rest of a body that was answered already, is still to come."""
        if self.cycle is not None and not self.cycle.response_complete:
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
