"""The stages of the way from a question to a decision, each as a call that can be timed.

They use what a user uses, so that a stage becomes faster here when it does there. A stage that needs a module which is
not there is left out, and said so.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import numpy as np
from sizing_inputs import (
    PATHS,
    SCORE,
    Place,
    answers_of,
    fill_run,
    placed,
    pools_of,
    problems,
    texts,
)  # fmt: skip

import demur as dm

CONNECTIONS = 64
Call = Callable[[], object]


@dataclass(frozen=True)
class Work:
    """What is timed, and the processes besides this one whose time is told beside it."""

    call: Call
    others: Callable[[], Collection[int]] = tuple


Start = Callable[[Place, int, ExitStack], Work]


@dataclass(frozen=True)
class Stage:
    """One stage: how many pools it is measured on, and how it is made ready."""

    name: str
    pools: int
    start: Start
    holds: bool = False
    """Whether it holds all pools in memory, so that its memory per pool is of interest."""
    only_others: bool = False
    """Whether this process only asks, so that its own time is none of the stage's."""
    needs: tuple[str, ...] = ()
    """Modules that must be there."""

    @property
    def can_run(self) -> bool:
        return all(map(_is_there, self.needs))


def _is_there(module: str) -> bool:
    with suppress(ModuleNotFoundError):
        return find_spec(module) is not None
    return False


def asked(n: int, *, logprobs: bool = True) -> Start:
    """The client alone: so many paths per request, answers parsed, nothing kept."""

    def start(place: Place, pools: int, _: ExitStack) -> Work:
        from demur.backends import OpenAI, Prompt, Settings, Wanted
        from demur.prompts import Template

        prompts = list(map(Template("{question}").render, problems(pools)))
        wanted = [Wanted(path, path) for path in range(PATHS)]

        async def ask_all() -> None:
            backend = OpenAI(place.model, "m", concurrency=CONNECTIONS, largest_n=n)
            gate = asyncio.Semaphore(CONNECTIONS)

            async def ask(prompt: Prompt) -> None:
                async with gate:
                    async for _ in backend.sample(prompt, Settings(logprobs=logprobs), wanted):
                        pass

            await asyncio.gather(*map(ask, prompts))
            await backend.close()

        return Work(lambda: asyncio.run(ask_all()))

    return start


def taken_up(place: Place, pools: int, _: ExitStack) -> Work:
    """What sampling begins with: the questions put into a run, and all that it lacks."""
    from demur.descriptions import Description
    from demur.store import Store

    asked_for = problems(pools)

    def call() -> None:
        with (
            tempfile.TemporaryDirectory(dir=place.folder) as folder,
            Store(Path(folder) / "run.db", create=True) as store,
        ):
            run = store.open_run("run", Description(), PATHS)
            run.add_problems(asked_for)
            assert len(run.pending()) == pools

    return Work(call)


def sampled(n: int, *, into_postgres: bool) -> Start:
    """`demur sample`: asked, read, saved, scored by perplexity."""

    def start(place: Place, pools: int, _: ExitStack) -> Work:
        from demur.backends import OpenAI
        from demur.pipeline.pipeline import Pipeline

        asked_for, stores = problems(pools), empty_stores(place, in_postgres=into_postgres)

        def call() -> None:
            backend = OpenAI(place.model, "m", concurrency=CONNECTIONS, largest_n=n)
            run = Pipeline(backend, n_paths=PATHS).run(asked_for, next(stores))
            assert run.progress.saved == pools * PATHS

        return Work(call, others_of(place) if into_postgres else tuple)

    return start


def empty_stores(place: Place, *, in_postgres: bool) -> Iterator[str]:
    """A store for each round, its tables made, which takes longer than a few pools do."""
    from demur.store import Store

    made = []
    for _ in range(MOST_ROUNDS + 1):
        made.append(place.new_database() if in_postgres else str(place.folder / f"{uuid4().hex}.db"))
        Store(made[-1], create=True).close()
    return iter(made)


