"""How results are shown: tables for people, one JSON object for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer

from demur.errors import DemurError

DASH = "–"
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


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are figures."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=Text(harmless(title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, name in enumerate(header):
        grid.add_column(Text(harmless(name)), justify="left" if position == 0 else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(harmless(cell)) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160  # a pipe has no width to fit into; folded figures would be harder to read
    console.print(grid)


def table_of(title: str, items: Iterable[Any], columns: Columns) -> None:
    """Print a table with one row per item."""
    table(title, list(columns), [[shown(item) for shown in columns.values()] for item in items])


_FLAGS = {
    "n_paths": "--paths",
    "prompt": "--prompt",
    "logprobs=False": "--no-logprobs",
    "partial=True": "--partial",
    "gold_containment=True": "--gold-containment",
    "unscored=drop": "--drop-unscored",
    "unscored=VALUE": "--fill-unscored VALUE",
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
    told = {"notes": list(_in_the_end)} if _in_the_end and "notes" not in document else {}
    _in_the_end.clear()
    written = json.dumps(_plain({**document, **told}), ensure_ascii=False, allow_nan=False)
    if not written.isprintable():
        written = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)
    typer.echo(written)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
