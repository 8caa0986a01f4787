"""How much is asked of models at once: a cap in paths, and how many requests may wait for their turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from demur.server.errors import busy


class FanOut:
    """At most so many paths are under way, and at most so many requests wait, first come, first served."""

    def __init__(self, most: int, most_waiting: int) -> None:
        self.most, self.most_waiting = most, most_waiting
        self.underway = 0
        self._turns: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._turns)

    @asynccontextmanager
    async def paths(self, n: int) -> AsyncIterator[None]:
        """Within, so many paths are under way; a request for more than the cap is alone."""
        n = min(n, self.most)
        await self._take(n)
        try:
            yield
        finally:
            self.underway -= n
            self._let_in()

    async def _take(self, n: int) -> None:
        if not self._turns and self.underway + n <= self.most:
            self.underway += n
            return
        if len(self._turns) >= self.most_waiting:
            raise busy(f"{len(self._turns)} requests are waiting already", 1.0, "queue_full")
        turn = asyncio.get_running_loop().create_future()
        self._turns.append((n, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # let in, and gone at the same moment
                self.underway -= n
            elif (n, turn) in self._turns:  # else it was passed over already
                self._turns.remove((n, turn))
            self._let_in()
            raise

    def _let_in(self) -> None:
        while self._turns and self.underway + self._turns[0][0] <= self.most:
            n, turn = self._turns.popleft()
            if not turn.cancelled():
                self.underway += n
                turn.set_result(None)
