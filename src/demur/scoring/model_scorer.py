"""Scorers that ask a model about each path: many at once, path by path, and the rest go on when one fails."""

from __future__ import annotations

import asyncio
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from demur import event_loop
from demur.backends.endpoint import Endpoint, UsesEndpoint
from demur.errors import (
    BackendError,
    DemurError,
    EndpointRefused,
    InvalidValue,
    LogprobsMissing,
    MissingExtra,
    ScoringError,
)
from demur.records import Pool, Problem, blinded
from demur.scoring.protocol import CUT, EMPTY, Emit, Failed, Outcome, flagged
from demur.store import PathScore, Unscored

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
    """A path's number, and what is the matter with it, if anything."""

    value: float
    flag: str | None = None


class TooLong(Exception):
    """A path does not fit into what a model can read at once."""


def is_too_long(said: str) -> bool:
    return bool(_TOO_LONG.search(said))


def refusal(error: Exception) -> TooLong | BackendError:
    """What a refusal is told as: a path that is too long, or a request that is not taken."""
    return (TooLong if is_too_long(str(error)) else BackendError)(str(error))


class ModelScorer(ABC):
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

    @abstractmethod
    def identity(self) -> dict[str, Any]: ...

    def stays(self, pool: Pool) -> bool:
        """Whether each path has its own score, whatever others there are; a blank one may have the lowest of all."""
        return not self.needs_text or all(path.text is not None and path.text.strip() for path in pool.paths)

    async def prepare(self) -> None:  # noqa: B027 - not every scorer has something to find out
        """Find out what must be known before `identity` can be told: what a server can do, say."""

    async def close(self) -> None:  # noqa: B027 - nor something to close
        """Let go of what was opened."""

    @abstractmethod
    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        """One value per item. Raises TooLong where one does not fit."""

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        """Which items are asked about together."""
        return [range(start, min(start + self.at_once, len(items))) for start in range(0, len(items), self.at_once)]

    def score(self, pool: Pool) -> list[float]:
        """One number per path of one pool, from synchronous code."""

        async def main() -> list[float]:
            try:
                await self.prepare()
                return await self.score_pool(pool)
            finally:
                await self.close()

        return event_loop.run(main())

    async def score_pool(self, pool: Pool) -> list[float]:
        """One number per path of one pool, which must have all of them, or there are none."""
        values: dict[int, float] = {}

        def take(outcome: Outcome) -> None:
            if isinstance(outcome, Failed):
                raise ScoringError(outcome.error.message, outcome.error.remedy)
            values[outcome.path] = outcome.value

        await self.score_block([Unscored(0, blinded(pool), tuple(range(len(pool.paths))))], take)
        return [values[path] for path in sorted(values)]

    async def score_block(self, block: Sequence[Unscored], emit: Emit) -> None:
        """Ask about the missing paths of some pools; then give blank ones what their pools leave them."""
        todo = [(pool, path) for pool in block for path in pool.missing if self._is_askable(pool, path)]
        items = [Item(unscored.pool.problem, unscored.pool.paths[path].text or "") for unscored, path in todo]
        values: dict[int, list[float]] = {unscored.number: list(unscored.known.values()) for unscored in block}
        failed: set[int] = set()

        async def portion(positions: Sequence[int]) -> None:
            outcomes = await self._ask_each([items[position] for position in positions])
            for position, outcome in zip(positions, outcomes, strict=True):
                unscored, path = todo[position]
                if isinstance(outcome, Value):
                    values[unscored.number].append(outcome.value)
                    emit(PathScore(unscored.number, path, outcome.value, outcome.flag))
                else:
                    failed.add(unscored.number)
                    outcome.message = f"path {path}: {outcome.message}"
                    emit(Failed(unscored.number, unscored.pool.problem.id, outcome))

        try:
            async with asyncio.TaskGroup() as group:
                for positions in self.portions(items):
                    group.create_task(portion(positions))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        for unscored in block:
            for path in unscored.missing:
                if unscored.pool.paths[path].text is None:
                    missing = ScoringError(f"path {path} has no text to score")
                    emit(Failed(unscored.number, unscored.pool.problem.id, missing))
                elif not self._is_askable(unscored, path) and unscored.number not in failed:
                    emit(PathScore(unscored.number, path, min(values[unscored.number], default=0.0), EMPTY))

    def _is_askable(self, unscored: Unscored, path: int) -> bool:
        text = unscored.pool.paths[path].text
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
            return await self._alone(items) if len(items) > 1 else [error]
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


class DescribedScorer(ModelScorer):
    """One whose identity tells of the model and of the way it is asked."""

    @abstractmethod
    def describe_model(self) -> dict[str, Any]: ...


class ServerScorer(UsesEndpoint, DescribedScorer):
    """Asks a server. What else it is made with (`asked`, `how`) is for the family of scores that stands beside it."""

    def __init__(
        self, endpoint: Endpoint, model: str, *asked: Any, route: str | None = None, concurrency: int = 32, **how: Any
    ) -> None:
        super().__init__(*asked, **how)
        self.endpoint, self.model, self.route, self.concurrency = endpoint, model, route, concurrency

    def describe_model(self) -> dict[str, Any]:
        return {"backend": "server", "model": self.model, "route": self.route}


class InProcessScorer(DescribedScorer):
    """Asks a model in this process, in the one thread that the model has."""

    way: ClassVar[Mapping[str, str]]
    """How the model is asked, as an identity has it."""

    def __init__(self, model: Any, *asked: Any, **how: Any) -> None:
        super().__init__(*asked, **how)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), **self.way}

    async def _run(self, work: Callable[..., Any], *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.model.thread, work, *given)


def _first(error: BaseException) -> BaseException:
    """What went wrong first in a group of tasks."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
