"""How results look in a notebook: a line of title and a small table. All text is escaped, and nothing in it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

MOST_ROWS = 10
_STYLE = "text-align:left;padding:0 1em 0 0;white-space:nowrap"


def html_of(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], *, more: int = 0, note: str = "") -> str:
    """A table under a title; `more` rows are left out of it."""
    head = "".join(f'<th style="{_STYLE}">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_STYLE}">{escape(shown(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if header else ""
    left_out = f"<div>… and {more:,} more</div>" if more > 0 else ""
    below = f"<div>{escape(note)}</div>" if note else ""
    return f"<div><div><strong>{escape(title)}</strong></div>{table}{left_out}{below}</div>"


def html_of_columns(title: str, columns: Mapping[str, Sequence[Any]], *, more: int = 0, note: str = "") -> str:
    """Columns side by side."""
    return html_of(title, list(columns), zip(*columns.values(), strict=True), more=more, note=note)


def shown(value: Any, most: int = 60) -> str:
    """A value in a cell: few digits, no line breaks, a dash for nothing."""
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if type(value) is int else str(value)
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def percent(rate: float) -> str:
    """A rate in words; a dash where it is not defined."""
    return "–" if rate != rate else f"{rate:.1%}"
