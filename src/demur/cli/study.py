"""`demur study`: the paper's protocol on a grid of cells."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from demur.cli import output, replacing
from demur.cli.completion import FIGURES, among
from demur.cli.options import Json, Partial, argument, mention, option
from demur.cli.progress import Meter, stop_on_sigterm
from demur.cli.sampling_options import TrustAddress
from demur.errors import InvalidValue, MissingExtra

NAME = "study"
HELP = """Evaluate a grid of cells (dataset, model, scores) as the paper does, and write all its tables and figures.

Each cell is a pool file, a run, or a run that is sampled and scored first. Run the same command again to go on.
Exit code 1: some cells failed; they are named, and the others are there.

Examples:

`demur study study.toml`

`demur study study.toml -o results/mine --format png --format pdf --json`
"""


def run(
    file: Annotated[Path, argument("FILE", "The study, as TOML.")],
    out: Annotated[Path | None, option("--out", "FOLDER", "Where results go.  [default: results/NAME]", "-o")] = None,
    compute: Annotated[
        list[str] | None,
        option("--compute", "NAME", "A score that runs get besides; functions are named here; repeatable."),
    ] = None,
    trust_address: TrustAddress = None,
    formats: Annotated[
        list[str] | None, option("--format", "KIND", "Figures as svg, png or pdf; repeatable.", offers=among(FIGURES))
    ] = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw figures.")] = True,
    partial: Partial = False,
    json: Json = False,
) -> None:
    from demur.study import read_study, run_study
    from demur.study.tables import shown

    kinds = tuple(dict.fromkeys(["svg", *(formats or ())])) if figures else ()
    unknown = [kind for kind in kinds if kind not in FIGURES]
    if unknown:
        raise InvalidValue(f"figures come as {', '.join(FIGURES)}, not {unknown[0]!r}")
    study = read_study(file, compute=compute or (), trust_address=trust_address or ())
    if partial:
        study = replace(study, cells=[replace(cell, partial=True) for cell in study.cells])
    if kinds and (find_spec("altair") is None or find_spec("vl_convert") is None):
        raise MissingExtra("figures need Altair and vl-convert", "report", "or --no-figures")
    target = out or (Path(study.out) if study.out else None)
    if target is not None and target.exists() and not target.is_dir():
        raise InvalidValue(f"{target} is a file; name a folder for the results")
    for place in () if target is None else (target / "results.md", *target.glob("tables/*"), *target.glob("figures/*")):
        replacing.refuse_foreign(place)
    try:
        with Meter(quiet=json) as meter, stop_on_sigterm():
            results = run_study(study, say=mention, watch=meter, figures=kinds, out=out)
    except KeyboardInterrupt:
        mention("Stopped; what was sampled and scored is saved. Run the same command again to go on.")
        raise typer.Exit(130) from None
    folder = str(results.files[-1].parent) if results.files else None
    if json:
        told = {"failed": results.failed, "notes": results.notes, "verdict": results.verdict, "folder": folder}
        cells, files = [cell.name for cell in results.results], [str(path) for path in results.files]
        output.emit({"study": study.name, "cells": cells, **told, "files": files})
    else:
        for table in results.tables:
            if table.name == "grid" or table.name.startswith("main-"):
                rows = [[output.visible(shown(value), 80) for value in row] for row in table.rows]
                said = [at for at in range(len(table.header)) if any(row[at] for row in rows)]
                header = [table.header[at] for at in said]
                output.table(table.title, header, [[row[at] for at in said] for row in rows], keys=2)
        output.say(*(f"note: {note}" for note in results.notes))
        for name, reason in results.failed.items():
            output.say(f"failed: {output.visible(name, 80)}: {output.visible(reason, 600)}")
        if results.results:
            output.say(results.verdict)
            output.say(f"Wrote {len(results.files)} files to {folder}; begin with {folder}/results.md.")
    if results.failed:
        raise typer.Exit(1)
