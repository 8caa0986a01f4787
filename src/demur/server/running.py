"""Running the service: one process or several on one port, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Never, TypeVar

import uvicorn

from demur.errors import InvalidValue
from demur.server.access.connections import PunctualConnection
from demur.server.api.metrics import forget_process
from demur.server.service import Service

_logger = logging.getLogger("demur.server")
Result = TypeVar("Result")
_MOMENT_SECONDS = 1.0
_HEADERS_SECONDS = 20
_LOOK_SECONDS, _PAUSE = 0.5, 1.0
_HURRY_SECONDS = 0.1
_HURRIED_SECONDS, _END_SECONDS = 1.5, 10.0
"""What ending may take after the second signal, and after the grace time."""
_BACKLOG = 2048
_OBJECTS = 20_000
"""New ones between two looks of the garbage collector."""


class OrderlyServer(uvicorn.Server):
    """Ends by letting requests finish, and has those abstain that do not, or when it is told to end again.

    `give_up` is called if it does not end in time even so: a thread that hangs would be waited for.
    """

    def __init__(
        self, config: uvicorn.Config, service: Service, grace: float, give_up: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(config)
        self.service, self.grace, self._give_up = service, grace, give_up
        self._again = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Told to end; the second signal takes the grace time away. A worker has that from its parent as SIGINT."""
        if not self.should_exit:
            super().handle_exit(sig, frame)
            _after(self.grace + _END_SECONDS, self._give_up)
        elif sig == signal.SIGINT or multiprocessing.parent_process() is None:
            self._again = True
            _after(_HURRIED_SECONDS, self._give_up)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.service.underway:
            told = "ending: %d questions under way have %g seconds to finish, and then abstain"
            _logger.info(told, self.service.underway, self.grace)
        draining = asyncio.create_task(self.service.drain(self.grace))
        hurrying = asyncio.create_task(self._hurry())
        await super().shutdown(sockets)
        await draining
        hurrying.cancel()

    async def _hurry(self) -> None:
        while not self._again:  # a signal wakes nobody
            await asyncio.sleep(_HURRY_SECONDS)
        await self.service.drain(0)
        await asyncio.sleep(5 * _HURRY_SECONDS)
        for connection in list(self.server_state.connections):  # one that takes nothing is not waited for
            connection.transport.abort()


def _after(seconds: float, act: Callable[[], object]) -> None:
    """Do something later, unless the process ends before."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()


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
        backlog=_BACKLOG,
        http=PunctualConnection,
        ws="none",
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; raises where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # from now on nobody is turned away; who comes early waits until it is served
    except OSError as error:
        listening.close()
        raise InvalidValue(
            f"nothing can listen on {host}:{port}: {error.strerror or error}", "choose another {host} or {port}"
        ) from None
    listening.set_inheritable(True)
    return listening


def waited_for(
    work: Coroutine[Any, Any, Result], listening: socket.socket, app: Any, slow: Callable[[], None]
) -> Result:
    """Wait for what must be known before requests can be served; if it takes longer than a moment, `slow` is called
    and an application answers on the socket until then."""
    host, port = listening.getsockname()[:2]

    async def main() -> Result | None:
        waiting, ending = asyncio.ensure_future(work), asyncio.Event()
        for told in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(told, ending.set)
        over = [waiting, asyncio.ensure_future(ending.wait())]
        if not (await asyncio.wait(over, timeout=_MOMENT_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
            slow()
            server = _Subordinate(configured(app, host=host, port=port, grace=0))
            serving = asyncio.create_task(server.serve([listening.dup()]))
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving
        if ending.is_set():  # a thread that hangs would be waited for
            _after(_HURRIED_SECONDS, partial(os._exit, 0))
            return None
        return await waiting

    result = asyncio.run(main())
    if result is None:
        _end()
    return result


class _Subordinate(uvicorn.Server):
    """Leaves signals to who runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve_here(app: Any, service: Service, listening: socket.socket, grace: float) -> None:
    """Serve in this process until it is told to end."""
    signal.set_wakeup_fd(-1)  # what ends other verbs within two seconds knows of no grace time
    for told in (signal.SIGTERM, signal.SIGINT):  # the server hands them on when all is done
        signal.signal(told, _end)
    host, port = listening.getsockname()[:2]
    config = configured(app, host=host, port=port, grace=grace)
    server = OrderlyServer(config, service, grace, give_up=partial(os._exit, 0))
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


def _end(*_: object) -> Never:
    """To be told to end is no failure."""
    raise SystemExit(0)


def end_with_parent() -> None:
    """Have this process end in order when the one that started it is gone: alone, it would keep the port for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def serve_by_workers(work: Callable[[socket.socket], None], listening: socket.socket, workers: int) -> None:
    """Serve in so many processes on one socket; one that ends is started again, until this one is told to end."""
    multiprocessing.allow_connection_pickling()
    context, ending, again = multiprocessing.get_context("spawn"), threading.Event(), threading.Event()

    def begun() -> Any:
        process = context.Process(target=work, args=(listening,))
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it would leave a traceback while it is imported
        process.start()
        signal.signal(signal.SIGINT, handler)
        return process

    signal.set_wakeup_fd(-1)
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: (again if ending.is_set() else ending).set())
    running = [begun() for _ in range(workers)]
    while not ending.is_set():
        multiprocessing.connection.wait([process.sentinel for process in running], timeout=_LOOK_SECONDS)
        if ended := [process for process in running if not process.is_alive()]:
            for process in ended:
                forget_process(process.pid)
            if not ending.wait(_PAUSE):
                running = [begun() if process in ended else process for process in running]
    listening.close()  # else who comes now would wait for nobody
    for process in running:
        process.terminate()
    while any(process.is_alive() for process in running):
        if again.wait(_HURRY_SECONDS):
            _hurry(running)


def _hurry(running: Sequence[Any]) -> None:
    """End processes at once: in order where they can, and else without it."""
    for process in running:
        if process.is_alive():
            os.kill(process.pid, signal.SIGINT)
    until = time.monotonic() + _HURRIED_SECONDS
    for process in running:
        process.join(max(0.0, until - time.monotonic()))
        process.kill()
        process.join()
