"""Sampling: the paths a run still lacks, from a backend into the store, each committed as it arrives."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from demur.answers.extraction import was_cut
from demur.backends.protocol import Backend, Completion, Settings, Wanted
from demur.engine.progress import Progress
from demur.engine.queue import WorkQueue
from demur.errors import BackendError, EndpointRefused, LogprobsMissing
from demur.prompts import Prompt
from demur.records import Path, Problem
from demur.store import Pending, PlacedPath, Run

ReadPath = Callable[[Problem, Completion], Path]


@dataclass
class SamplingProgress(Progress):
    """Where sampling stands."""

    tokens: int = 0
    without_answer: int = 0
    truncated: int = 0
    arrived: int = 0
    """Paths that came, saved or about to be."""
    with_logprobs: int = 0

    def take(self, portion: Sequence[Completion], n_paths: int, *, needs_logprobs: bool) -> None:
        """Count what came; give up early on a model that gives no log-probabilities where a score needs them."""
        self.arrived += len(portion)
        self.with_logprobs += sum(path.logprobs is not None or not path.text for path in portion)
        if needs_logprobs and self.arrived >= n_paths and not self.with_logprobs:
            raise LogprobsMissing(
                f"the first {self.arrived} paths came without token log-probabilities, which the perplexity score "
                "needs",
                "start the endpoint with them, or sample with {logprobs=False}",
            )

    def count(self, batch: Sequence[PlacedPath]) -> None:
        """Paths that were saved."""
        self.saved += len(batch)
        for _, _, path in batch:
            self.tokens += path.extra.get("n_tokens") or 0
            self.without_answer += path.answer is None
            self.truncated += was_cut(path.extra.get("finish_reason"))


Watch = Callable[[SamplingProgress], None]
Stop = asyncio.Event | None


def wanted_paths(seed: int, problem: str, n_paths: int, missing: Iterable[int] | None = None) -> list[Wanted]:
    """Paths to draw and their seeds: path j has the problem's own seed plus j, so that no two problems share one."""
    stride = 1 << max(0, n_paths - 1).bit_length()
    digest = hashlib.sha256(f"{seed}:{problem}".encode("utf-8", "surrogatepass")).digest()
    first = int.from_bytes(digest[:8]) % (2**31 // stride) * stride
    return [Wanted(path, first + path) for path in (range(n_paths) if missing is None else missing)]


async def sample(
    run: Run,
    backend: Backend,
    render: Callable[[Problem], Prompt],
    settings: Settings,
    read: ReadPath,
    *,
    seed: int = 0,
    needs_logprobs: bool = False,
    ids: Collection[str] | None = None,
    watch: Watch = lambda _: None,
    stop: Stop = None,
    seconds: float | None = None,
) -> SamplingProgress:
    """Sample what is missing; returns when all is saved, `stop` is set or `seconds` are over."""
    pending, n_paths = await asyncio.to_thread(run.pending, ids), run.n_paths or 1
    prompts = [render(lacking.problem) for lacking in pending]  # before anything is paid for
    progress = SamplingProgress(wanted=sum(len(lacking.missing) for lacking in pending), problems=len(pending))

    async def one(work: tuple[Pending, Prompt]) -> None:
        lacking, prompt = work
        wanted = wanted_paths(seed, lacking.problem.id, n_paths, lacking.missing)
        try:
            async with aclosing(backend.sample(prompt, settings, wanted)) as portions:
                async for portion in portions:
                    for drawn in portion:
                        queue.emit(PlacedPath(lacking.number, drawn.path, read(lacking.problem, drawn)))
                    progress.take(portion, n_paths, needs_logprobs=needs_logprobs)
        except EndpointRefused:
            raise
        except BackendError as error:
            queue.fail(lacking.problem.id, error)

    async def save(batch: list[PlacedPath]) -> None:
        await asyncio.to_thread(run.save, batch)
        progress.count(batch)

    queue: WorkQueue[tuple[Pending, Prompt], PlacedPath] = WorkQueue(
        one,
        save,
        progress,
        concurrency=min(backend.concurrency, len(pending)),
        watch=watch,
        stop=stop or asyncio.Event(),
        patience=run.patience,
        source=backend,
        seconds=seconds,
    )
    await queue.work_through(zip(pending, prompts, strict=True))
    return progress
