"""Sampling over a cluster: each block of problems is a run of its own, and becomes a shard when it is whole.

A worker samples a block as the plain engine samples a run, into a store that lies beside the shards until the block is
finished. Paths are committed as they arrive, so a worker that is killed loses those under way and no others; whoever is
given the block next goes on. Path j of a problem has the seed that it has in the plain engine, whichever worker draws
it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from demur import event_loop
from demur.backends.protocol import Backend, Completion, ReportedModels, Settings, Wanted
from demur.engine.ray.blocks import Crew, work_through
from demur.engine.ray.cluster import Cluster, cluster, ray_library
from demur.engine.ray.surroundings import Surroundings
from demur.engine.sample import SamplingProgress
from demur.errors import ClusterError, InvalidValue, StoreError
from demur.pipeline.config import Config
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.ray import vllm
from demur.pipeline.shard_contents import with_scores_of
from demur.pipeline.shards import Block, Manifest, ShardFolder, opened
from demur.pipeline.sources import kept_pools
from demur.pools.parquet import read_parquet, write_parquet
from demur.pools.provenance import Provenance
from demur.prompts import Prompt, Template
from demur.prompts.conversations import with_transcript
from demur.records import Pool, Problem
from demur.store import PlacedPath, Store

PER_WORKER = 32
"""Connections that one worker handles with ease."""
_BLOCKS_AT_ONCE = 4
"""Blocks that a worker of an endpoint has under way, so that the end of one is no pause."""
_HELD = ("saved", "tokens", "without_answer", "truncated")
"""What is counted of paths that are stored."""
_ADDED = (*_HELD, "drawn_again", "still_without")


@dataclass(frozen=True)
class RayOptions:
    """Which cluster, how many workers, how many problems to a shard; None: as it comes."""

    address: str | None = None
    workers: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "block"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InvalidValue(f"{name} must be at least 1, got {value}")


@dataclass(frozen=True)
class SampledShards:
    """What came of it."""

    folder: Path
    progress: SamplingProgress
    score: str | None
    blocks: int
    finished: int
    start_seconds: float
    """How long the cluster took to start, or to be reached; nothing where nothing was to be done."""
    unfinished: tuple[str, ...] = ()
    """The names of the other blocks."""
    unscored: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BlockReceipt:
    """What one worker tells of one block."""

    number: int
    held: dict[str, int]
    """Counts of the paths that were there from an earlier try."""
    counts: dict[str, int]
    unwanted: int
    """Those paths, and the paths that a stopping rule found to be needed no more."""
    score: str | None
    failed: dict[str, str]
    unscored: dict[str, str]
    worker: str
    retries: int
    """Of the worker, so far."""
    trouble: str
    finished: bool
    models: dict[str, int] = field(default_factory=dict)
    """Paths by the model that their reply names."""


def sample_shards(
    config: Config,
    problems: Sequence[Problem],
    folder: str | os.PathLike[str],
    options: RayOptions = RayOptions(),  # noqa: B008 - frozen
    *,
    watch: Callable[[SamplingProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> SampledShards:
    """Sample what a folder of shards lacks of these problems. Run it again to go on.

    An interrupt ends it; what came is kept.
    """
    ray_library()  # before anything is made: it must be there
    problems = [with_transcript(problem) for problem in problems]
    in_process = vllm.is_meant(config)
    backend: Backend = vllm.Described(str(config.model)) if in_process else _backend(config, say)
    pipeline = config.pipeline(backend)
    if in_process and pipeline.stop is not None and pipeline.stop.stops:
        raise InvalidValue(
            f"an engine in the cluster draws all paths of a block at once, so {pipeline.stop} cannot end any early",
            "leave {stop} out, or name a server with {base_url}",
        )
    fitted = pipeline.fitted(problems)
    for problem in problems:
        fitted.render(problem)  # before a folder is made: a question that cannot be asked spoils nothing
    made = Manifest(fitted.description(), pipeline.n_paths, pipeline.seed)
    path = Path(folder)
    with opened(path, made, problems, options.block) as shards:
        lacking = shards.lacking()
        wanted = sum(len(block.problems) for block in lacking) * pipeline.n_paths
        progress = SamplingProgress(wanted, sum(len(block.problems) for block in lacking))
        progress.reported = ReportedModels(mixed=pipeline.mixed_models)
        scored = None if pipeline.scorer is None else pipeline.scorer.name
        done = SampledShards(path, progress, scored, len(shards.blocks), len(shards.blocks) - len(lacking), 0.0)
        if not lacking:
            progress.ended = time.monotonic()
            return done
        with cluster(options.address, workers=options.workers, folder=path.absolute(), say=say) as found:
            progress.started = time.monotonic()
            if in_process:
                vllm.sample_blocks(config, pipeline, fitted, shards, lacking, found, progress, watch)
                return _after(done, shards, found)
            work = _Sampling(config, fitted.template, made.description.fingerprint, shards)
            work, crew = _shared_out(work, options.workers, found, lacking)
            tally = _Tally(progress, watch, {block.number: held_of(shards, block) for block in lacking})
            receipts = work_through(work, lacking, crew, Surroundings.here(["OPENAI"]))
            try:
                with closing(receipts):
                    for receipt in receipts:
                        tally.take(receipt)
            except KeyboardInterrupt:
                progress.interrupted = True
            progress.ended = time.monotonic()
            return _after(replace(done, unscored=tally.unscored, score=tally.score or scored), shards, found)


def _after(done: SampledShards, shards: ShardFolder, found: Cluster) -> SampledShards:
    done.progress.ended = done.progress.ended or time.monotonic()
    lacking = tuple(block.name for block in shards.lacking())
    finished = len(shards.blocks) - len(lacking)
    return replace(done, finished=finished, unfinished=lacking, start_seconds=found.seconds)


def held_of(shards: ShardFolder, block: Block) -> dict[str, int]:
    """Counts of the paths that are stored of a block, in its unfinished run or else in its shard."""
    begun, shard, pools = shards.unfinished_run(block), shards.shard(block), list[Pool]()
    if begun.exists():
        with Store(begun, create=True) as store:
            pools = [
                pool for name in store.names() for pool in kept_pools(store.run(name), texts=False, unfinished=True)
            ]
    elif shard.exists():
        pools = list(read_parquet(shard).pools)
    counted = SamplingProgress(0, 0)
    counted.count([PlacedPath(0, at, path) for pool in pools for at, path in enumerate(pool.paths)])
    return {name: getattr(counted, name) for name in _HELD}


def _backend(config: Config, say: Callable[[str], None]) -> Backend:
    return replace(config, repeatable=True).backend(say) if config.embedded else config.backend(say)


def _shared_out(
    work: _Sampling, workers: int | None, found: Cluster, lacking: Sequence[Block]
) -> tuple[_Sampling, Crew]:
    """The work of one worker, and how many there are: requests at once are counted over all of them."""
    config = work.config
    if config.embedded:
        return work, Crew(min(found.at_most(workers), len(lacking)))
    in_all = config.concurrency or PER_WORKER
    many = min(workers or min(found.cpus, math.ceil(in_all / PER_WORKER)), in_all, len(lacking))
    work = replace(work, config=replace(config, concurrency=max(1, in_all // many)))
    return work, Crew(many, at_once=_BLOCKS_AT_ONCE, cpus=min(1.0, found.cpus / many))


class _Tally:
    """Receipts, added up. Workers that ended gave none: what they stored is what is there now and was not `before`."""

    def __init__(
        self,
        progress: SamplingProgress,
        watch: Callable[[SamplingProgress], None],
        before: Mapping[int, Mapping[str, int]],
    ) -> None:
        self.progress, self.watch, self.before = progress, watch, before
        self.unscored: dict[str, str] = {}
        self.score: str | None = None
        self._retries: dict[str, int] = {}

    def take(self, receipt: BlockReceipt) -> None:
        progress, before = self.progress, self.before[receipt.number]
        by_ended = {name: receipt.held[name] - before[name] for name in _HELD}
        for name in _ADDED:
            setattr(progress, name, getattr(progress, name) + receipt.counts[name] + by_ended.get(name, 0))
        progress.reported.add(receipt.models)
        progress.wanted += by_ended["saved"] - receipt.unwanted
        progress.failed |= receipt.failed
        self.unscored |= receipt.unscored
        self.score = receipt.score or self.score
        self._retries[receipt.worker] = max(receipt.retries, self._retries.get(receipt.worker, 0))
        progress.retries, progress.trouble = sum(self._retries.values()), receipt.trouble or progress.trouble
        self.watch(progress)


class _Lasting:
    """A backend that stays open from one block to the next, and is tried for log-probabilities once."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.concurrency = backend, backend.concurrency
        self.needs_examples = getattr(backend, "needs_examples", False)
        self.draws_for_free = getattr(backend, "draws_for_free", False)

    def describe(self) -> dict[str, Any]:
        return self.backend.describe()

    async def sample(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> AsyncGenerator[list[Completion], None]:
        async for portion in self.backend.sample(prompt, settings, wanted):
            if any(path.logprobs is not None for path in portion):
                self.draws_for_free = True  # it gives them, so no path need be tried alone
            yield portion

    @property
    def retries(self) -> int:
        return int(getattr(self.backend, "retries", 0))

    @property
    def trouble(self) -> str:
        return str(getattr(self.backend, "trouble", ""))

    async def close(self) -> None:
        """Nothing: other blocks are under way."""


@dataclass(frozen=True)
class _Sampling:
    """What a worker does with a block of problems."""

    config: Config
    template: Template
    """The prompt of all blocks, whatever the first problem of each says."""
    fingerprint: str
    shards: ShardFolder

    def open(self) -> None:
        backend = _backend(self.config, lambda _: None)
        if self.config.embedded:
            backend.threads = 1  # type: ignore[attr-defined]  # a worker has one processor
        pipeline = replace(self.config.pipeline(_Lasting(backend)), template=self.template)
        object.__setattr__(self, "_pipeline", pipeline)

    def __getstate__(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in ("config", "template", "fingerprint")}, "shards": self._place}

    @property
    def _place(self) -> ShardFolder:
        """The folder alone, from wherever it is looked at: each block comes by itself."""
        return ShardFolder(self.shards.folder.absolute(), ())

    def do(self, block: Block) -> BlockReceipt:
        pipeline: Pipeline = self._pipeline  # type: ignore[attr-defined]
        described = pipeline.fitted(block.problems).description()
        if described.fingerprint != self.fingerprint:
            raise ClusterError(
                "a worker would sample otherwise than it was asked to: its model, prompt or demur is another",
                "install the same on every machine of the cluster",
            )
        begun, shard, held = self.shards.unfinished_run(block), self.shards.shard(block), held_of(self.shards, block)
        of, me = len(block.problems) * pipeline.n_paths, f"{os.uname().nodename}:{os.getpid()}"
        if shard.exists() and not begun.exists():  # finished by a worker that ended before it could say so
            return BlockReceipt(
                block.number, held, dict.fromkeys(_ADDED, 0), of, None, {}, {}, me, 0, "", finished=True
            )
        sampled = event_loop.run(pipeline.run_async(block.problems, begun))
        with Store(begun) as store:
            run = store.run()
            pools = kept_pools(run)
            whole = len(pools)
            if pools:
                pools, scorers = with_scores_of(shard, pools, run.known_scorers())
                write_parquet(pools, shard, Provenance(run.description, scorers))
        progress, backend = sampled.progress, pipeline.backend
        finished = whole == len(block.problems) and not progress.failed and not sampled.unscored
        if finished:
            remove_run(begun)
        return BlockReceipt(
            block.number,
            held,
            {name: getattr(progress, name) for name in _ADDED},
            of - progress.wanted,
            sampled.score,
            progress.failed,
            sampled.unscored,
            me,
            getattr(backend, "retries", 0),
            getattr(backend, "trouble", ""),
            finished,
            dict(progress.reported.paths),
        )


def remove_run(place: Path) -> None:
    """Drop a store that has become a shard, and the files that SQLite keeps beside it."""
    for name in (f"{place.name}-wal", f"{place.name}-shm", place.name):
        try:
            place.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{place} cannot be removed: {error.strerror or error}") from None
