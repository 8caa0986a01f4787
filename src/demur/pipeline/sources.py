"""Pools to vote on, wherever they are: a file, a run of a store, or a table in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.errors import InvalidValue, PoolFileError, StoreError
from demur.pipeline.shards import SAMPLE_AGAIN, Lacking, lacking_of
from demur.pools.files import FLAGS, source_of_file
from demur.pools.frames import pools_of_frame
from demur.pools.shards import is_remote
from demur.pools.source import PoolSource, Say
from demur.records import Pool

if TYPE_CHECKING:
    from demur.store import Run

BIASED = "what is missing may not be missing at random, and figures without it may not hold for all questions"
_OR_LEAVE_OUT = "or leave it out with {partial=True}"


def read_pools(
    source: Any,
    run: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    facts: bool = True,
    texts: bool = False,
    partial: bool = False,
    say: Say = lambda _: None,
) -> PoolSource:
    """The pools of a file (JSON lines, CSV, Parquet), of a run, or of a table with one row per path.

    A folder of Parquet files is one table; they may lie on a filesystem that Arrow knows: `s3://bucket/pools`.

    A table is a DataFrame of pandas or Polars, anything else that has Arrow's C stream interface, a dictionary of
    columns, or rows as dictionaries. `columns` says what a table's own names mean: {"response": "answer", "rm":
    "score.rm"}; see `pools.frames` for the names that are known.

    Without `facts`, only the answers and scores of a run are read, and its texts come if asked for with `texts`. A run,
    or a folder of shards, whose problems do not all have their paths is refused, unless `partial` leaves those out.
    """
    if not isinstance(source, (str, os.PathLike)):
        _refuse_run(run, "this is a table")
        return PoolSource(pools_of_frame(source, columns))
    named = os.fspath(source)
    if not is_store(named):
        _refuse_run(run, f"{named} is a pool file")
        return source_of_place(named, columns, partial=partial, say=say)
    if columns:
        raise InvalidValue(f"{named} is a store, whose runs have no columns of their own", "leave {columns} out")
    from demur.store import Store  # a pool file does not wait for a database library

    with Store(named) as store:
        return source_of_run(store.run(run), facts=facts, texts=texts, partial=partial, say=say)


def _refuse_run(run: str | None, told: str) -> None:
    if run is not None:
        raise InvalidValue(f"{told}, and only a store has runs", "leave {run} out")


def source_of_place(
    place: str | os.PathLike[str],
    columns: Mapping[str, str] | None = None,
    *,
    partial: bool = False,
    say: Say = lambda _: None,
) -> PoolSource:
    """The pools of a file or folder; refused where a sampling behind it was not finished, unless `partial`."""
    source = source_of_file(place, columns)
    lacking = lacking_in(place, source)
    accept_part(lacking, partial=partial, say=say)
    return replace(source, left_out=lacking.problems)


def lacking_in(place: str | os.PathLike[str], source: PoolSource) -> Lacking:
    """What a file or folder lacks of the sampling that it is of, by what it says itself."""
    if os.path.isdir(place) and (lacking := lacking_of(Path(place), len(source.pools))).told:
        return lacking
    if not source.left_out:
        return Lacking()
    told = f"{source.left_out} problems lacked paths when {os.fspath(place)} was made"
    return Lacking(source.left_out, told, "make it again when all is sampled")


def accept_part(lacking: Lacking, *, partial: bool, say: Say) -> None:
    """Raise where something is lacking; with `partial`, say so."""
    if lacking.told and not partial:
        raise PoolFileError(f"{lacking.told}; {BIASED}", f"{lacking.go_on}, {_OR_LEAVE_OUT}")
    if lacking.told:
        say(f"note: {lacking.told}{' and are left out' if lacking.problems else ''}; {BIASED}")


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
        if not partial:
            of_inspect = run.description.sampling.get("backend") == "inspect_ai"
            go_on = "import the log of a retry" if of_inspect else SAMPLE_AGAIN
            raise StoreError(f"{told}; {BIASED}", f"{go_on}, {_OR_LEAVE_OUT}")
        say(f"note: {told} and are left out; {BIASED}")
    return PoolSource(pools, run.description, run.known_scorers(), run.flags(), left_out=lacking)


def kept_pools(run: Run, *, texts: bool = True, unfinished: bool = False) -> list[Pool]:
    """The pools of a run as files keep them: paths have the flags of their scores."""
    flagged, pools = run.flagged(), []
    for pool in run.pools(with_texts=texts, complete=not unfinished):
        paths = [
            path
            if (flags := flagged.get((pool.problem.id, place))) is None
            else replace(path, extra={**path.extra, FLAGS: flags})
            for place, path in enumerate(pool.paths)
        ]
        pools.append(Pool(pool.problem, tuple(paths)))
    return pools


def is_store(place: str) -> bool:
    """Whether a place is a store rather than pools: an address of a database, and not of a filesystem."""
    if is_remote(place):
        return False
    if "://" in place or Path(place).suffix in (".db", ".sqlite", ".sqlite3"):
        return True
    return _begins(place, b"SQLite format 3\x00")


def _begins(place: str, mark: bytes) -> bool:
    """Whether a file begins so."""
    try:
        if not Path(place).is_file():
            return False  # a pipe can be read once only
        with open(place, "rb") as stream:
            return stream.read(len(mark)) == mark
    except (OSError, ValueError):
        return False
