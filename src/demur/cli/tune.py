"""`demur tune`: choose how to vote on a part of the labelled pools, and leave that part out of the calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import demur
from demur.cli import options, output, promise_flags, replacing, vote_flags

NAME = "tune"
HELP = """Choose score, weight, normaliser and tie-break on a part of labelled pools, so that the rest may calibrate it.

To choose by the labels that calibrate would break the promise. Here a share of the problems, drawn by the seed, ranks
the ways to vote by their expected yield; `demur calibrate --tuned` takes the one chosen, and leaves those problems out.
What flags say is not varied: `--score NAME` compares the ways to vote with that score.

Examples:

`demur tune pools.jsonl --alpha 0.05 --alpha 0.1 -o tuned.json`

`demur tune runs/gsm8k.db -o tuned.json && demur calibrate runs/gsm8k.db --tuned tuned.json -o policy.json`
"""
_SHARE = "Share of the problems to choose on; the rest may calibrate."
_SHOWN = 20
"""Rows of the table that are shown: the default, the chosen one, and the best of the others."""


def run(
    file: options.Pools,
    out: Annotated[Path | None, options.option("--out", "TUNED", "Where to write what was chosen.", "-o")] = None,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    share: Annotated[float, typer.Option("--share", metavar="SHARE", help=_SHARE)] = 0.3,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    labels: vote_flags.LabelFlags = vote_flags.LabelFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    replacing.refuse_overwriting(out, file, by=replacing.TUNED)
    guarantees, rule = promise_flags.guarantees_of(alpha, delta, False, None), labels.rule()
    fields = flags.fields(flags.score)
    # A learned key looks at all that there is: sources of paths, and how long their texts are.
    source = demur.read_pools(file, run_name, texts=True, partial=partial, say=options.mention)
    stop = vote_flags.stopping_flags(flags.stop, flags.wave)
    source = source.stopped_by(stop, fields, partial=partial, say=options.mention)
    source, rule = source.readable(fields, rule, say=output.say_in_the_end)
    given: dict[str, Any] = {"weight": flags.weight, "normaliser": flags.normaliser, "tie_break": flags.tie_break}
    tuned = demur.tune(
        source, fields, guarantee=guarantees, share=share, seed=seed or 0, correct=rule, say=options.mention, **given
    )
    if out is not None:
        tuned.save(out)
    if json:
        document = {"tuned": None if out is None else str(out), "chosen": tuned.best.name, "sentence": tuned.sentence}
        counts = {name: getattr(tuned, name) for name in ("n", "n_cal", "unit", "share", "seed", "alphas", "skipped")}
        pipeline = {"pipeline": tuned.description.document(), "fingerprint": tuned.description.fingerprint}
        output.emit({**document, **counts, **pipeline, "rows": _rows(tuned)})
    else:
        _show(tuned, None if out is None else str(out))


def _rows(tuned: demur.Tuned) -> list[dict[str, Any]]:
    columns = tuned.columns()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _show(tuned: demur.Tuned, out: str | None) -> None:
    rows = _rows(tuned)
    best = sorted(range(1, len(rows)), key=lambda at: (-rows[at]["answered"], at))
    first = list(dict.fromkeys([0, tuned.chosen, *best]))[:_SHOWN]
    shown = [rows[at] for at in sorted(first, key=lambda at: (at != 0, -rows[at]["answered"], at))]
    alphas = ", ".join(f"{alpha:g}" for alpha in tuned.alphas)
    mean = "expected yield" if len(tuned.alphas) == 1 else "mean expected yield"
    output.table_of(
        f"{mean} at alpha = {alphas}, {tuned.n_cal} to calibrate, by the labels of {tuned.n} {tuned.unit}s "
        "(± standard error)".capitalize(),
        shown,
        _COLUMNS,
    )
    if len(rows) > len(shown):
        output.say(f"{len(rows) - len(shown)} others are behind these.")
    output.say(f"Chosen: {tuned.best.name}.", tuned.sentence)
    if out is None:
        output.say("Name a file with -o to calibrate with what was chosen.")
    output.wrote(out)


_COLUMNS: output.Columns = {
    "way to vote": lambda row: output.visible(row["name"], 80),
    "answered": lambda row: output.percent(row["answered"], row["standard_error"]),
    "over the first": lambda row: f"{100 * row['over_default']:+.1f} ± {100 * row['over_default_error']:.1f}",
    "chosen": lambda row: "chosen" if row["chosen"] else output.DASH,
}
