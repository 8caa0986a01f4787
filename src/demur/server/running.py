"""Running the service: one process or several on one port, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import multiprocessing.connection
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from demur.errors import InvalidValue
from demur.server.access.connections import PunctualConnection
from demur.server.service import Service

_HEADERS_SECONDS = 20
_LOOK_SECONDS, _PAUSE = 0.5, 1.0
_OBJECTS = 20_000
"""New ones between two looks of the garbage collector."""


class _Orderly(uvicorn.Server):
    """Ends by letting requests finish, and has those abstain that do not."""

    def __init__(self, config: uvicorn.Config, service: Service, grace: float) -> None:
        super().__init__(config)
        self.service, self.grace = service, grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        draining = asyncio.create_task(self.service.drain(self.grace))
        await super().shutdown(sockets)
        await draining


def configured(app: Any, *, host: str, port: int, grace: float) -> uvicorn.Config:
    """How the application is served."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,  # its lines are like ours: logs.to_stderr
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_HEADERS_SECONDS,
        timeout_graceful_shutdown=round(grace) + 5,
        backlog=2048,
        http=PunctualConnection,
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; raises where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InvalidValue(f"nothing can listen on {host}:{port}: {error.strerror or error}") from None
    listening.set_inheritable(True)
    return listening


def serve_here(app: Any, service: Service, listening: socket.socket, grace: float) -> None:
    """Serve in this process until it is told to end."""
    for told in (signal.SIGTERM, signal.SIGINT):  # the server hands them on when all is done
        signal.signal(told, _end)
    host, port = listening.getsockname()[:2]
    server = _Orderly(configured(app, host=host, port=port, grace=grace), service, grace)
    with _collecting_less():
        server.run(sockets=[listening])


@contextmanager
def _collecting_less() -> Iterator[None]:
    """Within, the garbage collector leaves alone what was loaded by now, and looks at the rest less often.

    Modules and policies stay as long as the process serves; going through them again and again costs requests a tenth
    of their time.
    """
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _end(*_: object) -> None:
    """To be told to end is no failure."""
    raise SystemExit(0)


def serve_by_workers(work: Callable[[socket.socket], None], listening: socket.socket, workers: int) -> None:
    """Serve in so many processes on one socket; one that ends is started again, until this one is told to end."""
    multiprocessing.allow_connection_pickling()
    context, ending = multiprocessing.get_context("spawn"), threading.Event()

    def begun() -> Any:
        process = context.Process(target=work, args=(listening,))
        process.start()
        return process

    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: ending.set())
    running = [begun() for _ in range(workers)]
    while not ending.is_set():
        multiprocessing.connection.wait([process.sentinel for process in running], timeout=_LOOK_SECONDS)
        if any(not process.is_alive() for process in running) and not ending.wait(_PAUSE):
            running = [process if process.is_alive() else begun() for process in running]
    for process in running:
        process.terminate()
    for process in running:
        process.join()
