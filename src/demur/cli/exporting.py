"""`demur export`: a run as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import demur
from demur.cli import output
from demur.cli.options import Json, RunName, StorePlace, Texts, option
from demur.cli.replacing import refuse_overwriting, written_as
from demur.errors import InvalidValue, StoreError

if TYPE_CHECKING:
    from demur.store import Run

NAME = "export"
HELP = """Write the pools of a run as JSON lines (plain or .gz), or as Parquet with one row per path.

The file says what the run knows of itself: how paths were sampled and read, and what each score is. Whatever takes
pools takes it in the run's place.

Examples:

`demur export runs/addition.db -o pools.jsonl.gz`

`demur export runs/addition.db -o paths.parquet --no-texts`
"""


def run(
    store: StorePlace,
    out: Annotated[Path, option("--out", "FILE", "A .jsonl, .jsonl.gz or .parquet file.", "-o")],
    run_name: RunName = None,
    texts: Texts = True,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Pools that still lack paths, too.")] = False,
    json: Json = False,
) -> None:
    from demur.pipeline.sources import kept_pools
    from demur.pools.files import WRITTEN, write_pools

    refuse_overwriting(out, store, by=written_as(out))
    if not out.name.endswith(WRITTEN):
        raise InvalidValue(f"name a .jsonl, .jsonl.gz or .parquet file to write, not {out}")
    with demur.Store(store) as opened:
        chosen = opened.run(run_name)
        source = demur.PoolSource(
            _named(kept_pools(chosen, texts=texts, unfinished=unfinished), chosen),
            chosen.description,
            chosen.known_scorers(),
        )
    if not source.pools:
        raise StoreError(f"the run {chosen.name!r} holds no whole pool yet")
    write_pools(source, out)
    facts = {"run": chosen.name, "problems": len(source.pools), "scores": source.score_names, "file": str(out)}
    if json:
        output.emit(facts)
    else:
        output.say(f"Wrote {len(source.pools)} problems to {out}; scores: {', '.join(source.score_names) or 'none'}.")


def _named(pools: list[demur.Pool], run: Run) -> list[demur.Pool]:
    """Pools whose problems name model and temperature."""
    named = {name: v for name, v in run.description.sampling.items() if name in ("model", "temperature")}
    return [replace(pool, problem=replace(pool.problem, extra={**named, **pool.problem.extra})) for pool in pools]