def extracted(_: Place, pools: int, __: ExitStack) -> Work:
    from demur.answers import mathematics

    written = [text for pool in texts(pools) for text in pool]
    return Work(lambda: [mathematics.extract(text).answer for text in written])


def compared(_: Place, pools: int, __: ExitStack) -> Work:
    from demur import answers
    from demur.answers.equivalence.mathematics import keys

    written = answers_of(pools)

    def call() -> None:
        keys.key.cache_clear()  # as questions that were never seen before
        for pool in written:
            answers.classes(pool)

    return Work(call)


def consistent(_: Place, pools: int, __: ExitStack) -> Work:
    from demur.scoring.self_consistency import mean_jaccard, number_words

    written = texts(pools)
    return Work(lambda: [mean_jaccard(number_words(pool)) for pool in written])


def scored(name: str) -> Start:
    """`demur score`: texts read from a run, a model asked about each path, scores saved."""

    def start(place: Place, pools: int, _: ExitStack) -> Work:
        from demur.engine.score import score_run
        from demur.scoring import ScorerSettings, make_scorer
        from demur.store import Store

        records, numbers = pools_of(pools, with_texts=True), itertools.count()
        runs = [place.file(f"{name}-{next(numbers)}.db", pools) for _ in range(MOST_ROUNDS + 1)]
        for run in runs:
            fill_run(run, records)
        route = "chat" if name == "judge" else None
        settings = ScorerSettings(model="m", base_url=place.model, concurrency=CONNECTIONS, route=route)
        left = iter(runs)

        def call() -> None:
            with Store(next(left)) as store:
                progress = asyncio.run(score_run(store.run(), make_scorer(name, settings)))
            assert progress.saved == pools * PATHS, progress

        return Work(call)

    return start


def stored(*, in_postgres: bool) -> Start:
    """Paths and texts, a pool per transaction."""

    def start(place: Place, pools: int, _: ExitStack) -> Work:
        from demur.descriptions import Description
        from demur.store import Store

        batches, asked_for = placed(pools_of(pools, with_texts=True)), problems(pools)
        stores = empty_stores(place, in_postgres=in_postgres)

        def call() -> None:
            with Store(next(stores)) as store:
                run = store.open_run("run", Description(), PATHS)
                run.add_problems(asked_for)
                for batch in batches:
                    run.save(batch)

        return Work(call, others_of(place) if in_postgres else tuple)

    return start


def calibrated_from(file: str | None) -> Start:
    """`demur calibrate`: answers and scores read, compared, voted on and labelled; a run in PostgreSQL for no file."""

    def start(place: Place, pools: int, _: ExitStack) -> Work:
        where = place.database(f"run{pools}") if file is None else place.file(file, pools)

        def call() -> None:
            source = dm.read_pools(where, facts=False)
            voted = dm.vote_pools(source, dm.FieldChoice(score=SCORE), source.recipe(SCORE, "pool_z"))
            assert dm.calibrate(voted, alpha=0.05).n == pools

        return Work(call, others_of(place) if file is None else tuple)

    return start


def _named(pools: int, seed: int = 0) -> tuple[dm.Votes, np.ndarray]:
    """Votes with ids, as those of a file have them, and which are right."""
    drawn = dm.simulate_pools(pools, n_paths=PATHS, seed=seed)
    votes = dm.vote(drawn.answers, drawn.scores, ids=[f"{seed}-{row}" for row in range(pools)])
    return votes, np.asarray(votes.answer == drawn.gold)


def voted_arrays(_: Place, pools: int, __: ExitStack) -> Work:
    drawn, ids = dm.simulate_pools(pools, n_paths=PATHS, seed=0), [f"q{row}" for row in range(pools)]
    return Work(lambda: dm.vote(drawn.answers, drawn.scores, ids=ids))


def calibrated_arrays(_: Place, pools: int, __: ExitStack) -> Work:
    votes, right = _named(pools)
    return Work(lambda: dm.calibrate(votes, right, alpha=0.05))


def _policy_and_votes(pools: int) -> tuple[dm.Policy, dm.Votes]:
    votes, right = _named(1000, seed=1)
    return dm.calibrate(votes, right, alpha=0.05), _named(pools)[0]


