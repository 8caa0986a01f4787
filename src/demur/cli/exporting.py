"""`demur export`: a run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import Json, RunName, StorePlace, refuse_overwriting

NAME = "export"
HELP = """Write the pools of a run as JSON lines (plain or .gz), or as Parquet with one row per path.

Examples:

`demur export runs/addition.db -o pools.jsonl.gz`

`demur export runs/addition.db -o paths.parquet --no-texts`
"""


def run(
    store: StorePlace,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .jsonl, .jsonl.gz or .parquet file.")],
    run_name: RunName = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="With the texts of the paths.")] = True,
    partial: Annotated[bool, typer.Option("--partial", help="Pools that still lack paths, too.")] = False,
    json: Json = False,
) -> None:  # fmt: skip
    from dataclasses import replace

    from demur.errors import InvalidValue, StoreError
    from demur.files import write_pools
    from demur.parquet import write_parquet
    from demur.store import Store

    refuse_overwriting(out, store)
    if not out.name.endswith((".jsonl", ".jsonl.gz", ".parquet")):
        raise InvalidValue(f"name a .jsonl, .jsonl.gz or .parquet file to write, not {out}")
    with Store(store) as opened:
        held = opened.run(run_name)
        named: dict[str, Any] = {n: held.pipeline[n] for n in ("model", "temperature") if n in held.pipeline}
        pools = [
            replace(pool, problem=replace(pool.problem, extra={**named, **pool.problem.extra}))
            for pool in held.pools(with_texts=texts, complete=not partial)
        ]
    if not pools:
        raise StoreError(f"the run {held.name!r} holds no whole pool yet")
    (write_parquet if out.suffix == ".parquet" else write_pools)(pools, out)
    if json:
        output.emit({"run": held.name, "problems": len(pools), "file": str(out)})
    else:
        output.say(f"Wrote {len(pools)} problems to {out}.")
