"""`demur export`: a run as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import demur
from demur.cli import output
from demur.cli.options import Json, RunName, StorePlace, option
from demur.cli.replacing import PARQUET, POOLS, refuse_overwriting
from demur.errors import InvalidValue, StoreError

NAME = "export"
HELP = """Write the pools of a run as JSON lines (plain or .gz), or as Parquet with one row per path.

Examples:

`demur export runs/addition.db -o pools.jsonl.gz`

`demur export runs/addition.db -o paths.parquet --no-texts`
"""


def run(
    store: StorePlace,
    out: Annotated[Path, option("--out", "FILE", "A .jsonl, .jsonl.gz or .parquet file.", "-o")],
    run_name: RunName = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="With the texts of the paths.")] = True,
    partial: Annotated[bool, typer.Option("--partial", help="Pools that still lack paths, too.")] = False,
    json: Json = False,
) -> None:
    from demur.pools.jsonl import write_pools
    from demur.pools.parquet import write_parquet

    refuse_overwriting(out, store, by=PARQUET if out.suffix == ".parquet" else POOLS)
    if not out.name.endswith((".jsonl", ".jsonl.gz", ".parquet")):
        raise InvalidValue(f"name a .jsonl, .jsonl.gz or .parquet file to write, not {out}")
    with demur.Store(store) as opened:
        chosen = opened.run(run_name)
        named = {name: v for name, v in chosen.description.sampling.items() if name in ("model", "temperature")}
        pools = [
            replace(pool, problem=replace(pool.problem, extra={**named, **pool.problem.extra}))
            for pool in chosen.pools(with_texts=texts, complete=not partial)
        ]
    if not pools:
        raise StoreError(f"the run {chosen.name!r} holds no whole pool yet")
    (write_parquet if out.suffix == ".parquet" else write_pools)(pools, out)
    if json:
        output.emit({"run": chosen.name, "problems": len(pools), "file": str(out)})
    else:
        output.say(f"Wrote {len(pools)} problems to {out}.")
