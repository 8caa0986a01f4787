"""`demur import`: recorded pools into a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import demur
from demur.cli import output
from demur.cli.options import Json, NewRun, RunPlace, argument
from demur.errors import PoolFileError, StoreError

if TYPE_CHECKING:
    from demur.store import PlacedPath

NAME = "import"
HELP = """Put recorded pools into a run: from JSON lines (plain or .gz), Parquet, or CSV with one row per path; or
from a folder of shards, as `demur sample --engine ray` writes it.

What the file says of itself, as one that `demur export` wrote does, the run says too. Importing the same file again
adds nothing; importing another adds its problems.

Examples:

`demur import pools.jsonl -o runs/recorded.db`

`demur import shards/ -o runs/sampled.db`
"""
_BATCH = 8000


def run(
    file: Annotated[Path, argument("FILE", "Pool file: JSON lines, .parquet or .csv; or a folder of shards.")],
    out: RunPlace,
    run_name: NewRun = "run",
    json: Json = False,
) -> None:
    from demur.pipeline.shards import refuse_shared_ids, shard_files
    from demur.pools.files import source_of_file

    files = [file]
    if file.is_dir():
        files = shard_files(file)
        refuse_shared_ids(files)
    problems = new = 0
    names: list[str] = []
    for part in files:  # one at a time, however many there are
        source = source_of_file(part)
        _refuse_other_scores(source.pools)  # before anything is written
        added, names = _bring_in(source, out, run_name)
        problems, new = problems + len(source.pools), new + added
    if json:
        output.emit({"run": run_name, "problems": problems, "new_paths": new, "scores": names})
    else:
        output.say(f"{problems} problems, {new} new paths; scores: {', '.join(names) or 'none'}.")


def _bring_in(source: demur.PoolSource, out: str, run_name: str) -> tuple[int, list[str]]:
    """Put the pools of one file into a run; how many paths were new, and the scores that the run has."""
    from demur.pools.fields import named_sampling
    from demur.pools.files import flag_of
    from demur.store import PathScore, PlacedPath
    from demur.store.scores import IMPORTED

    pools, known = source.pools, source.description
    with demur.Store(out, create=True) as store:
        described = replace(known, sampling={**named_sampling(pools), **known.sampling})
        chosen = store.open_run(run_name, described, None)
        before = chosen.summary()["paths"]
        there = chosen.numbers()
        numbers = [there[pool.problem.id] for pool in pools if pool.problem.id in there]
        _refuse_other_paths(pools, chosen.pools(with_texts=True, complete=False, numbers=numbers), run_name)
        chosen.add_problems([pool.problem for pool in pools])
        places = chosen.numbers()
        placed = [
            PlacedPath(places[pool.problem.id], place, path) for pool in pools for place, path in enumerate(pool.paths)
        ]
        for batch in _batches([_without_flags(path) for path in placed]):
            chosen.save(batch)
        for name in source.score_names:
            scores = [
                PathScore(number, place, float(path.scores[name]), flag_of(path.extra, name))
                for number, place, path in placed
                if name in path.scores
            ]
            chosen.save_scores(name, source.scorers.get(name, IMPORTED), scores)
        after = chosen.summary()
    return after["paths"] - before, sorted(after["scores"])


def _without_flags(placed: PlacedPath) -> PlacedPath:
    """A path whose flags stand with its scores, as a run has them."""
    from demur.pools.files import FLAGS, flag_of

    if not any(flag_of(placed.path.extra, name) for name in placed.path.scores):
        return placed
    kept = {name: value for name, value in placed.path.extra.items() if name != FLAGS}
    return placed._replace(path=replace(placed.path, extra=kept))


def _batches(placed: Sequence[PlacedPath]) -> Iterator[Sequence[PlacedPath]]:
    """Many paths at once, but never a pool in two parts: a pool is whole when its paths are there."""
    start = 0
    for at in range(1, len(placed) + 1):
        if at == len(placed) or (at - start >= _BATCH and placed[at].number != placed[at - 1].number):
            yield placed[start:at]
            start = at


def _refuse_other_paths(pools: Sequence[demur.Pool], stored: Sequence[demur.Pool], run_name: str) -> None:
    """Raise if a problem is in the run with other paths: two pools must not be mixed."""
    from demur.answers.relations import as_written

    there = {pool.problem.id: [(path.answer, path.text) for path in pool.paths] for pool in stored}
    for pool in pools:
        paths = [(as_written(path.answer), path.text) for path in pool.paths]
        if there.get(pool.problem.id, paths) != paths:
            raise StoreError(
                f"problem {pool.problem.id!r} is in the run {run_name!r} with other paths; choose another --run"
            )


def _refuse_other_scores(pools: Sequence[demur.Pool]) -> None:
    """Raise if a score is not a finite number."""
    for pool in pools:
        for name, value in (score for path in pool.paths for score in path.scores.items()):
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e300:
                where = f"problem {pool.problem.id!r}: the score {name!r}"
                raise PoolFileError(f"{where} must be a finite number, got {value!r:.40}")
