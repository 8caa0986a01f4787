"""The one bridge from synchronous code to asynchronous: an event loop in a thread of its own.

It works inside a running loop too (a notebook, a web service), and what was opened in one call (a pool of connections)
is still open in the next. Asynchronous callers need none of this: they await.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from demur.errors import LoopClosed

Result = TypeVar("Result")

_SECONDS_TO_END = 10.0
_READ_AT_ONCE = 1000
"""Prose of 1,000 characters is read within a millisecond by every relation."""
_readers = concurrent.futures.ThreadPoolExecutor(4, "demur reading")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for a coroutine; an interrupt cancels it."""
    return run_stoppable(lambda _: work, patient=False)


def run_stoppable(work: Callable[[asyncio.Event], Awaitable[Result]], *, patient: bool = True) -> Result:
    """Wait for work that can be asked to stop: the first interrupt sets its event, a second one cancels it.

    Work that ended before it could see that it was asked has not stopped; then the interrupt is the caller's.
    """
    if _thread is threading.current_thread():
        raise LoopClosed("synchronous work was started inside demur's own event loop", "await it instead")

    stop: asyncio.Event | None = None
    asked = seen = False

    async def main() -> Result:
        nonlocal stop, seen
        stop = asyncio.Event()
        result = await work(stop)
        seen = stop.is_set()
        return result

    loop = _running()
    task = asyncio.run_coroutine_threadsafe(main(), loop)
    while True:
        try:
            result = task.result()
            if asked and not seen:
                raise KeyboardInterrupt
            return result
        except concurrent.futures.CancelledError:
            raise LoopClosed(
                "the event loop was closed while work was under way",
                "what was saved is safe: run the same work again to go on",
            ) from None
        except KeyboardInterrupt:
            if not patient or stop is None or stop.is_set() or task.done():
                task.cancel()
                raise
            asked = True
            loop.call_soon_threadsafe(stop.set)


async def read_aside(characters: float, read: Callable[..., Result], *given: Any) -> Result:
    """Read texts of so many characters, in a thread unless they are short, so that other work continues meanwhile."""
    if characters <= _READ_AT_ONCE:
        return read(*given)
    return await asyncio.get_running_loop().run_in_executor(_readers, read, *given)


def close() -> None:
    """End the loop and whatever is under way in it; the next call makes a new one."""
    global _loop, _thread
    with _lock:
        loop, thread, _loop, _thread = _loop, _thread, None, None
    if loop is None or thread is None or loop.is_closed():
        return
    try:
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_SECONDS_TO_END)
    except TimeoutError:  # whatever it is in does not end; the thread ends with the process
        return
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_SECONDS_TO_END)
    loop.close()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _running() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None or _loop.is_closed() or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="demur event loop", daemon=True)
            _thread.start()
        return _loop


atexit.register(close)
