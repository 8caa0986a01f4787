"""Pools to vote on, wherever they are: a pool file, or a run of a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from demur.errors import InvalidValue, StoreError
from demur.pools.files import source_of_file
from demur.pools.source import PoolSource, Say

if TYPE_CHECKING:
    from demur.store import Run


def open_pools(
    place: str | os.PathLike[str],
    run: str | None = None,
    *,
    facts: bool = True,
    texts: bool = False,
    partial: bool = False,
    say: Say = lambda _: None,
) -> PoolSource:
    """The pools of a file or a run; without `facts`, only its answers and scores.

    A file's pools have their texts; a run's come if asked for. A run whose problems do not all have their paths is
    refused, unless `partial` leaves those out.
    """
    named = os.fspath(place)
    if not is_store(named):
        if run is not None:
            raise InvalidValue(f"{named} is a pool file, and only a store has runs", "leave {run} out")
        return source_of_file(named)
    from demur.store import Store  # a pool file does not wait for a database library

    with Store(named) as store:
        return source_of_run(store.run(run), facts=facts, texts=texts, partial=partial, say=say)


def source_of_run(
    run: Run, *, facts: bool = True, texts: bool = False, partial: bool = False, say: Say = lambda _: None
) -> PoolSource:
    """The pools of a run, with all that it knows of them; `partial`, only those that are whole."""
    pools, problems = run.pools(facts=facts, with_texts=texts), len(run.numbers())
    if not pools:
        raise StoreError(f"the run {run.name!r} holds no whole pool yet; sample it first")
    lacking = problems - len(pools)
    if lacking:
        told = f"{lacking} of {problems} problems of the run {run.name!r} lack paths"
        biased = "what is missing may not be missing at random, and figures without it may not hold for all questions"
        if not partial:
            raise StoreError(
                f"{told}; {biased}",
                "sample the rest by running the same `demur sample` command again, or leave it out with {partial=True}",
            )
        say(f"note: {told} and are left out; {biased}")
    return PoolSource(pools, run.description, run.known_scorers(), run.flags(), left_out=lacking)


def is_store(place: str) -> bool:
    """Whether a place is a store rather than a pool file."""
    if "://" in place or Path(place).suffix in (".db", ".sqlite", ".sqlite3"):
        return True
    try:
        if not Path(place).is_file():
            return False  # a pipe can be read once only
        with open(place, "rb") as stream:
            return stream.read(16) == b"SQLite format 3\x00"
    except (OSError, ValueError):
        return False
