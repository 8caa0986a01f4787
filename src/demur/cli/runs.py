"""`demur runs`: what a store holds."""

from __future__ import annotations

from typing import Any

import demur
from demur.cli import output
from demur.cli.options import Json, RunName, StorePlace

NAME = "runs"
HELP = """List the runs of a store, or describe one.

Examples:

`demur runs runs/addition.db`

`demur runs runs/addition.db --run run --json`
"""


def run(store: StorePlace, run_name: RunName = None, json: Json = False) -> None:
    with demur.Store(store) as opened:
        names = [opened.run(run_name).name] if run_name is not None else opened.names()
        runs = [opened.run(name).summary() for name in names]
    if json:
        output.emit({"runs": runs})
        return
    header = ["run", "model", "task", "problems", "whole", "paths", "with answer", "with logprobs", "tokens", "scores"]
    output.table("Runs", header, [_row(summary) for summary in runs])
    for summary in runs if run_name is not None else ():
        for stage, parts in summary["pipeline"].items():
            for name, value in parts.items():
                output.say(f"{stage}.{name}: {output.visible(value, 300)}")
        for command in summary["commands"]:
            output.say(
                f"{command['started']}  {command['command']}: {command.get('paths', 0)} paths, "
                f"{command.get('tokens', 0)} tokens in {command.get('seconds', 0)} s, {command.get('failed', 0)} failed"
            )


def _row(summary: dict[str, Any]) -> list[str]:
    known, counts = summary["pipeline"], ("problems", "pools", "paths", "with_answer", "with_logprobs", "tokens")
    model, task = known.get("sampling", {}).get("model", output.DASH), known.get("answers", {}).get("task", output.DASH)
    shown = [output.visible(text, 80) for text in (summary["run"], model, task)]
    return [*shown, *(str(summary[name]) for name in counts), ", ".join(summary["scores"]) or output.DASH]
