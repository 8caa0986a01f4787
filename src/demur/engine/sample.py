"""Sampling: the paths a run still lacks, from a backend into the store, each committed as it arrives."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from demur.answers.extraction import was_cut
from demur.backends.protocol import Backend, Completion, ReportedModels, Settings, Wanted
from demur.engine.progress import Progress
from demur.engine.queue import WorkQueue
from demur.engine.sharing import SharedWork, asked_of, working
from demur.engine.unread import Unread
from demur.engine.until_stopped import UntilStopped
from demur.errors import BackendError, EndpointRefused, LogprobsMissing
from demur.prompts import Prompt
from demur.records import Path, Problem
from demur.store import Pending, PlacedPath, Run
from demur.store.shared_work import LEASE_SECONDS, SAMPLING

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
    reported: ReportedModels = field(default_factory=ReportedModels)

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


def size(lacking: Pending) -> int:
    """The paths to draw for a problem."""
    return len(lacking.missing) + len(lacking.again)


async def sample(
    run: Run,
    backend: Backend,
    render: Callable[[Problem], Prompt],
    settings: Settings,
    read: ReadPath,
    *,
    seed: int = 0,
    needs_logprobs: bool = False,
    mixed_models: bool = False,
    ids: Collection[str] | None = None,
    watch: Watch = lambda _: None,
    stop: Stop = None,
    seconds: float | None = None,
    lease: float = LEASE_SECONDS,
    keep_first: bool = False,
) -> SamplingProgress:
    """Sample what is missing; returns when all is saved, `stop` is set or `seconds` are over.

    Several processes may sample one run at once, and share what is missing; `lease` is how long nothing may be seen of
    this one, in seconds, before others take over from it. The budget of the run ends it too.

    What cannot be read is kept for the next time; with `keep_first` all is, before it is read.

    `needs_logprobs`: paths that came without log-probabilities are drawn again; and nobody but one asks, for one path
    at a time, until a path came with them, so that a model that gives none costs next to nothing.

    Raises EndpointRefused when a reply names another model than those before it, in this process or in the notes of the
    run, unless `mixed_models`.
    """
    stop = stop or asyncio.Event()
    came = Unread(run, read, first=keep_first)
    await came.read_what_was_kept(stop)
    by_others = await asked_of(run, stop, lambda: run.came(SAMPLING))  # first, so that what comes meanwhile is noticed
    pending = await asked_of(run, stop, lambda: run.pending(ids, with_logprobs=needs_logprobs))
    n_paths, progress, ended = run.n_paths or 1, SamplingProgress(0, 0), None
    progress.reported = ReportedModels(await asked_of(run, stop, run.reported_models), mixed=mixed_models)
    if run.stopping is not None:
        ended = await asked_of(run, stop, partial(UntilStopped, run.stopping, run, progress))
        pending = ended.begin(pending)
    prompts = {lacking.number: render(lacking.problem) for lacking in pending}  # before anything is paid for
    mute = {lacking.number for lacking in pending if lacking.again}
    progress.wanted, progress.problems = sum(map(size, pending)), len(pending)
    there: set[tuple[int, int]] = set()
    if not pending:
        progress.ended = progress.started
        return progress
    on_trial = asyncio.Lock()
    certain = not needs_logprobs or getattr(backend, "draws_for_free", False)

    async def draw(lacking: Pending, prompt: Prompt, wanted: Sequence[Wanted]) -> None:
        async with aclosing(backend.sample(prompt, settings, wanted)) as portions:
            async for portion in portions:
                progress.reported.take(portion)
                for drawn, path in zip(portion, await came.read(lacking, portion), strict=True):
                    again = (lacking.number, drawn.path) in there
                    progress.drawn_again += again
                    if again and not _can_be_scored(drawn):
                        progress.still_without += 1
                    else:
                        queue.emit(PlacedPath(lacking.number, drawn.path, path))
                        if ended is not None:
                            ended.take(lacking, drawn.path, path)
                progress.take(portion)
                if needs_logprobs:
                    progress.refuse_without_logprobs()

    async def one(work: tuple[Pending, Prompt]) -> None:
        lacking, prompt = work
        all_at_once, asked = [sorted({*lacking.missing, *lacking.again})], False
        try:
            for places in all_at_once if ended is None else ended.waves(lacking):
                if asked:  # so that no more than a wave can be lost on its way
                    await queue.saved()
                asked = True
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
        in_vain = 0
        if new:
            in_vain += await asyncio.to_thread(run.save, new, worker)
        if len(new) < len(batch):
            replaced = [placed for placed in batch if (placed.number, placed.place) in there]
            in_vain += await asyncio.to_thread(run.replace, replaced, worker)
        progress.count(batch)
        progress.count_in_vain(in_vain)

    async def taken_up(work: tuple[Pending, Prompt]) -> None:
        number = work[0].number
        try:
            await one(work)
        finally:
            queue.when_saved(lambda: shared.ended([number]))

    def still_lacking(numbers: Collection[int]) -> dict[int, Pending]:
        lacking = run.pending(with_logprobs=needs_logprobs, numbers=numbers)
        lacking = lacking if ended is None else ended.lacking_now(numbers, lacking)
        return {one.number: one for one in lacking}

    def parts(pieces: Mapping[int, Pending]) -> Iterator[tuple[list[int], tuple[Pending, Prompt]]]:
        for number, lacking in pieces.items():
            there.update((number, place) for place in lacking.again)
            yield [number], (lacking, prompts[number])

    def done_between(first: int, last: int) -> set[int]:
        return (run.whole_between if ended is None else ended.ended_between)(first, last) - mute

    queue: WorkQueue[tuple[Pending, Prompt], PlacedPath] = WorkQueue(
        taken_up,
        save,
        progress,
        concurrency=min(backend.concurrency, len(pending)),
        watch=watch,
        stop=stop,
        patience=run.patience,
        source=backend,
        seconds=seconds,
    )
    async with working(run, SAMPLING, queue.concurrency, stop, lease) as worker:
        pieces = {lacking.number: lacking for lacking in pending}
        shared = SharedWork(
            worker,
            pieces,
            size,
            still_lacking,
            done_between,
            progress,
            stop,
            by_others=by_others,
            least=queue.concurrency,
            deadline=queue.deadline,
            unwanted=None if ended is None else ended.unwanted,
        )
        await queue.work_through(shared.works(parts))
        progress.lost_leases = worker.lost
    await came.forget_read()
    return progress
