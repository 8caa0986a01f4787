"""Paths that came and whose answers are not read yet: kept in the run, and read first when sampling goes on.

A function of the user's may hang for ever, and hold the whole process: what it reads is kept before. What demur reads
itself is kept only if that takes long or fails, because nearly all of it is read at once.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from demur import event_loop
from demur.backends.protocol import Completion
from demur.engine.sharing import asked_of
from demur.records import Path, Problem
from demur.store import Pending, PlacedPath, Run
from demur.store.rows import PATH_FACTS

_SECONDS = 0.5


class Unread:
    """Reads what comes for a run; `first` keeps it before that."""

    def __init__(self, run: Run, read: Callable[[Problem, Completion], Path], *, first: bool) -> None:
        self._run, self._read, self._first = run, read, first
        self._has_kept = False

    async def read(self, lacking: Pending, came: Sequence[Completion]) -> list[Path]:
        """Completions as paths; they are kept if that takes long, fails or is cancelled."""
        if kept := self._first:
            await self._keep(lacking, came)
        length = math.inf if self._first else sum(len(completion.text) for completion in came)
        reading = asyncio.ensure_future(
            event_loop.read_aside(length, lambda: [self._read(lacking.problem, completion) for completion in came])
        )
        try:
            await asyncio.wait([reading], timeout=_SECONDS)
            if not (reading.done() or kept):
                await self._keep(lacking, came)
                kept = True
            return await reading
        except BaseException:
            if not kept:
                await self._keep(lacking, came)
            raise

    async def read_what_was_kept(self, stop: asyncio.Event) -> None:
        """Make paths of what an earlier command could not read."""
        for number, problem, place, text, facts in await asked_of(self._run, stop, self._run.unread):
            self._has_kept = True
            ended, others = facts.get("finish_reason"), (facts.get(name) for name in ("seed", "latency", "n_tokens"))
            completion = Completion(place, text, ended, None, *others)
            path = await event_loop.read_aside(math.inf, self._read, problem, completion)
            placed = PlacedPath(number, place, replace(path, extra={**facts, **path.extra}))
            await asyncio.to_thread(self._run.save, [placed])
        await self.forget_read()

    async def forget_read(self) -> None:
        """Keep no longer what is saved as a path."""
        if self._has_kept:
            await asyncio.to_thread(self._run.forget_read)

    async def _keep(self, lacking: Pending, came: Sequence[Completion]) -> None:
        self._has_kept = True
        facts = {drawn.path: {name: getattr(drawn, name) for name in PATH_FACTS} for drawn in came}
        kept = {
            drawn.path: (drawn.text, {name: one for name, one in facts[drawn.path].items() if one is not None})
            for drawn in came
            if drawn.path not in lacking.again
        }
        await asyncio.to_thread(self._run.keep_unread, lacking.number, kept)