def decided_arrays(_: Place, pools: int, __: ExitStack) -> Work:
    policy, votes = _policy_and_votes(pools)
    return Work(lambda: policy.decide_votes(votes).answered)


def decided_lines(_: Place, pools: int, __: ExitStack) -> Work:
    """Each decision with its explanation, as a line of a file."""
    from demur.cli.decide import decision_line

    policy, votes = _policy_and_votes(pools)
    names = policy.recipe.names
    return Work(lambda: [json.dumps(decision_line(d, names), default=int) for d in policy.decide_votes(votes)])


def served(*, log: bool) -> Start:
    """`demur serve`: the time of its process for one question, whatever asks it."""

    def start(place: Place, pools: int, stack: ExitStack) -> Work:
        import service_speed

        folder = place.file(f"service-{log}", pools)
        folder.mkdir()
        policy = service_speed.made_policy(place.model, folder)
        server = stack.enter_context(service_speed.ours(place.model, policy, log=log, folder=folder))
        numbers = itertools.count(1000)
        return Work(lambda: asyncio.run(service_speed.together(server.url, pools, numbers)), lambda: [server.pid])

    return start


def others_of(place: Place) -> Callable[[], list[int]]:
    """The processes of the database's server, those that serve a connection included."""
    return lambda: [place.postmaster, *children_of(place.postmaster)]


def children_of(process: int) -> Iterator[int]:
    for entry in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            fields = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == process:
                yield int(entry)


MOST_ROUNDS = 3
WITH_TEXTS, BARE = 2_000, 40_000
"""Pools of the files and runs that are read: what Arrow holds anyway is more than a few thousand rows of a table."""
STAGES = (
    Stage("client, one path per request", 40, asked(1)),
    Stage("client, one path per request, no log-probabilities", 40, asked(1, logprobs=False)),
    Stage("client, all paths in one request", 40, asked(PATHS)),
    Stage("extraction", 1_000, extracted),
    Stage("equivalence", 5_000, compared),
    Stage("store in SQLite", 500, stored(in_postgres=False)),
    Stage("store in PostgreSQL", 300, stored(in_postgres=True)),
    Stage("take up a run", 8_000, taken_up, holds=True),
    Stage("sample into SQLite, one path per request", 40, sampled(1, into_postgres=False)),
    Stage("sample into SQLite, all paths in one request", 40, sampled(PATHS, into_postgres=False)),
    Stage("sample into PostgreSQL, one path per request", 60, sampled(1, into_postgres=True)),
    Stage("sample into PostgreSQL, all paths in one request", 60, sampled(PATHS, into_postgres=True)),
    Stage("score by self-consistency", 500, consistent),
    Stage("score by a judge, client", 40, scored("judge")),
    Stage("score by a reward model, client", 40, scored("reward")),
    Stage("calibrate from JSON lines", BARE, calibrated_from("bare.jsonl"), holds=True),
    Stage("calibrate from JSON lines, gzipped, with texts", WITH_TEXTS, calibrated_from("texts.jsonl.gz"), holds=True),
    Stage("calibrate from Parquet", BARE, calibrated_from("bare.parquet"), holds=True),
    Stage("calibrate from Parquet, with texts", WITH_TEXTS, calibrated_from("texts.parquet")),
    Stage("calibrate from Parquet shards", BARE, calibrated_from("shards"), holds=True, needs=("demur.pools.shards",)),
    Stage("calibrate from SQLite", WITH_TEXTS, calibrated_from("run.db"), holds=True),
    Stage("calibrate from PostgreSQL", WITH_TEXTS, calibrated_from(None), holds=True),
    Stage("vote on arrays", 100_000, voted_arrays, holds=True),
    Stage("calibrate on votes", 100_000, calibrated_arrays, holds=True),
    Stage("decide on votes", 100_000, decided_arrays, holds=True),
    Stage("decisions as lines", 5_000, decided_lines, holds=True),
    Stage("serve, log off", 300, served(log=False), only_others=True),
    Stage("serve, log on", 300, served(log=True), only_others=True),
)
