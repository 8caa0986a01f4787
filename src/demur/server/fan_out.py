"""How much is asked of models at once: a cap in paths, and how many requests may wait for their turn."""

from __future__ import annotations

import asyncio
from collections import deque

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

    def paths(self, n: int) -> _Taken:
        """Within, so many paths are under way; a request for more than the cap is alone."""
        return _Taken(self, min(n, self.most))

    def give_back(self, n: int) -> None:
        """So many paths are done."""
        self.underway -= n
        self._let_in()

    async def take(self, n: int) -> None:
        """Wait until there is room for so many paths; raises where too many wait already."""
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


class _Taken:
    """Room for so many paths, from when it is there to the end of a block."""

    def __init__(self, fan_out: FanOut, n: int) -> None:
        self.fan_out, self.n = fan_out, n

    async def __aenter__(self) -> None:
        await self.fan_out.take(self.n)

    async def __aexit__(self, *_: object) -> None:
        self.fan_out.give_back(self.n)
