"""The work queue that sampling and scoring share: bounded, watched, stoppable, committed as results arrive.

Pieces of work are taken up by a bounded number of workers. What they emit is committed with whatever else arrived
meanwhile, in one transaction. Nothing else is kept anywhere, so interrupted work goes on by being done again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from demur.engine.progress import Progress
from demur.errors import DemurError
from demur.store.patience import Patience

Work = TypeVar("Work")
Result = TypeVar("Result")
Done = TypeVar("Done")
_WAITING = 1024
_HOPELESS = 3
_NO_MORE: Any = object()


@dataclass(frozen=True, slots=True)
class _Then:
    """What is to be done in its turn among the results."""

    act: Callable[[], None]


class WorkQueue(Generic[Work, Result]):
    """`one` does a piece of work and calls `emit` with each result; `save` commits a batch of them.

    `source` is what may have retries to tell of; `patience` is the store's, which ends when the work is to stop.
    `every` is the least time between two commits, in seconds, where what would be lost costs nothing.
    """

    def __init__(
        self,
        one: Callable[[Work], Awaitable[None]],
        save: Callable[[list[Result]], Awaitable[None]],
        progress: Progress,
        *,
        concurrency: int,
        watch: Callable[[Any], None],
        stop: asyncio.Event,
        patience: Patience,
        source: object = None,
        seconds: float | None = None,
        every: float = 0.0,
    ) -> None:
        self.one, self.save, self.progress, self.concurrency = one, save, progress, concurrency
        self.watch, self.stop, self.patience, self.source, self.every = watch, stop, patience, source, every
        self.deadline = None if seconds is None else progress.started + seconds
        self.arrived: asyncio.Queue[Result | _Then | None] = asyncio.Queue()
        self.worked = False

    def emit(self, result: Result) -> None:
        """A result, to be committed."""
        self.worked = True
        self.arrived.put_nowait(result)

    def when_saved(self, then: Callable[[], None]) -> None:
        """Do something when all that was emitted before is committed."""
        self.arrived.put_nowait(_Then(then))

    async def saved(self) -> None:
        """Until all that was emitted before is committed."""
        done = asyncio.get_running_loop().create_future()
        self.when_saved(lambda: None if done.done() else done.set_result(None))
        await done

    def fail(self, problem: str, error: DemurError) -> None:
        """A problem that is given up on. Where nothing ever worked, it is not the fault of these problems."""
        self.progress.failed.setdefault(problem, str(error))
        if not self.worked and len(self.progress.failed) >= min(_HOPELESS, self.progress.problems):
            raise error

    async def work_through(self, work: Iterable[Work]) -> None:
        """Do all of it; ends early when asked to stop, when time is up, or when a worker or the writer fails."""
        todo, progress, turn = iter(work), self.progress, asyncio.Lock()
        self.patience.renew()

        async def take() -> Work:
            async with turn:  # in a thread: what comes next may have to be read, from a database that is away
                return await asyncio.to_thread(next, todo, _NO_MORE)

        async def worker() -> None:
            while (piece := await take()) is not _NO_MORE:
                if self.stop.is_set() or (self.deadline is not None and time.monotonic() > self.deadline):
                    progress.out_of_time = not self.stop.is_set()
                    return
                while self.arrived.qsize() > _WAITING:  # the disk is slower than the model
                    await asyncio.sleep(0.01)
                await self.one(piece)

        writer = asyncio.create_task(self._write())
        workers = [asyncio.create_task(worker()) for _ in range(max(1, self.concurrency))]
        stopping, ticking = asyncio.create_task(self._stopped()), asyncio.create_task(self._tick())
        try:
            await _all_or_stop(workers, writer, stopping)
        finally:
            progress.interrupted = self.stop.is_set()
            await _cancelled(workers)
            self.arrived.put_nowait(None)
            await asyncio.wait([writer])
            await _cancelled([stopping, ticking])
            self._look()
            progress.ended = time.monotonic()
        await writer

    async def watched(self, work: Awaitable[Done]) -> Done:
        """What is done before the work itself, watched in the same way: that a server is waited for is news."""
        ticking = asyncio.create_task(self._tick())
        try:
            return await work
        finally:
            await _cancelled([ticking])
            self._look()

    async def _write(self) -> None:
        """Commit what has arrived, and whatever arrived meanwhile, until there is no more."""
        last, not_before = False, time.monotonic() + self.every
        while not last:
            batch = [await self.arrived.get()]
            while batch[-1] is not None and not (self.arrived.empty() and time.monotonic() >= not_before):
                try:
                    wait, arrived = max(0.0, not_before - time.monotonic()), self.arrived
                    batch.append(await asyncio.wait_for(arrived.get(), wait) if wait else arrived.get_nowait())
                except (TimeoutError, asyncio.QueueEmpty):
                    break
            last = batch[-1] is None
            results = [result for result in batch if result is not None and not isinstance(result, _Then)]
            if results:
                await self.save(results)
                self.watch(self.progress)
            for then in batch:
                if isinstance(then, _Then):
                    then.act()
            not_before = time.monotonic() + self.every

    async def _stopped(self) -> None:
        """Until it is asked to stop; then a database that is away is not waited for."""
        await self.stop.wait()
        self.patience.end()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._look()
            self.watch(self.progress)  # that it waits is news too

    def _look(self) -> None:
        patience, trouble = self.patience, getattr(self.source, "trouble", "")
        self.progress.retries, self.progress.database_retries = getattr(self.source, "retries", 0), patience.retries
        self.progress.trouble = patience.trouble if patience.waiting or not trouble else trouble


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _all_or_stop(
    workers: Sequence[asyncio.Task[None]], writer: asyncio.Task[None], stopping: asyncio.Task[None]
) -> None:
    """Wait for all workers; end early when asked to stop, or when the writer or a worker fails."""
    remaining: set[asyncio.Task[None]] = set(workers)
    while remaining:
        done, _ = await asyncio.wait({*remaining, writer, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if writer in done or stopping in done:
            return
        for task in remaining & done:
            task.result()
        remaining -= done
