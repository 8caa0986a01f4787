"""`quorate import`: recorded pools into a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.cli import output
from quorate.cli.options import Json

NAME = "import"
HELP = """Put recorded pools into a run: from JSON lines (plain or .gz) or Parquet.

Importing the same file again adds nothing; importing another adds its problems.

Example: `quorate import pools.jsonl -o runs/recorded.db`
"""
_BATCH = 500


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pool file or .parquet.", show_default=False)],
    out: Annotated[str, typer.Option("--out", "-o", metavar="RUN", help="A .db file, or a postgresql:// address.")],
    run_name: Annotated[str, typer.Option("--run", metavar="NAME", help="Name of the run.")] = "run",
    json: Json = False,
) -> None:
    from quorate.files import read_pools
    from quorate.parquet import read_parquet
    from quorate.pool_table import named_pipeline
    from quorate.store import Store
    from quorate.store.run import saved

    pools = read_parquet(file) if file.suffix == ".parquet" else read_pools(file)
    with Store(out, create=True) as store:
        held = store.open_run(run_name, named_pipeline(pools), None)
        before = held.describe()["paths"]
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
                    (numbers[pool.problem.id], position, float(path.scores[name]))
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
