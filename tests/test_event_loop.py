"""The bridge from synchronous code: in any thread, inside a running loop, and honest when the loop ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from demur import event_loop
from demur.errors import LoopClosed


async def double(value):
    await asyncio.sleep(0)
    return 2 * value


def test_it_waits_for_a_coroutine_and_raises_what_it_raises():
    assert event_loop.run(double(3)) == 6

    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        event_loop.run(fail())


def test_it_works_inside_a_running_loop_and_from_many_threads():
    async def main():
        return event_loop.run(double(4))

    assert asyncio.run(main()) == 8
    results = []
    threads = [threading.Thread(target=lambda n=n: results.append(event_loop.run(double(n)))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(results) == [2 * n for n in range(20)]


def test_all_calls_share_one_loop():
    async def loop():
        return asyncio.get_running_loop()

    assert event_loop.run(loop()) is event_loop.run(loop())


def test_a_loop_that_is_closed_while_work_is_under_way_says_so_and_the_next_call_has_a_new_one():
    async def work():
        threading.Thread(target=event_loop.close).start()
        await asyncio.sleep(60)

    with pytest.raises(LoopClosed, match="closed while work was under way; what was saved is safe"):
        event_loop.run(work())
    assert event_loop.run(double(1)) == 2


def test_waiting_inside_its_own_loop_is_refused_rather_than_hanging():
    async def wrong():
        coroutine = double(1)
        try:
            event_loop.run(coroutine)
        finally:
            coroutine.close()

    with pytest.raises(LoopClosed, match="inside demur's own event loop; await it"):
        event_loop.run(wrong())


def interrupt(after=0.1):
    """To be called by the work itself: before it is begun, nobody waits for it."""
    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_the_first_interrupt_asks_to_stop_and_the_second_does_not_ask():
    async def polite(stop):
        interrupt()
        await stop.wait()
        return "saved"

    assert event_loop.run_stoppable(polite) == "saved"
    slept = []

    async def stubborn(stop):
        interrupt()
        await stop.wait()
        interrupt()
        await asyncio.sleep(60)
        slept.append(True)

    with pytest.raises(KeyboardInterrupt):
        event_loop.run_stoppable(stubborn)
    assert slept == []


def test_an_interrupt_that_work_was_too_fast_to_see_is_not_lost():
    """Else what comes behind that work would be begun, though somebody wanted an end."""

    async def ends_as_it_is_asked(stop):
        signal.raise_signal(signal.SIGINT)  # in another thread: the one that waits is told as soon as it wakes
        return "done"

    def ask():
        event_loop.run_stoppable(ends_as_it_is_asked)
        time.sleep(5)  # where it is told only now

    with pytest.raises(KeyboardInterrupt):
        ask()
    assert event_loop.run(double(2)) == 4


def test_an_interrupt_cancels_work_that_cannot_be_asked():
    cancelled = threading.Event()

    async def work():
        interrupt()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        event_loop.run(work())
    assert cancelled.wait(300)
