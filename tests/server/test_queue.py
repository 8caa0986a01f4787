"""Requests that wait for their turn: whoever cannot be served in time is turned away at once, and nobody else."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from asked_over_http import chat, logged_app, post, told
from demur.server.errors import ApiError
from demur.server.fan_out import FanOut
from demur.store.service import ServiceStore
from loopback import when
from patience import wait_until
from serving import listening, made_app, service_of


class Queue:
    """A fan-out of ten paths whose clock stands until it is told to go on."""

    def __init__(self, most=10):
        self.now, self.refused, self.let_in = 0.0, [], []
        self.fan_out = FanOut(most, 100, clock=lambda: self.now)

    async def ask(self, name, n=5, seconds=6.0):
        """A pool that is held until its event is set."""
        held = asyncio.Event()

        async def work():
            try:
                async with self.fan_out.paths(n, seconds):
                    self.let_in.append(name)
                    await held.wait()
            except ApiError as error:
                self.refused.append((name, error))

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        return held, task

    async def settle(self):
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self, *asked):
        for held, _ in asked:
            held.set()
        await asyncio.gather(*(task for _, task in asked))
        await self.settle()


def test_who_cannot_be_served_in_time_is_turned_away_on_arrival():
    async def work():
        queue = Queue()
        first = await queue.ask("a"), await queue.ask("b")
        queue.now = 4.0  # a pool takes four seconds
        await queue.end(*first)
        underway = await queue.ask("c"), await queue.ask("d")
        waiting = await queue.ask("e")  # half a turn and its own pool: six seconds, which it has
        await queue.ask("f")  # a whole turn and its own pool: eight
        ((name, error),) = queue.refused
        assert (name, error.status, error.code) == ("f", 429, "queue_too_long")
        assert 2 <= int(error.headers["Retry-After"]) <= 3
        assert queue.fan_out.waiting == 1
        await queue.ask("g", seconds=8.0)
        assert (len(queue.refused), queue.fan_out.waiting) == (1, 2)
        await queue.end(*underway)
        assert queue.let_in == ["a", "b", "c", "d", "e", "g"]
        await queue.end(waiting)
        assert queue.fan_out.waiting == 0

    asyncio.run(work())


def test_of_a_crowd_at_the_start_those_are_turned_away_who_turn_out_to_be_too_many():
    """Nobody knows how long pools take before one has come, or is late."""

    async def work():
        queue = Queue()
        asked = [await queue.ask(k, seconds=9.0) for k in range(8)]
        assert queue.refused == []
        queue.now = 3.0
        await queue.end(asked[0])  # three seconds a turn: of the six that are left, one turn may be waited for
        assert [name for name, _ in queue.refused] == [7, 6, 5]
        assert queue.let_in == [0, 1, 2]
        await queue.end(*asked[1:5])
        assert queue.let_in == [0, 1, 2, 3, 4]
        assert (queue.fan_out.underway, queue.fan_out.waiting) == (0, 0)

    asyncio.run(work())


def test_pools_that_do_not_end_tell_how_long_pools_take():
    async def work():
        queue = Queue()
        await queue.ask("a")
        await queue.ask("b")
        queue.now = 5.0  # and neither has come
        await queue.ask("c")
        assert [name for name, _ in queue.refused] == ["c"]
        assert queue.fan_out.waiting == 0

    asyncio.run(work())


def test_where_there_is_room_nobody_is_turned_away_however_slow_pools_are():
    async def work():
        queue = Queue()
        slow = await queue.ask("a")
        queue.now = 100.0
        await queue.end(slow)
        await queue.ask("b", seconds=1.0)
        assert (queue.let_in, queue.refused) == (["a", "b"], [])

    asyncio.run(work())


def test_pools_that_have_become_quick_let_requests_wait_again():
    async def work():
        queue = Queue()
        slow = await queue.ask("a")
        queue.now = 100.0
        await queue.end(slow)
        for _ in range(20):
            quick = await queue.ask("quick")
            queue.now += 0.1
            await queue.end(quick)
        await queue.ask("b")
        await queue.ask("c")
        await queue.ask("d")
        assert (queue.refused, queue.fan_out.waiting) == ([], 1)

    asyncio.run(work())


def test_who_is_let_in_and_gone_at_the_same_moment_keeps_no_room():
    async def work():
        queue = Queue(most=5)
        first = queue.fan_out.paths(5)
        await first.__aenter__()
        _, leaving = await queue.ask("b")
        await first.__aexit__()  # lets the next one in, which has not heard of that yet
        assert queue.fan_out.underway == 5
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert (queue.fan_out.underway, queue.fan_out.waiting, queue.let_in) == (0, 0, [])
        last = await queue.ask("c")
        assert queue.let_in == ["c"]
        await queue.end(last)

    asyncio.run(work())


def test_who_is_turned_away_and_gone_at_the_same_moment_gives_nothing_back():
    async def work():
        queue = Queue(most=5)
        first = queue.fan_out.paths(5)
        await first.__aenter__()
        second = await queue.ask("b", seconds=60.0)
        _, leaving = await queue.ask("c")
        queue.now = 5.0
        await first.__aexit__()  # b is let in, and c is turned away
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await queue.settle()
        assert (queue.let_in, queue.fan_out.underway, queue.fan_out.waiting) == (["b"], 5, 0)
        await queue.end(second)
        assert queue.fan_out.underway == 0

    asyncio.run(work())


def test_a_request_whose_time_runs_out_in_the_queue_is_told_to_come_back_and_is_no_abstention(
    upstream, sums_policy, tmp_path
):
    gone_on = []
    upstream.behave = when(lambda: gone_on)
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        app = logged_app(upstream.url, sums_policy, store, fan_out=5, seconds=1.0)
        with listening(app) as address, ThreadPoolExecutor(2) as many:
            first = many.submit(post, address, chat("What is 2 + 1?"))
            wait_until(lambda: app.state.service.fan_out.underway == 5)
            status, error = told(post(address, chat("What is 4 + 1?")))
            assert (status, error["code"], error["type"]) == (429, "queue_too_long", "rate_limit_error")
            assert first.result().json()["demur"]["cause"] == "too_slow"
            gone_on.append(True)
        assert store.decisions.tally(policy=1, since=0, until=2**52).failed == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_full_queue_has_a_status_of_its_own_streamed_or_not(upstream, sums_policy, stream):
    service = service_of(upstream.url, sums_policy)
    service.fan_out.most_waiting, service.fan_out.underway = 0, service.fan_out.most
    with listening(made_app(service)) as address:
        reply = post(address, chat(stream=stream))
    assert (reply.status_code, reply.json()["error"]["code"]) == (429, "queue_full")
    assert int(reply.headers["retry-after"]) >= 1
