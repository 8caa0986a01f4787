"""`demur runs`: what a store holds."""

from __future__ import annotations

from typing import Any

import demur
from demur.backends.protocol import ReportedModels
from demur.cli import output
from demur.cli.options import Json, RunName, StorePlace
from demur.cli.progress import duration

NAME = "runs"
HELP = """List the runs of a store and who is at work on them, or describe one.

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
    _show_workers(runs)
    for summary in runs if run_name is not None else ():
        for stage, parts in summary["pipeline"].items():
            for name, value in parts.items():
                output.say(f"{stage}.{name}: {output.visible(value, 300)}")
        for command in summary["commands"]:
            if command["command"] == "takeover":
                _show_takeover(command)
                continue
            output.say(
                f"{command['started']}  {command['command']}: {command.get('paths', 0)} paths, "
                f"{command.get('tokens', 0)} tokens in {command.get('seconds', 0)} s, {command.get('failed', 0)} failed"
            )
            if models := ReportedModels(command.get("models")).told:
                output.say(f"  by the model that replies name: {output.visible(models, 300)}")


def _show_workers(runs: list[dict[str, Any]]) -> None:
    """Who is at work, how fast, until when; and what the runs may cost."""
    rows = [
        [
            *(output.visible(text, 80) for text in (summary["run"], one["worker"], one["task"], one["since"])),
            str(one["paths"]),
            f"{one['rate']:.1f}",
            str(one["problems"]),
            one["state"] if one["state"] != "silent" else f"not seen for {duration(one['unseen_seconds'])}",
        ]
        for summary in runs
        for one in summary["workers"]
    ]
    if rows:
        header = ["run", "worker", "task", "since", "paths", "paths/s", "problems claimed", "state"]
        output.table("At work", header, rows, keys=2)
    for summary in runs:
        for task, seconds in summary["seconds_left"].items():
            left = "no pace yet" if seconds is None else f"about {duration(seconds)} left at this pace"
            output.say(f"{output.visible(summary['run'], 80)}, {output.visible(task, 80)}: {left}.")
        if summary["budget"] is not None:
            spent, limits = summary["budget"]["spent"], summary["budget"]["limits"]
            told = [f"{spent[name]:.0f} of {most:g} {name}" for name, most in limits.items() if most is not None]
            reserved = summary["budget"]["reserved"]["paths"]
            told += [f"{reserved} more paths reserved by those at work"] if reserved else []
            output.say(f"Budget of {output.visible(summary['run'], 80)}: {', '.join(told)}.")


def _show_takeover(facts: dict[str, Any]) -> None:
    task, worker = (output.visible(facts.get(name), 80) for name in ("of", "worker"))
    output.say(
        f"{facts['started']}  {task} of {worker}: ended without a word after {facts.get('came', 0)} paths, and others "
        f"took over; at most {facts.get('in_vain_at_most', 0)} paths that it had asked for were paid for in vain"
    )


def _row(summary: dict[str, Any]) -> list[str]:
    known, counts = summary["pipeline"], ("problems", "pools", "paths", "with_answer", "with_logprobs", "tokens")
    model, task = known.get("sampling", {}).get("model", output.DASH), known.get("answers", {}).get("task", output.DASH)
    shown = [output.visible(text, 80) for text in (summary["run"], model, task)]
    return [*shown, *(str(summary[name]) for name in counts), ", ".join(summary["scores"]) or output.DASH]
