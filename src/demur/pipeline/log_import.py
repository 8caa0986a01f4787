"""A log of inspect put into a run, pool by pool: what is in memory at once does not grow with the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path as FilePath

from demur.errors import PoolFileError, StoreError
from demur.files.strict_json import as_json
from demur.pools.neighbours.inspect_log import InspectLog
from demur.records import Path, Pool, Problem
from demur.store import PlacedPath, Run, Store

_AT_ONCE = 16_000
"""Paths that are stored in one go."""

Placed = tuple[Pool, tuple[int, ...]]


@dataclass
class ImportedLog:
    """What came of a log."""

    problems: int = 0
    new_paths: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Samples that hold no path, by reason."""
    cut_off: bool = False
    status: str = "success"
    expected: int | None = None
    """The samples that the log's data set has."""
    lacking: int = 0
    """Problems of the log that lack a path, those whose turn never came among them."""


def import_log(
    file: FilePath, place: str, run_name: str, *, labels_by: str | None = None, recover: bool = False
) -> ImportedLog:
    """Put a log into a run; its epochs are the paths of whole pools, so that what failed is known to be missing. So are
    the problems that a stopped log never came to, by their ids alone until the log of a retry says what they ask.

    Importing it again adds nothing. What was stored before an error is kept.
    """
    with InspectLog(file, labels_by=labels_by, recover=recover) as log:
        pools = log.pools()
        first = list(_until_answered(pools))  # before a store is made
        if not first or not first[-1][1]:
            why = ", ".join(f"{times} × {reason}" for reason, times in log.failed.most_common(3))
            raise PoolFileError(f"{file} holds no sample that a model answered" + (f": {why}" if why else ""))
        with Store(place, create=True) as store:
            return _stored(log, chain(first, pools), store.open_run(run_name, log.description, log.epochs))


def _stored(log: InspectLog, pools: Iterable[Placed], run: Run) -> ImportedLog:
    done = ImportedLog(failed=log.failed, cut_off=log.cut_off, status=log.status, expected=log.expected)
    fresh, before = run.is_empty(), run.summary()["paths"]
    begun: list[str] = []
    for block in _blocks(pools):
        run.add_problems([pool.problem for pool, _ in block])
        numbers = run.numbers()
        if not fresh:
            _refuse_other_paths(run, block, numbers)
        placed = (
            PlacedPath(numbers[pool.problem.id], place, path)
            for pool, places in block
            for place, path in zip(places, pool.paths, strict=True)
        )
        run.save(list(placed))
        begun += [pool.problem.id for pool, _ in block]
        done.lacking += sum(len(places) < log.epochs for _, places in block)
    never_begun = log.never_begun(begun)
    there = run.numbers()
    run.add_problems([Problem(name) for name in never_begun if name not in there])
    done.problems, done.lacking = len(begun), done.lacking + len(never_begun)
    done.new_paths = run.summary()["paths"] - before
    return done


def _until_answered(pools: Iterable[Placed]) -> Iterator[Placed]:
    """The pools up to the first that has a path."""
    for pool in pools:
        yield pool
        if pool[1]:
            return


def _blocks(pools: Iterable[Placed]) -> Iterator[list[Placed]]:
    """Many paths at once, but never a pool in two parts."""
    block: list[Placed] = []
    size = 0
    for pool in pools:
        block.append(pool)
        size += len(pool[1]) or 1
        if size >= _AT_ONCE:
            yield block
            block, size = [], 0
    if block:
        yield block


def _refuse_other_paths(run: Run, block: list[Placed], numbers: dict[str, int]) -> None:
    """Raise where the run has another text for a path of a log, or another verdict on it: two evaluations must not be
    mixed, and what a scorer takes back must not stay in use."""
    mine = [numbers[pool.problem.id] for pool, _ in block]
    stored = {pool.problem.id: pool for pool in run.pools(with_texts=True, complete=False, numbers=mine)}
    for pool, places in block:
        there = stored.get(pool.problem.id)
        known = {} if there is None else {path.extra.get("epoch", 0) - 1: path for path in there.paths}
        for place, path in zip(places, pool.paths, strict=True):
            before = known.get(place, path)
            others = "paths" if before.text != path.text else "scores" if _verdicts(before) != _verdicts(path) else None
            if others is not None:
                told = f"problem {pool.problem.id!r:.60} is in the run {run.name!r} with other {others}"
                raise StoreError(told, "choose another {run}")


def _verdicts(path: Path) -> str:
    """What was said of a path's being right, as text: a score that is no number is never equal to itself."""
    return as_json([path.extra.get("labels"), path.extra.get("correct")], sort_keys=True)
