"""Scoring a run: the scores it lacks, from a scorer into the store, path by path.

What is stored under a scorer's identity is never scored again; a scorer that has changed scores under a new name. Each
batch is committed as it arrives, so an interrupted command goes on by being run again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from demur.engine.progress import Progress
from demur.engine.queue import WorkQueue
from demur.engine.sharing import SharedWork, working
from demur.errors import LogprobsMissing, ScoringError, StoreError
from demur.records import Pool, blinded
from demur.scoring.model_scorer import ModelScorer
from demur.scoring.protocol import EMPTY, Failed, Outcome, Scorer, checked, full_identity
from demur.store import PathScore, Run, Unscored
from demur.store.shared_work import LEASE_SECONDS
from demur.store.sharing import task_of_score

_POOLS_AT_ONCE = 200
"""The least that a scorer that asks nobody takes up at once."""
_SECONDS = 1.0
"""How often a scorer that asks nobody is saved."""


@dataclass
class ScoringProgress(Progress):
    """Where scoring stands."""

    name: str = ""
    """The name that the scores are stored under."""
    flagged: Counter[str] = field(default_factory=Counter)
    """Scores that are not quite what they should be, by flag."""


Watch = Callable[[ScoringProgress], None]


async def score_pool(scorer: Scorer, pool: Pool) -> list[float]:
    """One number per path of one pool, by a scorer that is prepared; the scorer does not see gold."""
    if isinstance(scorer, ModelScorer):
        return checked(await scorer.score_pool(pool), pool, scorer.name)
    return checked(await asyncio.to_thread(scorer.score, blinded(pool)), pool, scorer.name)


async def score_run(
    run: Run,
    scorer: Scorer,
    *,
    watch: Watch = lambda _: None,
    stop: asyncio.Event | None = None,
    lease: float = LEASE_SECONDS,
) -> ScoringProgress:
    """Score what is missing; returns when all is saved or `stop` is set.

    Several processes may score one run at once, and share what is missing, as in `sample`.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    progress = ScoringProgress(0, 0, name=scorer.name)
    stop = stop or asyncio.Event()
    if not await asyncio.to_thread(run.has_whole_pools):  # nobody need be asked
        return progress
    try:
        if isinstance(scorer, ModelScorer) and not await _unless_stopped(scorer.prepare(), stop):
            progress.interrupted = True
            return progress
        await _score(run, scorer, progress, watch, stop, lease)
    finally:
        if isinstance(scorer, ModelScorer):
            await scorer.close()
        if progress.saved:
            facts = {"score": progress.name, "paths": progress.saved, "seconds": round(progress.seconds, 3)}
            facts |= {"failed": len(progress.failed), "retries": progress.retries}
            facts |= {"by_others": progress.by_others} if progress.by_others else {}
            facts |= {"in_vain": progress.in_vain} if progress.in_vain else {}
            await asyncio.to_thread(run.note, "score", started, facts)
    return progress


async def _unless_stopped(work: Any, stop: asyncio.Event) -> bool:
    """Whether work was done before it was asked to stop."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        working.result()
        return True
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return False


async def _score(
    run: Run, scorer: Scorer, progress: ScoringProgress, watch: Watch, stop: asyncio.Event, lease: float
) -> None:
    identity = full_identity(scorer)
    progress.name, lacking, by_others = await asyncio.to_thread(_what_is_lacking, run, scorer.name, identity)
    progress.wanted, progress.problems = sum(map(len, lacking.values())), len(lacking)
    if not lacking:
        return

    def take(outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            queue.fail(outcome.problem, outcome.error)
        else:
            queue.emit(outcome)

    async def block(work: Sequence[Unscored]) -> None:
        if isinstance(scorer, ModelScorer):
            await scorer.score_block(work, take)
            return
        for unscored in work:  # one pool at a time; pools that it cannot score are named, and the others go on
            pool = unscored.pool
            try:
                values = checked(await asyncio.to_thread(scorer.score, pool), pool, scorer.name)
            except (LogprobsMissing, ScoringError) as error:
                queue.fail(pool.problem.id, error)
                continue
            for place in unscored.missing:
                text = pool.paths[place].text
                flag = EMPTY if text is not None and not text.strip() else None
                queue.emit(PathScore(unscored.number, place, values[place], flag))

    async def save(scores: list[PathScore]) -> None:
        while True:
            try:
                there = await asyncio.to_thread(run.save_scores, progress.name, identity, scores, worker)
                break
            except StoreError:
                name = await asyncio.to_thread(_name_for, run, scorer.name, identity)
                if name == progress.name:
                    raise
                progress.name = name  # another scorer was quicker to take it
        progress.saved += len(scores)
        progress.count_in_vain(there)
        progress.flagged.update(score.flag for score in scores if score.flag is not None)

    async def taken_up(work: Sequence[Unscored]) -> None:
        numbers = [unscored.number for unscored in work]
        try:
            await block(work)
        finally:
            queue.when_saved(lambda: shared.ended(numbers))

    def parts(pieces: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[list[int], list[Unscored]]]:
        for work in _blocks(run.unscored(progress.name, pieces), pools_at_once):
            yield [unscored.number for unscored in work], work

    def read(numbers: Collection[int]) -> dict[int, tuple[int, ...]]:
        lacking = run.lacking(progress.name, numbers)
        return {number: lacking[number] for number in numbers if number in lacking}

    def done_between(first: int, last: int) -> set[int]:
        return set(range(first, last + 1)) - run.lacking(progress.name, (first, last)).keys()

    queue: WorkQueue[Sequence[Unscored], PathScore] = WorkQueue(
        taken_up,
        save,
        progress,
        concurrency=getattr(scorer, "concurrency", 1),
        watch=watch,
        stop=stop,
        patience=run.patience,
        source=scorer,
        every=0.0 if isinstance(scorer, ModelScorer) else _SECONDS,
    )
    pools_at_once = getattr(scorer, "pools_at_once", 1)
    least = max(queue.concurrency * pools_at_once, 1 if isinstance(scorer, ModelScorer) else _POOLS_AT_ONCE)
    async with working(run, task_of_score(progress.name, identity), least, stop, lease) as worker:
        shared = SharedWork(worker, lacking, len, read, done_between, progress, stop, by_others=by_others, least=least)
        await queue.work_through(shared.works(parts))
        progress.lost_leases = worker.lost


def _what_is_lacking(run: Run, wanted: str, identity: dict[str, Any]) -> tuple[str, dict[int, tuple[int, ...]], int]:
    """The name of a score, the paths that lack it, and how many had come to others before that was read.

    No path is passed over because another scorer was quicker.
    """
    while True:
        name = _name_for(run, wanted, identity)
        by_others = run.came(task_of_score(name, identity))
        lacking = run.lacking(name)
        if name == _name_for(run, wanted, identity):  # still free, so what was read is no other's
            return name, lacking, by_others


def _name_for(run: Run, wanted: str, identity: dict[str, Any]) -> str:
    """The name of a score in a run: as wanted, or with a number where another scorer has it."""
    taken = run.scorers()
    name, number = wanted, 1
    while name in taken and taken[name] != identity:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _blocks(work: Iterable[Unscored], most: int) -> Iterator[list[Unscored]]:
    """Blocks of at most so many, in order; read no further than needed."""
    waiting = iter(work)
    while block := list(islice(waiting, most)):
        yield block
