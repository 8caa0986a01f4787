"""`demur study`: the paper's protocol on a grid of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli import output
from demur.cli.options import Json
from demur.cli.sampling_options import say

NAME = "study"
HELP = """Evaluate a grid of cells (dataset, model, scores) as the paper does, and write all its tables and figures.

Each cell is a pool file, a run, or a run that is sampled and scored first. Run the same command again to go on.
Exit code 1: some cells failed; they are named, and the others are there.

Examples:

`demur study study.toml`

`demur study study.toml -o results/mine --format png --format pdf --json`
"""
_KINDS = ("svg", "png", "pdf")


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study, as TOML.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where results go.  [default: results/NAME]")
    ] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", metavar="KIND", help="Figures as svg, png or pdf; repeatable.")
    ] = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw figures.")] = True,
    json: Json = False,
) -> None:
    from importlib.util import find_spec

    from demur.cli.progress import Meter, interruptible
    from demur.errors import InvalidValue, MissingExtra
    from demur.study import read_study, run_study

    kinds = tuple(dict.fromkeys(["svg", *(formats or ())])) if figures else ()
    unknown = [kind for kind in kinds if kind not in _KINDS]
    if unknown:
        raise InvalidValue(f"figures come as {', '.join(_KINDS)}, not {unknown[0]!r}")
    study = read_study(file)
    if kinds and (find_spec("altair") is None or find_spec("vl_convert") is None):
        raise MissingExtra("figures need Altair and vl-convert; install: pip install 'demur[report]', or --no-figures")
    target = out or (Path(study.out) if study.out else None)
    if target is not None and target.exists() and not target.is_dir():
        raise InvalidValue(f"{target} is a file; name a folder for the results")
    meter = Meter(quiet=json)
    try:
        found = run_study(
            study, say=(lambda _: None) if json else say, bridge=interruptible, watch=meter, figures=kinds, out=out
        )
    except KeyboardInterrupt:
        say("Stopped; what was sampled and scored is saved. Run the same command again to go on.")
        raise typer.Exit(130) from None
    finally:
        meter.close()
    folder = str(found.files[-1].parent) if found.files else None
    if json:
        output.emit({
            "study": study.name, "cells": [result.name for result in found.results], "failed": found.failed,
            "notes": found.notes, "verdict": found.verdict, "folder": folder,
            "files": [str(path) for path in found.files],
        })  # fmt: skip
    else:
        for table in found.tables:
            if table.name == "grid" or table.name.startswith("main-"):
                output.table(table.title, table.header, [[cell_text(value) for value in row] for row in table.rows])
        for note in found.notes:
            output.say(f"note: {note}")
        for name, reason in found.failed.items():
            output.say(f"failed: {output.visible(name, 80)}: {output.visible(reason, 300)}")
        if found.results:
            output.say(found.verdict)
            output.say(f"Wrote {len(found.files)} files to {folder}; begin with {folder}/results.md.")
    if found.failed:
        raise typer.Exit(1)


def cell_text(value: object) -> str:
    """A table's entry as a terminal shows it."""
    from demur.study.tables import shown

    return output.visible(shown(value), 60)
