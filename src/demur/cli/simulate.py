"""`demur simulate`: pools with a known truth."""

from __future__ import annotations

from typing import Annotated

import typer

import demur
from demur.cli import output
from demur.cli.options import POOLS_WRITTEN, USUAL_SEPARATION, Json, Seed, Separation, option
from demur.cli.replacing import refuse_overwriting, written_as
from demur.cli.sampling_options import Paths

NAME = "simulate"
HELP = """Write simulated pools with a known truth, to try everything without a model.

Example: `demur simulate -o pools.jsonl && demur calibrate pools.jsonl --score simulated`
"""
_PATHS = 16


def run(
    out: Annotated[str, option("--out", "FILE", POOLS_WRITTEN, "-o")],
    problems: Annotated[int, typer.Option("--problems", "-n", help="How many problems.")] = 4000,
    paths: Paths = None,
    separation: Separation = None,
    without_answer: Annotated[float, typer.Option(help="Share of paths without an answer.")] = 0.02,
    seed: Seed = None,
    json: Json = False,
) -> None:
    from demur.pools.files import write_pools
    from demur.pools.simulated import SCORE

    refuse_overwriting(out, by=written_as(out))
    n_paths = _PATHS if paths is None else paths
    apart = USUAL_SEPARATION if separation is None else separation
    drawn = demur.simulate_pools(problems, n_paths=n_paths, seed=seed or 0, separation=apart, missing=without_answer)
    write_pools(demur.PoolSource(drawn.pools()), out)
    right = (drawn.answers == drawn.gold[:, None]).tolist()
    single_path, oracle = demur.baselines.single_path(right), demur.baselines.oracle(right)
    if json:
        facts = {"file": str(out), "problems": problems, "paths": n_paths, "score": SCORE, "seed": seed or 0}
        output.emit({**facts, "single_path": single_path, "oracle": oracle})
        return
    output.say(
        f"Wrote {problems} problems with {n_paths} paths each to {out}; the score is called {SCORE!r}.\n"
        f"A single path is right {output.percent(single_path)} of the time; "
        f"in {output.percent(oracle)} of the problems some path is."
    )
