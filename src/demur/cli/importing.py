"""`demur import`: recorded pools into a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import Json

if TYPE_CHECKING:
    from demur.records import Pool

NAME = "import"
HELP = """Put recorded pools into a run: from JSON lines (plain or .gz) or Parquet.

Importing the same file again adds nothing; importing another adds its problems.

Example: `demur import pools.jsonl -o runs/recorded.db`
"""
_BATCH = 500


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pool file or .parquet.", show_default=False)],
    out: Annotated[str, typer.Option("--out", "-o", metavar="RUN", help="A .db file, or a postgresql:// address.")],
    run_name: Annotated[str, typer.Option("--run", metavar="NAME", help="Name of the run.")] = "run",
    json: Json = False,
) -> None:
    from demur.files import read_pools
    from demur.parquet import read_parquet
    from demur.pool_table import named_pipeline
    from demur.store import Store
    from demur.store.rows import saved

    pools = read_parquet(file) if file.suffix == ".parquet" else read_pools(file)
    for pool in pools:  # before anything is written
        for path in pool.paths:
            for name, value in path.scores.items():
                _number(value, name, pool.problem.id)
    with Store(out, create=True) as store:
        held = store.open_run(run_name, named_pipeline(pools), None)
        before = held.describe()["paths"]
        _refuse_other_paths(pools, held.pools(with_texts=True, complete=False), run_name)
        held.add_problems([pool.problem for pool in pools])
        numbers = held.numbers()
        for start in range(0, len(pools), _BATCH):
            batch = pools[start : start + _BATCH]
            held.save([
                saved(numbers[pool.problem.id], position, path)
                for pool in batch
                for position, path in enumerate(pool.paths)
            ])  # fmt: skip
        for name in sorted({name for pool in pools for path in pool.paths for name in path.scores}):
            held.save_scores(
                name,
                {"scorer": "imported"},
                [
                    (numbers[pool.problem.id], position, _number(path.scores[name], name, pool.problem.id))
                    for pool in pools
                    for position, path in enumerate(pool.paths)
                    if name in path.scores
                ],
            )
        after = held.describe()
    facts = {
        "run": run_name,
        "problems": len(pools),
        "new_paths": after["paths"] - before,
        "scores": sorted(after["scores"]),
    }
    if json:
        output.emit(facts)
    else:
        output.say(
            f"{len(pools)} problems, {facts['new_paths']} new paths; scores: {', '.join(facts['scores']) or 'none'}."
        )


def _refuse_other_paths(pools: Sequence[Pool], held: Sequence[Pool], run_name: str) -> None:
    """Raise if a problem is in the run with other paths: two pools must not be mixed."""
    from demur.answers.relations import as_written
    from demur.errors import StoreError

    there = {pool.problem.id: [(path.answer, path.text) for path in pool.paths] for pool in held}
    for pool in pools:
        paths = [(as_written(path.answer), path.text) for path in pool.paths]
        if there.get(pool.problem.id, paths) != paths:
            raise StoreError(
                f"problem {pool.problem.id!r} is in the run {run_name!r} with other paths; choose another --run"
            )


def _number(value: Any, name: str, problem: str) -> float:
    from demur.errors import PoolFileError

    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e300:
        raise PoolFileError(f"problem {problem!r}: the score {name!r} must be a finite number, got {value!r:.40}")
    return float(value)
