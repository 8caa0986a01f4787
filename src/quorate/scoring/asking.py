"""Scorers that ask a model about each path: many at once, path by path, and the rest go on when one fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorate.errors import BackendError, EndpointRefused, InvalidValue, ScoringError
from quorate.records import Pool, Problem
from quorate.scoring.protocol import CUT, EMPTY, Emit, Failed, Outcome, lowest, portions_of, score_alone, stream_of
from quorate.store import Scored, Unscored

_HOPELESS = 3
_SHORTEST = 64
_TOO_LONG = re.compile(
    r"(?i)context|too (long|many|large)|longer than|max\w*[ _](model|input|prompt|\w+)?[ _]?(len|token)"
)


@dataclass(frozen=True, slots=True)
class Item:
    """One path to ask about."""

    problem: Problem
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """What was found, and what is the matter with it, if anything."""

    value: float
    flag: str | None = None


class TooLong(Exception):
    """A path does not fit into what a model can read at once."""


def is_too_long(said: str) -> bool:
    """Whether a refusal speaks of length."""
    return bool(_TOO_LONG.search(said))


class Asking:
    """Asks about paths in portions. A subclass has `ask`; it may find out what it must know in `prepare`."""

    name: str
    normaliser: str
    concurrency = 1
    """Blocks of pools under way at once."""
    pools_at_once = 1
    """Pools to a block: more than one where a model does better with more to choose its batches from."""
    at_once = 1
    """Paths to a question."""
    needs_text = False
    """Whether a path without text has no score of its own; it then gets the lowest of its pool, flagged."""

    def __init__(self, *, too_long: str = "cut") -> None:
        if too_long not in ("cut", "refuse"):
            raise InvalidValue(f"too_long is cut (read the end of the path, flagged) or refuse, got {too_long!r}")
        self.too_long = too_long
        self._worked = False
        self._failed: set[str] = set()

    @property
    def retries(self) -> int:
        """Requests that had to be tried again."""
        return 0

    @property
    def trouble(self) -> str:
        """Why the last of them had to."""
        return ""

    def identity(self) -> dict[str, Any]:
        raise NotImplementedError

    async def prepare(self) -> None:
        """Nothing to find out."""

    async def close(self) -> None:
        """Nothing to close."""

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        """One value per item. Raises TooLong where one does not fit."""
        raise NotImplementedError

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        """Which items are asked about together."""
        return portions_of(range(len(items)), self.at_once)

    def score(self, pool: Pool) -> list[float]:
        """One number per path of one pool, from synchronous code."""
        return score_alone(self, pool)

    async def stream(self, unscored: Iterable[Unscored]) -> AsyncGenerator[list[Outcome], None]:
        blocks = portions_of(unscored, self.pools_at_once)
        async for portion in stream_of(blocks, self.concurrency, self._block):
            yield portion

    async def _block(self, block: Sequence[Unscored], emit: Emit) -> None:
        todo = [(each, path) for each in block for path in each.missing if not self._is_blank(each, path)]
        items = [Item(each.pool.problem, each.pool.paths[path].text or "") for each, path in todo]
        found: dict[int, list[float]] = {each.number: [] for each in block}
        failed: set[int] = set()

        async def portion(positions: Sequence[int]) -> None:
            try:
                values = await self._ask([items[position] for position in positions])
            except EndpointRefused:
                raise
            except (BackendError, ScoringError) as error:
                self._failed.update(items[position].problem.id for position in positions)
                if not self._worked and len(self._failed) >= _HOPELESS:
                    raise  # nothing ever worked: it is not the fault of these problems
                for each, path in (todo[position] for position in positions):
                    failed.add(each.number)
                    emit(Failed(each.number, each.pool.problem.id, f"path {path}: {error}"))
                return
            self._worked = True
            for position, value in zip(positions, values, strict=True):
                each, path = todo[position]
                found[each.number].append(value.value)
                emit(Scored(each.number, path, value.value, value.flag))

        async with asyncio.TaskGroup() as group:
            for positions in self.portions(items):
                group.create_task(portion(positions))
        for each in block:
            if each.number not in failed:
                bottom = lowest(each, self.name, found[each.number])
                for path in each.missing:
                    if self._is_blank(each, path):
                        emit(Scored(each.number, path, bottom, EMPTY))

    def _is_blank(self, each: Unscored, path: int) -> bool:
        return self.needs_text and not each.pool.paths[path].text

    async def _ask(self, items: Sequence[Item]) -> Sequence[Value]:
        """Ask; what does not fit is asked about alone, and then by its end."""
        try:
            return await self.ask(items)
        except TooLong as error:
            if len(items) > 1:
                return [value for item in items for value in await self._ask([item])]
            (item,) = items
            if self.too_long == "refuse":
                raise ScoringError(f"{error}; set too_long = cut to score the end of such paths") from None
            if len(item.text) < _SHORTEST:
                raise ScoringError(f"{error}, even without the path; its question does not fit") from None
            (value,) = await self._ask([replace(item, text=item.text[-(3 * len(item.text) // 4) :])])
            return [Value(value.value, CUT if value.flag in (None, CUT) else f"{value.flag}+{CUT}")]
