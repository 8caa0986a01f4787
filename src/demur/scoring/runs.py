"""Scoring a run: the scores it lacks, from a scorer into the store, path by path.

What is stored under a scorer's identity is never scored again; a scorer that has changed scores under a new name. Each
portion is committed as it arrives, so an interrupted command goes on by being run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from demur.errors import LogprobsMissing, ScoringError, StoreError
from demur.progress import Progress
from demur.scoring.protocol import EMPTY, Failed, Outcome, Scorer, StreamScorer, checked, full_identity
from demur.store import Run, Scored, Unscored

_HOPELESS = 3
_SECONDS, _PATHS = 1.0, 1000
"""How often a scorer that knows one pool at a time is saved."""


@dataclass
class ScoringProgress(Progress):
    """Where scoring stands."""

    name: str = ""
    """The name that the scores are stored under."""
    flagged: dict[str, int] = field(default_factory=dict)
    """Scores that are not quite what they should be, by flag."""


Watch = Callable[[ScoringProgress], None]


async def score_run(
    run: Run,
    scorer: Scorer,
    *,
    watch: Watch = lambda _: None,
    stop: asyncio.Event | None = None,
) -> ScoringProgress:
    """Score what is missing; returns when all is saved or `stop` is set."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    stop = stop or asyncio.Event()
    progress = ScoringProgress(0, 0, name=scorer.name)
    working = asyncio.create_task(_work(run, scorer, progress, watch))
    stopping = asyncio.create_task(stop.wait())
    try:
        waiting: set[asyncio.Task[Any]] = {working, stopping}
        while not (await asyncio.wait(waiting, timeout=1.0, return_when=asyncio.FIRST_COMPLETED))[0]:
            watch(progress)  # that it waits is news too
        if working.done():
            working.result()
        else:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            progress.interrupted = True
    finally:
        stopping.cancel()
        progress.ended = time.monotonic()
        if progress.saved:
            facts = {"score": progress.name, "paths": progress.saved, "seconds": round(progress.seconds, 3),
                     "failed": len(progress.failed), "retries": progress.retries}  # fmt: skip
            run.note("score", started, facts)
    return progress


async def _work(run: Run, scorer: Scorer, progress: ScoringProgress, watch: Watch) -> None:
    """Save outcomes as they come, until there are no more."""
    try:
        if isinstance(scorer, StreamScorer):
            await scorer.prepare()
        identity = full_identity(scorer)
        progress.name = _name_for(run, scorer.name, identity)
        lacking = run.lacking(progress.name)
        progress.wanted, progress.problems = sum(map(len, lacking.values())), len(lacking)
        unscored = run.unscored(progress.name)
        stream = (
            scorer.stream(unscored)
            if isinstance(scorer, StreamScorer)
            else _pool_by_pool(scorer, unscored, min(_HOPELESS, progress.problems))
        )
        async with contextlib.aclosing(stream) as portions:
            async for portion in portions:
                await _save(run, portion, identity, progress)
                progress.retries = getattr(scorer, "retries", 0)
                progress.trouble = getattr(scorer, "trouble", "")
                watch(progress)
    finally:
        if isinstance(scorer, StreamScorer):
            await scorer.close()


async def _save(run: Run, portion: list[Outcome], identity: dict[str, Any], progress: ScoringProgress) -> None:
    scores = [outcome for outcome in portion if isinstance(outcome, Scored)]
    if scores:
        try:
            await asyncio.to_thread(run.save_scores, progress.name, identity, scores)
        except StoreError:
            name = _name_for(run, progress.name, identity)
            if name == progress.name:
                raise
            progress.name = name  # another scorer was quicker to take it
            await asyncio.to_thread(run.save_scores, name, identity, scores)
    progress.saved += len(scores)
    for outcome in portion:
        if isinstance(outcome, Failed):
            progress.failed.setdefault(outcome.problem, outcome.reason)
        elif outcome.flag is not None:
            progress.flagged[outcome.flag] = progress.flagged.get(outcome.flag, 0) + 1


def _name_for(run: Run, wanted: str, identity: dict[str, Any]) -> str:
    """The name of a score in a run: as wanted, or with a number where another scorer has it."""
    held = run.scorers()
    name, number = wanted, 1
    while name in held and held[name] != identity:
        number += 1
        name = f"{wanted}-{number}"
    return name


async def _pool_by_pool(
    scorer: Scorer, unscored: Iterable[Unscored], hopeless: int
) -> AsyncGenerator[list[Outcome], None]:
    """A scorer that knows one pool at a time; pools that it cannot score are named, and the others go on."""
    outcomes: list[Outcome] = []
    worked, failed, last = False, 0, time.monotonic()
    for each in unscored:
        try:
            values = checked(await asyncio.to_thread(scorer.score, each.pool), each.pool, scorer.name)
        except (LogprobsMissing, ScoringError) as error:
            failed += 1
            if not worked and failed >= hopeless:
                raise  # nothing ever worked: it is not the fault of these pools
            outcomes.append(Failed(each.number, each.pool.problem.id, str(error)))
        else:
            worked = True
            outcomes += [
                Scored(each.number, path, values[path], _flag(each.pool.paths[path].text)) for path in each.missing
            ]
        if len(outcomes) >= _PATHS or time.monotonic() - last > _SECONDS:
            yield outcomes
            outcomes, last = [], time.monotonic()
    if outcomes:
        yield outcomes


def _flag(text: str | None) -> str | None:
    return EMPTY if text is not None and not text.strip() else None
