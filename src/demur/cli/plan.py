"""`demur plan`: how many labels a promise needs, and what it will bring."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

import demur
from demur.cli import options, output, promise_flags, vote_flags
from demur.cli.flag_groups import flags_given
from demur.cli.plot import plot_yields
from demur.cli.sampling_options import Paths
from demur.cli.stopping_table import compare, show_compared
from demur.errors import InvalidValue

NAME = "plan"
HELP = """Plan a calibration before anybody labels: how many labels, what they will bring, whether alpha can be kept.

Needs nothing but alpha; a guessed accuracy adds yields by simulation, and a small labelled pilot adds real ones. With
--stop it compares stopping rules on a pilot that has all its paths: what each would have drawn, and what it answers.

Examples:

`demur plan --alpha 0.05 --delta 0.1`

`demur plan --alpha 0.05 --accuracy 0.8`

`demur plan pilot.jsonl --score simulated --alpha 0.05 --alpha 0.1`

`demur plan pilot.jsonl --stop beta:0.95,agreement:4 --wave 4 --alpha 0.1`
"""
_SIZES = "Calibration questions; repeatable.  [default: friendly numbers near 100, 200, 500 and 1000]"
_PATHS = 16


def run(
    file: options.MaybePools = None,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    smoothed: options.Smoothed = False,
    n: Annotated[
        list[int] | None,
        typer.Option(
            "--n", help="Calibration questions; repeatable.  [default: friendly ones near 100, 200, 500, 1000]"
        ),
    ] = None,
    accuracy: Annotated[float | None, options.option("--accuracy", "P", "A guess: the share of votes right.")] = None,
    separation: options.Separation = None,
    paths: Paths = None,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    labels: vote_flags.LabelFlags = vote_flags.LabelFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    config: options.Config = None,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    guarantees = promise_flags.guarantees_of(alpha, delta, smoothed, seed)
    if flags.stop is not None and n is not None and len(n) > 1:
        raise InvalidValue("with --stop, rules are compared at one --n")
    if delta is not None or smoothed:  # what the usual promise would bring stands beside it
        guarantees = [*promise_flags.guarantees_of(alpha, None, False, seed), *guarantees]
    how: dict[str, Any] = {"guarantee": guarantees, "n": n or None, "seed": seed or 0}
    made: dict[str, Any] = {}
    if file is None:
        about_runs = {"run": run_name, "partial": partial, "config": config}
        if given := flags_given(**vars(flags), **vars(labels), **about_runs):
            raise InvalidValue(f"{', '.join(given)}: said of pools, and none are given; name them: demur plan POOLS …")
        for flag, number in (("--paths", paths), ("--separation", separation)):
            if number is not None and accuracy is None:
                raise InvalidValue(f"{flag} {number:g} is about a guess; give --accuracy too")
        n_paths = _PATHS if paths is None else paths
        apart = options.USUAL_SEPARATION if separation is None else separation
        planned = demur.plan(accuracy=accuracy, separation=apart, n_paths=n_paths, **how)
        made = {} if accuracy is None else {"accuracy": accuracy, "separation": apart, "paths": n_paths}
    else:
        if guessed := flags_given(accuracy=accuracy, paths=paths, separation=separation):
            raise InvalidValue(f"{guessed[0]} is a guess, and {file} is a pilot that tells; leave one out")
        rule = labels.rule()
        if flags.stop is not None:
            compared = compare(file, run_name, config, flags, rule, guarantees, n, seed, partial=partial)
            show_compared(compared, json=json)
            return
        source, voted = flags.vote(file, run_name, config, rule, partial=partial)
        planned = demur.plan(voted, **how)
        made = {
            "left_out": source.left_out,
            "pipeline": voted.votes.description.document(),
            "labels": (rule if voted.labels is None else voted.labels.rule).describe(),
        }
    if json:
        output.emit({**planned.document(), **made})
    else:
        _show(planned, made)


def _promise(row: dict[str, Any]) -> str:
    delta = f" {row['delta']:g}" if isinstance(row.get("delta"), float) else ""
    return f"{row['guarantee'].replace('_', ' ')}{delta}"


def _count(value: float, spread: float) -> str:
    return output.DASH if math.isnan(value) else f"{value:.0f} ± {spread:.0f}"


def _show(planned: demur.Plan, made: dict[str, Any]) -> None:
    facts = planned.document()
    rows, unit = facts["rows"], facts["unit"]
    if facts["source"] == "pilot":
        output.say(f"Planned from a pilot of {facts['pilot']} labelled {unit}s.")
    elif facts["source"] == "guess":
        output.say(
            f"A guess: simulated votes of {made['paths']} paths, {output.percent(made['accuracy'])} of them right; "
            f"right paths score {made['separation']:g} standard deviations higher."
        )
    else:
        output.say("Planned from alpha alone.")
    needed = {(row["alpha"], _promise(row)): row["n_needed"] for row in rows}
    output.say(
        *(f"To answer at all, alpha = {at:g} needs {least} labels ({name})." for (at, name), least in needed.items())
    )
    columns: output.Columns = {
        "promise": _promise,
        "alpha": lambda row: f"{row['alpha']:g}",
        "labels in all (n)": lambda row: str(row["n"]),
        "friendly": lambda row: "yes" if row["friendly"] else "no",
        "rank": lambda row: output.DASH if row["k"] is None else str(row["k"]),
        "of alpha unspent": lambda row: output.percent(row["unspent"]),
        "answered": lambda row: output.percent(row["answered"], row["answered_sd"]),
        "by the pilot's chance ±": lambda row: output.percent(row["standard_error"]),
        "answered wrongly": lambda row: output.percent(row["confident_error"]),
        "price": lambda row: output.percent(row["price"]),
        "labels from the top": lambda row: _count(row["labels_from_the_top"], row["labels_from_the_top_sd"]),
    }
    maybe = ["answered", "by the pilot's chance ±", "answered wrongly", "price", "labels from the top"]
    output.table_of("What labels will bring", rows, columns, only_if_said=maybe, keys=3)
    if facts["source"] != "nothing":
        yields: dict[str, list[tuple[int, float, float]]] = {}
        for row in rows:
            bar = (row["n"], row["answered"], row["answered_sd"])
            yields.setdefault(f"alpha {row['alpha']:g}, {_promise(row)}", []).append(bar)
        plot_yields(yields)
        output.say(
            "± is over calibration sets; the price is what a promise answers less than the marginal one of the same "
            "alpha and n. Labelling the most confident first, until as many errors are found as the rank says, gives "
            "the threshold that all labels would give."
        )
    vote = made.get("pipeline", {})
    for at in facts["feasibility"]:
        output.say(at["sentence"])
        ways = [
            f"{way} (without --tie-break none)" if vote and way.startswith("break ties") else way
            for way in at["changes"]
        ]
        if ways:
            output.say("What to change: " + "; ".join(ways) + ".")
    output.warn(facts["warnings"])
    output.say(*facts["notes"])
