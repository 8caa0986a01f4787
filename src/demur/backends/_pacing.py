"""How many requests may be under way at once: fewer when the server says it is too much, more again as it recovers."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque

CHANCE = random.Random()
"""Of its own: a program's seeded `random` is not drawn from behind its back."""
_LONGEST_HOLD = 20.0


class Pace:
    """A bounded, adaptive number of slots. Halves when the server pushes back, grows by one per round of successes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._not_before = 0.0
        self._last_cut = 0.0
        self._refusals = 0

    async def __aenter__(self) -> None:
        if self._waiting or self._busy >= int(self.limit):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn  # a slot is handed over with it
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    await self.__aexit__()
                raise
        else:
            self._busy += 1
        wait = self._not_before - time.monotonic()
        if wait > 0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                await self.__aexit__()
                raise

    async def __aexit__(self, *_: object) -> None:
        self._busy -= 1
        self._wake()

    def succeeded(self) -> None:
        self._refusals = 0
        self.limit = min(float(self.most), self.limit + 1 / max(self.limit, 1.0))

    def pushed_back(self, retry_after: float) -> None:
        """The server asked for less: halve, once per wave of refusals, and hold off as long as it said, or longer
        each time it says nothing."""
        now = time.monotonic()
        if now - self._last_cut > 1.0:
            self.limit, self._last_cut = max(1.0, self.limit / 2), now
            self._refusals += 1
        hold = retry_after or min(_LONGEST_HOLD, 0.25 * 2**self._refusals)
        self._not_before = max(self._not_before, now + hold * CHANCE.uniform(1.0, 1.1))

    def _wake(self) -> None:
        while self._waiting and self._busy < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)
