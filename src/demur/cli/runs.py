"""`demur runs`: what a store holds."""

from __future__ import annotations

from demur.cli import output
from demur.cli.options import Json, RunName, StorePlace

NAME = "runs"
HELP = """List the runs of a store, or describe one.

Examples:

`demur runs runs/addition.db`

`demur runs runs/addition.db --run run --json`
"""


def run(
    store: StorePlace,
    run_name: RunName = None,
    json: Json = False,
) -> None:  # fmt: skip
    from demur.store import Store

    with Store(store) as opened:
        names = [opened.run(run_name).name] if run_name is not None else opened.names()
        found = [opened.run(name).describe() for name in names]
    if json:
        output.emit({"runs": found})
        return
    output.table(
        "Runs",
        ["run", "model", "task", "problems", "whole", "paths", "with answer", "with logprobs", "tokens", "scores"],
        [
            [
                output.visible(each["run"]), output.visible(each["pipeline"].get("model", output.DASH)),
                output.visible(each["pipeline"].get("task", output.DASH)), str(each["problems"]), str(each["pools"]),
                str(each["paths"]), str(each["with_answer"]), str(each["with_logprobs"]), str(each["tokens"]),
                ", ".join(each["scores"]) or output.DASH,
            ]
            for each in found
        ],
    )  # fmt: skip
    if run_name is None:
        return
    for each in found:
        for name, value in each["pipeline"].items():
            output.say(f"{name}: {output.visible(value, 300)}")
        for command in each["commands"]:
            output.say(
                f"{command['started']}  {command['command']}: {command.get('paths', 0)} paths, "
                f"{command.get('tokens', 0)} tokens in {command.get('seconds', 0)} s, {command.get('failed', 0)} failed"
            )
