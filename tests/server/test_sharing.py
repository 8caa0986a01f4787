"""One piece of work for all who want it at once."""

from __future__ import annotations

import asyncio

from demur.server.sharing import Sharing


def test_what_is_shared_is_begun_once_and_somebody_is_the_first_to_get_it_also_where_who_began_goes_away():
    async def run(*, leaves):
        sharing, ready = Sharing(), asyncio.Event()

        async def work():
            await ready.wait()
            return "pool"

        calls = [asyncio.ensure_future(sharing.get("question", work)) for _ in range(3)]
        await asyncio.sleep(0)
        if leaves:
            calls[0].cancel()
        await asyncio.sleep(0)
        ready.set()
        got = await asyncio.gather(*calls, return_exceptions=True)
        assert len(sharing) == 0
        return [call for call in got if not isinstance(call, asyncio.CancelledError)]

    assert asyncio.run(run(leaves=False)) == [("pool", True, True), ("pool", False, False), ("pool", False, False)]
    assert asyncio.run(run(leaves=True)) == [("pool", False, True), ("pool", False, False)]
