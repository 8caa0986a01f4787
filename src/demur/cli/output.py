"""How results are shown: tables for people, one JSON object for machines."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer

from demur.errors import DemurError
from demur.files.strict_json import as_json

DASH = "–"
_NARROWEST, _OF_PIPES = 40, 160
Columns = Mapping[str, Callable[[Any], str]]
"""Of a table: titles, and what each shows of an item."""


def percent(rate: float, spread: float | None = None) -> str:
    """A rate in per cent, a dash where it is not defined."""
    if math.isnan(rate):
        return DASH
    tail = "" if spread is None or math.isnan(spread) else f" ± {100 * spread:.1f}"
    return f"{100 * rate:.1f} %{tail}"


def visible(text: object, width: int = 40) -> str:
    """What a model or a user wrote, on one line and without a way to command the terminal."""
    shown = "".join(c if c.isprintable() else _escaped(c) for c in str(text)[: width + 1])
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def harmless(text: str) -> str:
    """A text, lines kept, without a way to command the terminal or to show letters in another order."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode()


def number(value: float) -> str:
    return DASH if not math.isfinite(value) else f"{value:.4g}"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int = 1) -> None:
    """Print a table that fits the terminal; columns of figures are set to the right, the first `keys` name the rows."""
    from demur.cli.tables import laid_out

    shown = laid_out(list(map(harmless, header)), [list(map(harmless, row)) for row in rows], width(), keys=keys)
    if title:
        typer.echo("\n" + typer.style(harmless(title), bold=True))
    for block in shown.blocks:
        typer.echo("\n" + "\n".join(block))
    if shown.legend:
        say("", *(f"{short} is {name}" for short, name in shown.legend.items()))
    typer.echo()


def width() -> int:
    """How wide text may be: as the terminal is, or as COLUMNS says. A pipe has no width to fit into."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said) > 0:
        return max(int(said), _NARROWEST)
    return max(shutil.get_terminal_size().columns, _NARROWEST) if sys.stdout.isatty() else _OF_PIPES


def table_of(
    title: str, items: Iterable[Any], columns: Columns, *, only_if_said: Sequence[str] = (), keys: int = 1
) -> None:
    """Print a table with one row per item; columns that are only there if they say something are left out if not."""
    cells = [[shown(item) for shown in columns.values()] for item in items]
    mute = {
        at for at, name in enumerate(columns) if name in only_if_said and all(row[at] in (DASH, "0") for row in cells)
    }
    kept = [at for at in range(len(columns)) if at not in mute]
    table(title, [list(columns)[at] for at in kept], [[row[at] for at in kept] for row in cells], keys=keys)


_FLAGS = {
    "n_paths": "--paths",
    "prompt": "--prompt",
    "logprobs=False": "--no-logprobs",
    "mixed_models=True": "--mixed-models",
    "partial=True": "--partial",
    "partly_labelled=True": "--partly-labelled",
    "sizes_by_chance=True": "--sizes-by-chance",
    "gold_containment=True": "--gold-containment",
    "unscored=drop": "--drop-unscored",
    "drop_seen=True": "--drop-seen",
    "drop_unreadable=True": "--drop-unreadable",
    "unscored=VALUE": "--fill-unscored VALUE",
    "rekey=True": "--rekey",
    "seconds": "--request-seconds",
    "canaries_per_day": "--canary-rate",
}
"""Options whose flags are not their names with dashes."""


def told(error: DemurError) -> str:
    """An error in one line, its remedy in terms of flags."""

    def flag(name: str, value: str | None) -> str:
        if "." in name:
            return f"--set {name}={value or ''}"
        given = _FLAGS.get(f"{name}={value}") or _FLAGS.get(name, "--" + name.replace("_", "-"))
        return given if value is None or f"{name}={value}" in _FLAGS else f"{given} {value}"

    return error.told(flag)


def frontier_facts(curve: Any) -> dict[str, float]:
    """The areas that sum a frontier up."""
    areas = {"auroc": curve.auroc, "frontier_auc": curve.auc}
    return {**areas, "frontier_auc_normalised": curve.auc_normalised, "aurc": curve.aurc}


def frontier_points(curve: Any) -> dict[str, list[float]]:
    """A frontier point by point."""
    return {"answered": curve.answered.tolist(), "selective_accuracy": curve.selective_accuracy.tolist()}


def say(*lines: str) -> None:
    for line in lines:
        typer.echo(harmless(line))


def mention(text: str) -> None:
    """What goes on, where it does not mix with results."""
    typer.echo(harmless(text), err=True)


_in_the_end: list[str] = []


def say_in_the_end(line: str) -> None:
    """What is said once, behind a result, if there is one: an error stays one line."""
    _in_the_end.append(line)


def end(*, well: bool) -> None:
    """Say what was kept for the end, or forget it."""
    if well:
        say(*_in_the_end)
    _in_the_end.clear()


def warn(warnings: Iterable[str]) -> None:
    """Warnings that belong to a result."""
    say(*(f"warning: {warning}" for warning in warnings))


def wrote(file: object) -> None:
    """Where a result went, if anywhere."""
    if file is not None:
        say(f"Wrote {file}.")


def emit(document: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are not defined become null, and what no terminal should see is escaped."""
    told = {"notes": [*document.get("notes", ()), *_in_the_end]} if _in_the_end else {}
    _in_the_end.clear()
    written = as_json({**document, **told}, ensure_ascii=False)
    if not written.isprintable():
        written = "".join(c if c.isprintable() else as_json(c)[1:-1] for c in written)
    typer.echo(written)
