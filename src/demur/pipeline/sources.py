"""Pools to vote on, wherever they are: a pool file, or a run of a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from demur.errors import InvalidValue, StoreError
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource

if TYPE_CHECKING:
    from demur.store import Run


def open_pools(
    place: str | os.PathLike[str],
    run: str | None = None,
    *,
    facts: bool = True,
    texts: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> PoolSource:
    """The pools of a file, or those of a run that are whole; without `facts`, only its answers and scores.

    A file's pools have their texts; a run's come if asked for.
    """
    named = os.fspath(place)
    if not is_store(named):
        if run is not None:
            raise InvalidValue(f"{named} is a pool file, and only a store has runs", "leave {run} out")
        return PoolSource(read_pools(named))
    from demur.store import Store  # a pool file does not wait for a database library

    with Store(named) as store:
        chosen = store.run(run)
        source = source_of_run(chosen, facts=facts, texts=texts)
        if not source.pools:
            raise StoreError(f"the run {chosen.name!r} holds no whole pool yet; sample it first")
        lacking = chosen.summary()["problems"] - len(source.pools)
    if lacking:
        say(f"note: {lacking} problems of the run {chosen.name!r} lack paths and are left out; sample them first")
    return source


def source_of_run(run: Run, *, facts: bool = True, texts: bool = False) -> PoolSource:
    """The whole pools of a run, with all that it knows of them."""
    return PoolSource(run.pools(facts=facts, with_texts=texts), run.description, run.scorers(), run.flags())


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
