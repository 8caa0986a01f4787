"""`demur export`: a run as a file, or what it lacks as a batch of requests."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import demur
from demur.cli import output, sampling_options
from demur.cli.options import POOLS_WRITTEN, Json, RunName, Seed, StorePlace, Texts, option
from demur.cli.replacing import LINES, refuse_overwriting, written_as
from demur.errors import InvalidValue, StoreError

if TYPE_CHECKING:
    from demur.store import Run

NAME = "export"
HELP = """Write the pools of a run as JSON lines (plain or .gz), or as Parquet with one row per path.

The file says what the run knows of itself: how paths were sampled and read, and what each score is. Whatever takes
pools takes it in the run's place. Of a run that is not finished it holds the pools that are whole, and says how many
are left out, so that `--partial` is asked for there as it is of the run.

With `--batch` it writes what the run still lacks, as requests in OpenAI's batch format, which `vllm run-batch` takes
too: one line for the missing paths of a problem, asked for as `n`. Have them answered by a client of your own, put the
results and errors back with `demur import --batch`, and export again for whatever failed. A file holds at most 50,000
lines and 200 MB; more go to FILE-1, FILE-2 and so on. Of a run with a stopping rule it writes one wave, of the problems
that the rule has not ended: export and import in turn until it lacks no path. A run that is being sampled is refused:
its paths would be paid for twice.

Examples:

`demur export runs/addition.db -o pools.jsonl.gz`

`demur export runs/addition.db -o paths.parquet --no-texts`

`demur export runs/gsm8k.db --batch requests.jsonl`
"""
_MOST = "With --batch: at most so many paths in one request, where a server takes no larger n.  [default: any number]"
_LINES = "With --batch: at most so many requests in one file.  [default: 50000]"


def run(
    store: StorePlace,
    out: Annotated[str | None, option("--out", "FILE", POOLS_WRITTEN, "-o")] = None,
    run_name: RunName = None,
    texts: Texts = True,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Pools that still lack paths, too.")] = False,
    batch: Annotated[Path | None, option("--batch", "FILE", "Write requests for what the run lacks, .jsonl.")] = None,
    batch_lines: Annotated[int | None, typer.Option("--batch-lines", min=1, help=_LINES)] = None,
    largest_n: Annotated[int | None, typer.Option("--largest-n", min=1, help=_MOST)] = None,
    logprobs: sampling_options.Logprobs = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    if batch is not None:
        if out is not None or unfinished or not texts:
            raise InvalidValue("--batch writes requests; -o, --unfinished and --no-texts are for pools")
        _write_requests(store, batch, run_name, batch_lines, largest_n, logprobs, seed or 0, json=json)
        return
    if (given := _given(batch_lines=batch_lines, largest_n=largest_n, logprobs=logprobs, seed=seed)) is not None:
        raise InvalidValue(f"{given} goes with --batch")
    if out is None:
        raise InvalidValue("name a file to write", "give {out}, or {batch} for requests")
    from demur.pipeline.sources import kept_pools
    from demur.pools.files import WRITTEN, write_pools

    refuse_overwriting(out, store, by=written_as(out))
    if not out.lower().endswith(WRITTEN):
        raise InvalidValue(f"name a .jsonl, .jsonl.gz or .parquet file to write, not {out}")
    with demur.Store(store) as opened:
        chosen = opened.run(run_name)
        pools = _named(kept_pools(chosen, texts=texts, unfinished=unfinished), chosen)
        left_out = len(chosen.numbers()) - len(pools)
        source = demur.PoolSource(pools, chosen.description, chosen.known_scorers(), left_out=left_out)
    if not source.pools:
        raise StoreError(f"the run {chosen.name!r} holds no whole pool yet")
    write_pools(source, out)
    facts = {"run": chosen.name, "problems": len(pools), "left_out": left_out, "scores": source.score_names}
    if json:
        output.emit({**facts, "file": str(out)})
    else:
        output.say(f"Wrote {len(pools)} problems to {out}; scores: {', '.join(source.score_names) or 'none'}.")
        if left_out:
            output.warn([f"{left_out} problems that lack paths are left out, and the file says so"])


def _given(**flags: object) -> str | None:
    """The first of some flags that was given."""
    return next((f"--{name.replace('_', '-')}" for name, value in flags.items() if value is not None), None)


def _write_requests(
    store: str,
    file: Path,
    run_name: str | None,
    most_lines: int | None,
    largest_n: int | None,
    logprobs: bool | None,
    seed: int,
    *,
    json: bool,
) -> None:
    from demur.pipeline.batch_files import MOST_LINES, write_batch
    from demur.pipeline.from_run import batch_pipeline_of_run
    from demur.store.connection import pasted

    def check(part: Path) -> None:
        refuse_overwriting(part, store, by=LINES)

    if file.suffix != ".jsonl":
        raise InvalidValue(f"requests are JSON lines, which {file} is not named like", "name it .jsonl")
    with demur.Store(store) as opened:
        chosen = opened.run(run_name)
        fitted = batch_pipeline_of_run(chosen, logprobs=logprobs is not False, reads=False)
        lines = most_lines or MOST_LINES
        written = write_batch(chosen, fitted, file, seed=seed, largest_n=largest_n, most_lines=lines, check=check)
    files, earlier = ([str(path) for path in paths] for paths in (written.files, written.earlier))
    if json:
        counts = {"requests": written.requests, "paths": written.paths, "problems": written.problems}
        output.emit({"run": chosen.name, **counts, "files": files, "earlier": earlier})
    elif not files:
        output.say(f"The run {chosen.name!r} lacks no path; nothing was written.")
    else:
        told = f"{written.requests} requests for {written.paths} paths of {written.problems} problems"
        output.say(f"Wrote {told} to {', '.join(files)}.")
        if chosen.stopping is not None:
            output.say(f"  One wave, by {chosen.stopping}: import its answers, and export again for the next.")
        named = f"{pasted(store)[0]} --run {shlex.quote(chosen.name)}"
        output.say(f"When they are answered: demur import --batch OUTPUT.jsonl ERRORS.jsonl -o {named}")
    if earlier and not json:
        output.warn([f"of an earlier export, and not to be sent again: {', '.join(earlier)}"])


def _named(pools: list[demur.Pool], run: Run) -> list[demur.Pool]:
    """Pools whose problems name model and temperature."""
    named = {name: v for name, v in run.description.sampling.items() if name in ("model", "temperature")}
    return [replace(pool, problem=replace(pool.problem, extra={**named, **pool.problem.extra})) for pool in pools]
