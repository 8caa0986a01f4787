"""Scorers that ask a model about each path: many at once, path by path, and the rest go on when one fails."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from demur.backends.endpoint import Endpoint
from demur.errors import (
    BackendError,
    DemurError,
    EndpointRefused,
    InvalidValue,
    LogprobsMissing,
    MissingExtra,
    ScoringError,
)
from demur.records import Pool, Problem
from demur.scoring.protocol import CUT, EMPTY, Emit, Failed, Outcome, flagged, portions_of, score_alone, stream_of
from demur.store import Scored, Unscored

_HOPELESS = 3
_SHORTEST = 64
_TOO_LONG = re.compile(
    r"(?i)context (length|size|window)|max\w*[ _](context|model|input|sequence|prompt)[ _](len|tokens)"
    r"|(prompt|input|sequence|request)\b.{0,40}(too (long|large)|exceeds|longer than)|tokens.{0,40}must be <="
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


class Asking(ABC):
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
    """Whether a blank path has no score of its own; it then gets the lowest of its pool, flagged."""

    def __init__(self, *, too_long: str = "cut") -> None:
        if too_long not in ("cut", "refuse"):
            raise InvalidValue(f"too_long is cut (read the end of the path, flagged) or refuse, got {too_long!r}")
        self.too_long = too_long
        self._worked = False
        self._failed: set[str] = set()

    @abstractmethod
    def identity(self) -> dict[str, Any]: ...

    async def prepare(self) -> None:  # noqa: B027 - not every scorer has something to find out
        """Nothing to find out."""

    async def close(self) -> None:  # noqa: B027 - nor something to close
        """Nothing to close."""

    @abstractmethod
    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        """One value per item. Raises TooLong where one does not fit."""

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        """Which items are asked about together."""
        return portions_of(range(len(items)), self.at_once)

    def score(self, pool: Pool) -> list[float]:
        """One number per path of one pool, from synchronous code."""
        return score_alone(self, pool)

    async def stream(self, unscored: Iterable[Unscored]) -> AsyncGenerator[list[Outcome], None]:
        blocks = portions_of(unscored, self.pools_at_once)
        async with contextlib.aclosing(stream_of(blocks, self.concurrency, self._block)) as portions:
            async for portion in portions:
                yield portion

    async def _block(self, block: Sequence[Unscored], emit: Emit) -> None:
        """Ask about the missing paths of some pools; then give blank ones what their pools leave them."""
        todo = [(each, path) for each in block for path in each.missing if self._is_askable(each, path)]
        items = [Item(each.pool.problem, each.pool.paths[path].text or "") for each, path in todo]
        found: dict[int, list[float]] = {each.number: list(each.known.values()) for each in block}
        failed: set[int] = set()

        async def portion(positions: Sequence[int]) -> None:
            outcomes = await self._ask_each([items[position] for position in positions])
            for position, outcome in zip(positions, outcomes, strict=True):
                each, path = todo[position]
                if isinstance(outcome, Value):
                    found[each.number].append(outcome.value)
                    emit(Scored(each.number, path, outcome.value, outcome.flag))
                else:
                    failed.add(each.number)
                    emit(Failed(each.number, each.pool.problem.id, f"path {path}: {outcome}"))

        async with asyncio.TaskGroup() as group:
            for positions in self.portions(items):
                group.create_task(portion(positions))
        for each in block:
            for path in each.missing:
                text = each.pool.paths[path].text
                if text is None:
                    emit(Failed(each.number, each.pool.problem.id, f"path {path} has no text to score"))
                elif not self._is_askable(each, path) and each.number not in failed:
                    emit(Scored(each.number, path, min(found[each.number], default=0.0), EMPTY))

    def _is_askable(self, each: Unscored, path: int) -> bool:
        text = each.pool.paths[path].text
        return text is not None and not (self.needs_text and not text.strip())

    async def _ask_each(self, items: Sequence[Item]) -> Sequence[Value | DemurError]:
        """A value for each item, or why there is none. Where several fail together, each is asked about alone."""
        try:
            values = await self.ask(items)
            if not all(math.isfinite(value.value) for value in values):
                raise ScoringError("the model gave a number that is not finite")
        except (EndpointRefused, MissingExtra):
            raise
        except TooLong as error:
            return [await self._shortened(items[0], error)] if len(items) == 1 else await self._alone(items)
        except (BackendError, ScoringError, LogprobsMissing, InvalidValue) as error:
            if len(items) > 1:
                return await self._alone(items)
            self._failed.add(items[0].problem.id)
            if not self._worked and len(self._failed) >= _HOPELESS:
                # Nothing ever worked: it is not the fault of these problems.
                raise ScoringError(f"problem {items[0].problem.id!r}, like those before it: {error}") from error
            return [error]
        self._worked = True
        return values

    async def _alone(self, items: Sequence[Item]) -> list[Value | DemurError]:
        return [outcome for item in items for outcome in await self._ask_each([item])]

    async def _shortened(self, item: Item, error: TooLong) -> Value | DemurError:
        """The value of a path's end, flagged, as far as it fits."""
        if self.too_long == "refuse":
            return ScoringError(f"{error}; set too_long = cut to score the end of such paths")
        if len(item.text) < _SHORTEST:
            return ScoringError(f"{error}, even without the path; its question does not fit")
        (outcome,) = await self._ask_each([replace(item, text=item.text[-(3 * len(item.text) // 4) :])])
        return Value(outcome.value, flagged(outcome.flag, CUT)) if isinstance(outcome, Value) else outcome


class OnServer(Asking):
    """Asks a server."""

    endpoint: Endpoint

    @property
    def retries(self) -> int:
        """Requests that had to be tried again."""
        return self.endpoint.retries

    @property
    def trouble(self) -> str:
        """Why the last of them had to."""
        return self.endpoint.trouble

    async def close(self) -> None:
        await self.endpoint.close()
