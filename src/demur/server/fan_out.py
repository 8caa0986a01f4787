"""How much is asked of models at once: a cap in paths, and how many requests may wait for their turn.

Who cannot be served in time is turned away at once. That is known from how long pools took lately, or take now:
a request waits until the paths ahead of it, and its own, have had room, and takes as long as a pool itself then.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from demur.server.errors import ApiError, busy

_NEWEST = 0.3
"""The weight of the newest pool in how long pools take."""


@dataclass(frozen=True)
class _Turn:
    """A request that waits."""

    n: int
    until: float
    let_in: asyncio.Future[None]


class FanOut:
    """At most so many paths are under way, and at most so many requests wait, first come, first served."""

    def __init__(self, most: int, most_waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.most_waiting, self._clock = most, most_waiting, clock
        self.underway = 0
        self._turns: deque[_Turn] = deque()
        self._began: dict[_Taken, float] = {}
        self._usual = 0.0

    @property
    def waiting(self) -> int:
        return len(self._turns)

    def paths(self, n: int, seconds: float = math.inf) -> _Taken:
        """Within, so many paths are under way; a request for more than the cap is alone.

        `seconds` is how long it may wait for its turn and for its paths together.
        """
        return _Taken(self, min(n, self.most), self._clock() + seconds)

    def began(self, taken: _Taken) -> None:
        """A pool is asked for from now on."""
        self._began[taken] = self._clock()

    def ended(self, taken: _Taken) -> None:
        """A pool has come, or has failed."""
        took = self._clock() - self._began.pop(taken)
        self._usual = took if not self._usual else (1 - _NEWEST) * self._usual + _NEWEST * took
        self.underway -= taken.n
        self._turn_away()
        self._let_in()

    async def take(self, n: int, until: float) -> None:
        """Wait until there is room for so many paths; raises where too many wait already, or it would be too late."""
        if not self._turns and self.underway + n <= self.most:
            self.underway += n
            return
        if len(self._turns) >= self.most_waiting:
            raise busy(f"{len(self._turns)} requests are waiting already", 1.0, "queue_full")
        turn = _Turn(n, until, asyncio.get_running_loop().create_future())
        self._turns.append(turn)
        self._turn_away()
        try:
            await turn.let_in
        except asyncio.CancelledError:
            if turn in self._turns:
                self._turns.remove(turn)
            elif turn.let_in.done() and not turn.let_in.cancelled() and turn.let_in.exception() is None:
                self.underway -= n  # let in, and gone at the same moment
            self._let_in()
            raise

    def _turn_away(self) -> None:
        """Refuse who came last as long as their paths would come too late."""
        while self._turns and (late := self._late(self._turns[-1].until)) > 0:
            turn = self._turns.pop()
            if not turn.let_in.done():
                turn.let_in.set_exception(late_turn(late))

    def _late(self, until: float) -> float:
        """Seconds by which the paths of who came last would come too late; 0 where they come in time."""
        now = self._clock()
        ages = [now - began for began in self._began.values()]
        takes = max(self._usual, sum(ages) / max(1, len(ages)))  # the mean: one that hangs tells little of the others
        ahead = self.underway + sum(turn.n for turn in self._turns) - self.most
        return max(0.0, now + takes * (ahead / self.most + 1) - until)

    def _let_in(self) -> None:
        while self._turns and self.underway + self._turns[0].n <= self.most:
            turn = self._turns.popleft()
            if not turn.let_in.cancelled():
                self.underway += turn.n
                turn.let_in.set_result(None)


def late_turn(seconds: float) -> ApiError:
    """That a request cannot be served in the time that it has."""
    return busy("as many requests wait as can be served in time", seconds, "queue_too_long")


class _Taken:
    """Room for so many paths, from when it is there to the end of a block."""

    def __init__(self, fan_out: FanOut, n: int, until: float) -> None:
        self.fan_out, self.n, self.until = fan_out, n, until

    async def __aenter__(self) -> None:
        await self.fan_out.take(self.n, self.until)
        self.fan_out.began(self)

    async def __aexit__(self, *_: object) -> None:
        self.fan_out.ended(self)
