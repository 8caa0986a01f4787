"""One piece of work for all who want it at once; it goes on as long as one of them waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


@dataclass
class _Underway(Generic[Result]):
    task: asyncio.Task[Result]
    waiting: int = 0
    given: bool = False


class Sharing(Generic[Result]):
    """Work by what it is known by."""

    def __init__(self) -> None:
        self._underway: dict[Hashable, _Underway[Result]] = {}

    def __len__(self) -> int:
        return len(self._underway)

    async def get(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Result]]) -> tuple[Result, bool, bool]:
        """What the work gives, whether it was begun for this call, and whether this call is the first to get it.

        Who began it may have gone away by then.
        """
        begun = key not in self._underway
        if begun:
            self._underway[key] = _Underway(asyncio.create_task(work()))
        underway = self._underway[key]
        underway.waiting += 1
        try:
            result = await asyncio.shield(underway.task)
            first, underway.given = not underway.given, True
            return result, begun, first
        finally:
            underway.waiting -= 1
            if underway.task.done() or not underway.waiting:
                if self._underway.get(key) is underway:
                    del self._underway[key]
                underway.task.cancel()
