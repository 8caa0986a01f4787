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
from demur.engine.until_stopped import UntilStopped
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
    blank: int = 0
    """Paths without a text, which say nothing of what a model gives."""
    drawn_again: int = 0
    """Paths that were there, and were drawn again because they lacked log-probabilities."""
    still_without: int = 0
    """Those of them that came without log-probabilities once more; what was there stays."""

    def take(self, portion: Sequence[Completion]) -> None:
        """Count what came."""
        self.arrived += len(portion)
        self.with_logprobs += sum(path.logprobs is not None for path in portion)
        self.blank += sum(not path.text for path in portion)

    @property
    def tried(self) -> bool:
        """Whether enough is known of log-probabilities to ask for many paths at once."""
        return bool(self.with_logprobs) or self.blank >= _MOST_BLANK

    def refuse_without_logprobs(self) -> None:
        """Give up on a model that gives no log-probabilities where a score needs them."""
        telling = self.arrived - self.blank  # a blank path has no token that could have one
        if telling >= min(_TRIALS, self.wanted) and not self.with_logprobs:
            raise LogprobsMissing(
                f"the first {telling} paths came without token log-probabilities, which the perplexity score "
                "needs; no more were asked for",
                "start the endpoint with them, or sample with {logprobs=False}",
            )

    def count(self, batch: Sequence[PlacedPath]) -> None:
        """Paths that were saved."""
        self.saved += len(batch)
        for _, _, path in batch:
            self.tokens += path.extra.get("n_tokens") or 0
            self.without_answer += path.answer is None
            self.truncated += was_cut(path.extra.get("finish_reason"))


_TRIALS = 3
"""Paths that are drawn one by one to see whether log-probabilities come with them."""
_MOST_BLANK = 16
Watch = Callable[[SamplingProgress], None]
Stop = asyncio.Event | None


def wanted_paths(
    seed: int, problem: str, n_paths: int, missing: Iterable[int] | None = None, first: int | None = None
) -> list[Wanted]:
    """Paths to draw and their seeds: path j has the problem's own seed plus j, so that no two problems share one.

    `first` is that seed where some paths were drawn with it: it depends on how many there were to be, and those that
    are added later must not repeat it.
    """
    if first is None:
        stride = 1 << max(0, n_paths - 1).bit_length()
        digest = hashlib.sha256(f"{seed}:{problem}".encode("utf-8", "surrogatepass")).digest()
        first = int.from_bytes(digest[:8]) % (2**31 // stride) * stride
    return [Wanted(path, (first + path) % 2**31) for path in (range(n_paths) if missing is None else missing)]


def _can_be_scored(path: Completion) -> bool:
    """Whether a path has log-probabilities, or nothing that could have any."""
    return path.logprobs is not None or not path.text


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
    """Sample what is missing; returns when all is saved, `stop` is set or `seconds` are over.

    `needs_logprobs`: paths that came without log-probabilities are drawn again; and nobody but one asks, for one path
    at a time, until a path came with them, so that a model that gives none costs next to nothing.
    """
    pending = await asyncio.to_thread(run.pending, ids, with_logprobs=needs_logprobs)
    n_paths, progress, ended = run.n_paths or 1, SamplingProgress(0, 0), None
    if run.stopping is not None:
        ended = await asyncio.to_thread(UntilStopped, run.stopping, run, progress)
        pending = ended.lacking(pending)
    prompts = [render(lacking.problem) for lacking in pending]  # before anything is paid for
    n_wanted = sum(len(lacking.missing) + len(lacking.again) for lacking in pending)
    progress.wanted, progress.problems = n_wanted, len(pending)
    there = {(lacking.number, place) for lacking in pending for place in lacking.again}
    on_trial = asyncio.Lock()
    certain = not needs_logprobs or getattr(backend, "draws_for_free", False)

    async def draw(lacking: Pending, prompt: Prompt, wanted: Sequence[Wanted]) -> None:
        async with aclosing(backend.sample(prompt, settings, wanted)) as portions:
            async for portion in portions:
                for drawn in portion:
                    again = (lacking.number, drawn.path) in there
                    progress.drawn_again += again
                    if again and not _can_be_scored(drawn):
                        progress.still_without += 1
                    else:
                        path = read(lacking.problem, drawn)
                        queue.emit(PlacedPath(lacking.number, drawn.path, path))
                        if ended is not None:
                            ended.take(lacking, drawn.path, path)
                progress.take(portion)
                if needs_logprobs:
                    progress.refuse_without_logprobs()

    async def one(work: tuple[Pending, Prompt]) -> None:
        lacking, prompt = work
        all_at_once = [sorted({*lacking.missing, *lacking.again})]
        try:
            for places in all_at_once if ended is None else ended.waves(lacking):
                wanted = wanted_paths(seed, lacking.problem.id, n_paths, places, lacking.first_seed)
                if not certain:
                    async with on_trial:
                        while wanted and not progress.tried:
                            progress.refuse_without_logprobs()
                            await draw(lacking, prompt, [wanted.pop(0)])
                if wanted:
                    await draw(lacking, prompt, wanted)
        except EndpointRefused:
            raise
        except BackendError as error:
            queue.fail(lacking.problem.id, error)

    async def save(batch: list[PlacedPath]) -> None:
        new = [placed for placed in batch if (placed.number, placed.place) not in there]
        if new:
            await asyncio.to_thread(run.save, new)
        if len(new) < len(batch):
            replaced = [placed for placed in batch if (placed.number, placed.place) in there]
            await asyncio.to_thread(run.replace, replaced)
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
