"""Scoring a run: the scores it lacks, from a scorer into the store, path by path.

What is stored under a scorer's identity is never scored again; a scorer that has changed scores under a new name. Each
portion is committed as it arrives, so an interrupted command goes on by being run again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from quorate.errors import LogprobsMissing
from quorate.progress import Progress
from quorate.scoring.protocol import (
    EMPTY,
    Failed,
    Outcome,
    Scorer,
    StreamScorer,
    checked,
    full_identity,
)
from quorate.store import Run, Scored, Unscored


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
    try:
        if isinstance(scorer, StreamScorer):
            await scorer.prepare()
        identity = full_identity(scorer)
        name = name_for(run, scorer.name, identity)
        scorer.name = name
        lacking = run.lacking(name)
        progress = ScoringProgress(sum(map(len, lacking.values())), len(lacking), name=name)
        run.save_scores(name, identity, [])
        keeping = asyncio.create_task(_keep(run, scorer, identity, progress, watch))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if keeping.done():
            keeping.result()
        else:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
    finally:
        if isinstance(scorer, StreamScorer):
            await scorer.close()
    progress.interrupted = stop.is_set()
    if progress.saved:
        facts = {"score": name, "paths": progress.saved, "seconds": round(progress.seconds, 3),
                 "failed": len(progress.failed), "retries": progress.retries}  # fmt: skip
        run.note("score", started, facts)
    return progress


def name_for(run: Run, wanted: str, identity: dict[str, Any]) -> str:
    """The name of a score in a run: as wanted, or with a number where another scorer has it."""
    held = run.scorers()
    name, number = wanted, 1
    while name in held and held[name] != identity:
        number += 1
        name = f"{wanted}-{number}"
    return name


async def _keep(run: Run, scorer: Scorer, identity: dict[str, Any], progress: ScoringProgress, watch: Watch) -> None:
    """Save outcomes as they come, until there are no more."""
    unscored = run.unscored(progress.name)
    stream = scorer.stream(unscored) if isinstance(scorer, StreamScorer) else _pool_by_pool(scorer, unscored)
    async with contextlib.aclosing(stream) as portions:
        async for portion in portions:
            scores = [outcome for outcome in portion if isinstance(outcome, Scored)]
            await asyncio.to_thread(run.save_scores, progress.name, identity, scores)
            for outcome in portion:
                if isinstance(outcome, Failed):
                    progress.failed.setdefault(outcome.problem, outcome.reason)
                elif outcome.flag is not None:
                    progress.flagged[outcome.flag] = progress.flagged.get(outcome.flag, 0) + 1
            progress.saved += len(scores)
            progress.retries = getattr(scorer, "retries", 0)
            progress.trouble = getattr(scorer, "trouble", "")
            watch(progress)


async def _pool_by_pool(scorer: Scorer, unscored: Iterable[Unscored]) -> AsyncGenerator[list[Outcome], None]:
    """A scorer that knows one pool at a time; what it cannot score for lack of log-probabilities is named."""
    outcomes: list[Outcome] = []
    for each in unscored:
        try:
            values = checked(await asyncio.to_thread(scorer.score, each.pool), each.pool, scorer.name)
        except LogprobsMissing as error:
            outcomes.append(Failed(each.number, each.pool.problem.id, str(error)))
        else:
            outcomes += [
                Scored(each.number, path, values[path], _flag(each.pool.paths[path].text)) for path in each.missing
            ]
        if len(outcomes) >= _AT_ONCE:
            yield outcomes
            outcomes = []
    if outcomes:
        yield outcomes


_AT_ONCE = 1000


def _flag(text: str | None) -> str | None:
    return EMPTY if text is not None and not text.strip() else None
