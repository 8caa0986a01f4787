"""Sampling: the paths a run still lacks, from a backend into the store, a bounded number at a time.

Each portion of paths is committed as it arrives, with whatever else arrived meanwhile, in one transaction. Nothing else
is kept anywhere, so an interrupted run goes on by being run again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from demur.answers.extraction import Extraction
from demur.backends.protocol import Backend, Completion, Prompt, Settings, Wanted
from demur.errors import BackendError, EndpointRefused, LogprobsMissing
from demur.progress import Progress
from demur.records import Problem
from demur.store import Pending, Run, SavedPath

Extract = Callable[[Problem, Completion], Extraction]
_WAITING_BATCHES = 256
_HOPELESS = 3


@dataclass
class SamplingProgress(Progress):
    """Where sampling stands."""

    tokens: int = 0
    without_answer: int = 0
    truncated: int = 0
    arrived: int = 0
    """Paths that came, saved or about to be."""
    with_logprobs: int = 0
    out_of_time: bool = False

    @property
    def stopped(self) -> bool:
        """Whether it ended before it was done."""
        return self.interrupted or self.out_of_time

    def take(self, portion: Sequence[Completion], n_paths: int, *, needs_logprobs: bool) -> None:
        """Count what came; give up early on a model that gives no log-probabilities where a score needs them."""
        self.arrived += len(portion)
        self.with_logprobs += sum(each.logprobs is not None or not each.text for each in portion)
        if needs_logprobs and self.arrived >= n_paths and not self.with_logprobs:
            raise LogprobsMissing(
                f"the first {self.arrived} paths came without token log-probabilities, which the perplexity score "
                "needs; start the endpoint with them, or add --no-logprobs"
            )


Watch = Callable[[SamplingProgress], None]


def seed_of(seed: int, problem: str, n_paths: int) -> int:
    """The seed of a problem's first path; path j has this plus j, so that no two problems share a stream."""
    stride = 1 << max(0, n_paths - 1).bit_length()
    digest = hashlib.sha256(f"{seed}:{problem}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % (2**31 // stride) * stride


async def sample(
    run: Run,
    backend: Backend,
    render: Callable[[Problem], Prompt],
    settings: Settings,
    extract: Extract,
    *,
    seed: int = 0,
    needs_logprobs: bool = False,
    ids: Iterable[str] | None = None,
    watch: Watch = lambda _: None,
    stop: asyncio.Event | None = None,
    seconds: float | None = None,
) -> SamplingProgress:
    """Sample what is missing; returns when all is saved, `stop` is set or `seconds` are over."""
    pending = run.pending(ids)
    prompts = [render(each.problem) for each in pending]  # before anything is paid for
    progress = SamplingProgress(wanted=sum(len(each.missing) for each in pending), problems=len(pending))
    arrived: asyncio.Queue[list[SavedPath] | None] = asyncio.Queue()
    todo = iter(zip(pending, prompts, strict=True))
    stop = stop or asyncio.Event()
    deadline = None if seconds is None else progress.started + seconds

    async def work() -> None:
        for each, prompt in todo:
            if stop.is_set() or (deadline is not None and time.monotonic() > deadline):
                progress.out_of_time = not stop.is_set()
                return
            while arrived.qsize() > _WAITING_BATCHES:  # the disk is slower than the model
                await asyncio.sleep(0.01)
            wanted = _wanted(each, seed, run.n_paths or 1)
            try:
                async with aclosing(backend.sample(prompt, settings, wanted)) as portions:
                    async for portion in portions:
                        arrived.put_nowait([_saved(each, completion, extract) for completion in portion])
                        progress.take(portion, run.n_paths or 1, needs_logprobs=needs_logprobs)
            except EndpointRefused:
                raise
            except BackendError as error:
                progress.failed[each.problem.id] = str(error)
                if not progress.arrived and len(progress.failed) >= min(_HOPELESS, progress.problems):
                    raise  # nothing ever worked: it is not the fault of these problems

    async def tick() -> None:
        while True:
            await asyncio.sleep(1.0)
            progress.retries, progress.trouble = getattr(backend, "retries", 0), getattr(backend, "trouble", "")
            watch(progress)

    writer = asyncio.create_task(_write(run, arrived, progress, watch))
    workers = [asyncio.create_task(work()) for _ in range(max(1, min(backend.concurrency, len(pending))))]
    stopping, ticking = asyncio.create_task(stop.wait()), asyncio.create_task(tick())
    try:
        await _all_or_stop(workers, writer, stopping)
    finally:
        progress.interrupted = stop.is_set()
        for task in (*workers, stopping, ticking):
            task.cancel()
        await asyncio.gather(*workers, stopping, ticking, return_exceptions=True)
        arrived.put_nowait(None)
        await asyncio.wait([writer])
        progress.retries = getattr(backend, "retries", 0)
    await writer
    return progress


async def _all_or_stop(
    workers: Sequence[asyncio.Task[None]], writer: asyncio.Task[None], stopping: asyncio.Task[bool]
) -> None:
    """Wait for all workers; end early when asked to stop, or when the writer or a worker fails."""
    remaining: set[asyncio.Task[None]] = set(workers)
    while remaining:
        watched: set[asyncio.Task[None] | asyncio.Task[bool]] = {*remaining, writer, stopping}
        done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        if writer in done or stopping in done:
            return
        for task in remaining & done:
            task.result()
        remaining -= done


async def _write(
    run: Run, arrived: asyncio.Queue[list[SavedPath] | None], progress: SamplingProgress, watch: Watch
) -> None:
    """Commit what has arrived, and whatever arrived meanwhile, until there is no more."""
    last = False
    while not last:
        portions = [await arrived.get()]
        while not arrived.empty():
            portions.append(arrived.get_nowait())
        last = None in portions
        batch = [path for portion in portions if portion is not None for path in portion]
        if batch:
            await asyncio.to_thread(run.save, batch)
            progress.saved += len(batch)
            progress.tokens += sum(path.n_tokens or 0 for path in batch)
            progress.without_answer += sum(path.answer is None for path in batch)
            progress.truncated += sum(path.finish_reason == "length" for path in batch)
            watch(progress)


def _wanted(pending: Pending, seed: int, n_paths: int) -> list[Wanted]:
    first = seed_of(seed, pending.problem.id, n_paths)
    return [Wanted(path, first + path) for path in pending.missing]


def _saved(pending: Pending, completion: Completion, extract: Extract) -> SavedPath:
    found = extract(pending.problem, completion)
    return SavedPath(
        number=pending.number, path=completion.path, text=completion.text, answer=found.answer,
        extraction=found.method, finish_reason=completion.finish_reason, n_tokens=completion.n_tokens,
        logprob_mean=completion.logprob_mean, logprob_std=completion.logprob_std, seed=completion.seed,
        latency=completion.latency,
    )  # fmt: skip
