"""What a scorer is: a whole pool in, one finite number per path out, more being better. None of them ever sees gold."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar, runtime_checkable

from demur.errors import ScoringError
from demur.records import Pool, blinded
from demur.store import Scored, Unscored

FLOOR = "floor"
"""The value is an upper bound: the number itself was too small to be told."""
CUT = "cut"
"""The path was longer than the scorer can read; it read the end of it."""
EMPTY = "empty"
"""The path says nothing."""


def flagged(*flags: str | None) -> str | None:
    """Several flags as one."""
    return "+".join(sorted({each for flag in flags if flag for each in flag.split("+")})) or None


@runtime_checkable
class Scorer(Protocol):
    """Scores a pool at a time."""

    name: str
    normaliser: str
    """The normaliser its numbers are voted with unless another is asked for."""

    def identity(self) -> dict[str, Any]:
        """All that decides its numbers: enters the run, the fingerprint and the policy."""
        ...

    def score(self, pool: Pool) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Failed:
    """A path that could not be scored, and why."""

    number: int
    problem: str
    reason: str


Outcome = Scored | Failed


@runtime_checkable
class StreamScorer(Scorer, Protocol):
    """A scorer that gains by having many pools under way at once, and tells of each path as it is done."""

    async def prepare(self) -> None:
        """Find out what must be known before `identity` can be told: what a server can do, say."""
        ...

    def stream(self, unscored: Iterable[Unscored]) -> AsyncGenerator[list[Outcome], None]:
        """Outcomes of the missing paths, in whatever portions they arrive."""
        ...

    async def close(self) -> None: ...


def score_alone(scorer: StreamScorer, pool: Pool) -> list[float]:
    """One pool through a scorer that streams. The pool must have all its scores, or there are none."""

    async def main() -> list[float]:
        found: dict[int, float] = {}
        try:
            await scorer.prepare()
            whole = Unscored(0, blinded(pool), tuple(range(len(pool.paths))))
            async with contextlib.aclosing(scorer.stream([whole])) as portions:
                async for portion in portions:
                    for outcome in portion:
                        if isinstance(outcome, Failed):
                            raise ScoringError(outcome.reason)
                        found[outcome.path] = outcome.value
        finally:
            await scorer.close()
        return [found[path] for path in sorted(found)]

    return asyncio.run(main())


def checked(values: Sequence[float], pool: Pool, scorer: str) -> list[float]:
    """A pool's numbers, or an error that says which is none."""
    try:
        numbers = list(values)
    except TypeError:
        raise ScoringError(f"the scorer {scorer!r} gave {values!r:.40}; it must give one number per path") from None
    if len(numbers) != len(pool.paths):
        raise ScoringError(
            f"the scorer {scorer!r} gave {len(numbers)} numbers for the {len(pool.paths)} paths of problem "
            f"{pool.problem.id!r}; it must give one for each"
        )
    for position, value in enumerate(numbers):
        try:
            fits = not isinstance(value, bool) and math.isfinite(value)
        except (TypeError, OverflowError):
            fits = False
        if not fits:
            raise ScoringError(
                f"the scorer {scorer!r} gave {value!r:.40} for path {position} of problem {pool.problem.id!r}; "
                "a score is a finite number"
            )
    return [float(value) for value in numbers]


def as_number(value: Any, what: str) -> float:
    """A number as a server sent it; raises where it is none, or beyond all measure."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise ScoringError(f"the endpoint gave {value!r:.40} for {what}")


def full_identity(scorer: Scorer) -> dict[str, Any]:
    """An identity as it is stored: with the normaliser, and as JSON has it."""
    return json.loads(json.dumps({**scorer.identity(), "normaliser": scorer.normaliser}))  # type: ignore[no-any-return]


Emit = Callable[[Outcome], None]
Work = TypeVar("Work")


async def stream_of(
    work: Iterable[Work], concurrency: int, one: Callable[[Work, Emit], Awaitable[None]]
) -> AsyncGenerator[list[Outcome], None]:
    """Outcomes of `one` over pieces of work, so many at a time, in portions of whatever has arrived."""
    arrived: asyncio.Queue[Outcome | None] = asyncio.Queue()
    waiting = iter(work)

    async def worker() -> None:
        for each in waiting:
            await one(each, arrived.put_nowait)

    async def all_workers() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(worker())
        finally:
            arrived.put_nowait(None)

    working = asyncio.create_task(all_workers())
    try:
        last = False
        while not last:
            portion = [await arrived.get()]
            while not arrived.empty():
                portion.append(arrived.get_nowait())
            last = None in portion
            outcomes = [outcome for outcome in portion if outcome is not None]
            if outcomes:
                yield outcomes
        try:
            await working
        except BaseExceptionGroup as group:
            raise _first(group) from None
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


def _first(error: BaseException) -> BaseException:
    """What went wrong first in a group of tasks."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def portions_of(work: Iterable[Work], most: int) -> Iterator[list[Work]]:
    """Portions of at most so many, in order; read no further than needed."""
    waiting = iter(work)
    while portion := list(islice(waiting, most)):
        yield portion
