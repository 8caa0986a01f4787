"""Work that several processes share: pieces are claimed some at a time, and what others do is left to them.

Blocks are as large as keeps a process busy for some seconds, so that a database is asked seldom, and never more than a
share of what is left, so that all end together. At the end each waits for the others, and takes over from those of
which nothing is seen any more: whoever says that the work is done has seen that it is. What is reserved of a budget and
then not needed comes back, so a budget ends the work only where nothing can come back any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Generic, TypeVar

from demur.engine.progress import Progress
from demur.errors import StoreError
from demur.store import Run, Worker
from demur.store.shared_work import LEASE_SECONDS
from demur.store.worker import Claimed

Piece = TypeVar("Piece")
Work = TypeVar("Work")
Done = TypeVar("Done")
_SECONDS_AT_ONCE = 5.0
"""How long a block should keep its process busy."""
_MOST_AT_ONCE = 1024
_WINDOW = 4
"""Blocks that are looked at for one that nobody has."""
_PAUSE = 0.5
_RENEWALS = 4
"""In the time after which others would take over."""


async def asked_of(run: Run, stop: asyncio.Event, work: Callable[[], Done]) -> Done:
    """What a run says. A database that is away is waited for no longer than until it is asked to stop."""

    async def stopped() -> None:
        await stop.wait()
        run.patience.end()

    run.patience.renew()
    stopping = asyncio.create_task(stopped())
    try:
        return await asyncio.to_thread(work)
    finally:
        stopping.cancel()


@asynccontextmanager
async def working(
    run: Run, task: str, concurrency: int, stop: asyncio.Event, lease: float = LEASE_SECONDS
) -> AsyncIterator[Worker]:
    """This process at a task of a run, seen by all others as long as the block lasts."""
    worker = await asked_of(run, stop, lambda: run.at_work(task, concurrency, lease))
    seen = asyncio.create_task(_renewed(worker))
    try:
        yield worker
    finally:
        seen.cancel()
        await asyncio.gather(seen, return_exceptions=True)
        await asyncio.to_thread(worker.end)


async def _renewed(worker: Worker) -> None:
    while True:
        await asyncio.sleep(worker.lease / _RENEWALS)
        with contextlib.suppress(StoreError):  # whoever saves next has the same trouble, and tells it
            await asyncio.to_thread(worker.renew)


class SharedWork(Generic[Piece]):
    """What a task of a run lacks, by the number of its problem: it becomes this process's some problems at a time.

    `size` says how many paths a piece lacks. `read` gives the pieces of some problems as they are now, without those
    that lack nothing any more, and `done_between` the problems of a stretch that lack nothing. `by_others` is what had
    come to others before the pieces were read: as long as that is so, they are as they were. `least` problems are
    claimed at once, or more. `deadline` is when waiting ends, by the monotonic clock. `unwanted` says how many paths of
    a problem that lacks nothing were never drawn, where a rule may end it before; None where all are drawn.
    """

    def __init__(
        self,
        worker: Worker,
        pieces: Mapping[int, Piece],
        size: Callable[[Piece], int],
        read: Callable[[Collection[int]], Mapping[int, Piece]],
        done_between: Callable[[int, int], Collection[int]],
        progress: Progress,
        stop: asyncio.Event,
        *,
        by_others: int,
        least: int,
        deadline: float | None = None,
        unwanted: Callable[[int], int] | None = None,
    ) -> None:
        self.worker, self.size, self.read, self.done_between = worker, size, read, done_between
        self.progress, self.stop, self.least = progress, stop, least
        self.by_others, self.deadline, self.unwanted = by_others, deadline, unwanted
        self._todo = dict(pieces)
        self._sizes = {number: size(piece) for number, piece in pieces.items()}
        self._ended, self._began = 0, time.monotonic()
        self._some_ended = threading.Event()

    def works(self, parts: Callable[[Mapping[int, Piece]], Iterator[tuple[Sequence[int], Work]]]) -> Iterator[Work]:
        """Each part of the pieces that this process claims; waits for what others do. Runs in threads, one at a time.

        `parts` makes of some pieces what is to be done, and says of which problems each part is.
        """
        while self._todo and not self._is_over:
            self._some_ended.clear()
            block = self.worker.claim(self._sizes, self._at_once, len(self._sizes))
            pieces = {number: self._taken(number) for number in block.numbers}
            if block.by_others != self.by_others:
                pieces = self._as_they_are_now(pieces)
            if pieces:
                yield from self._parts(pieces, parts, block.seconds_left)
            elif not block.numbers and self._todo:
                if not block.refusal:
                    self._wait_for(block.others)
                elif coming_back := self._may_come_back(block):
                    self._wait_for_budget(coming_back)
                else:
                    self.progress.budget = block.refusal
                    break
        self.progress.waiting = ""

    def ended(self, numbers: Sequence[int]) -> None:
        """Whatever comes of these problems is saved."""
        self._ended += len(numbers)
        self.worker.done(numbers)
        self._some_ended.set()

    @property
    def _is_over(self) -> bool:
        """Whether nobody wants any more of it."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        self.progress.out_of_time |= late
        return late or self.stop.is_set() or self.worker.has_ended

    @property
    def _at_once(self) -> int:
        rate = self._ended / max(time.monotonic() - self._began, 1e-9)
        return max(self.least, min(int(rate * _SECONDS_AT_ONCE), _MOST_AT_ONCE))

    def _taken(self, number: int) -> Piece:
        del self._sizes[number]
        return self._todo.pop(number)

    def _as_they_are_now(self, pieces: Mapping[int, Piece]) -> dict[int, Piece]:
        """Some pieces without what others did meanwhile; nor is what they did any longer to do."""
        now = dict(self.read(list(pieces))) if pieces else {}
        for number, piece in pieces.items():
            if number in now:
                self.progress.by_others += max(0, self.size(piece) - self.size(now[number]))
            else:
                self._done_by_others(number, piece)
        self.worker.done(pieces.keys() - now.keys())
        if stretch := list(islice(self._todo, _WINDOW * self._at_once)):
            for number in set(self.done_between(min(stretch), max(stretch))) & self._todo.keys():
                self._done_by_others(number, self._taken(number))
        return now

    def _done_by_others(self, number: int, piece: Piece) -> None:
        unwanted = 0 if self.unwanted is None else min(self.unwanted(number), self.size(piece))
        self.progress.wanted -= unwanted
        self.progress.by_others += self.size(piece) - unwanted

    def _parts(
        self,
        pieces: Mapping[int, Piece],
        parts: Callable[[Mapping[int, Piece]], Iterator[tuple[Sequence[int], Work]]],
        seconds: float | None,
    ) -> Iterator[Work]:
        """The parts of some pieces, until the claim on them is lost or the seconds of the budget are spent."""
        self.progress.waiting = ""
        until, lost = time.monotonic() + (seconds or 0.0), self.worker.lost
        begun: set[int] = set()
        for numbers, part in parts(pieces):
            if self.worker.lost > lost or (seconds is not None and time.monotonic() > until):
                break
            begun.update(numbers)
            yield part
        back = {number: piece for number, piece in pieces.items() if number not in begun}
        self.worker.done(back.keys())
        self._todo |= back
        self._sizes |= {number: self.size(piece) for number, piece in back.items()}

    def _may_come_back(self, block: Claimed) -> int:
        """Paths that are reserved of a budget and may not be drawn. Time that is spent is not waited for.

        Without a rule, others draw all that they reserve, unless something fails; what is reserved here is drawn before
        this process ends, whatever it does.
        """
        if block.seconds_left == 0:
            return 0
        return block.reserved + (0 if self.unwanted is None else block.reserved_by_others)

    def _wait_for_budget(self, reserved: int) -> None:
        """The rest of a budget is reserved: until a problem of this process has ended, or a while."""
        told = f"the budget has no room but the {reserved} paths that are reserved for problems under way"
        self.progress.waiting = f"waiting: {told}"
        until = time.monotonic() + _PAUSE
        while time.monotonic() < until and not self._is_over and not self._some_ended.wait(0.05):
            pass

    def _wait_for(self, others: Sequence[str]) -> None:
        """Others have all that is left: a while, and the reason."""
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        self.progress.waiting = f"waiting for {named or 'others'}, who are at the last {len(self._todo)} problems"
        until = time.monotonic() + _PAUSE
        while time.monotonic() < until and not self._is_over:
            time.sleep(0.05)
