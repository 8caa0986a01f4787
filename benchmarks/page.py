"""docs/benchmarks.md, drawn from what benchmarks measured last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from measured import Machine, Measured, Result, Results

_APART = ("benchmark", "versions", "claims", "setting", "peers", "simulated")
"""Parts of a report that are not measured, or are shown on a line of their own."""
_OPENING = """# Benchmarks

Written by `make bench`, which runs every script of `benchmarks/` in an environment of its own and takes a while;
`make bench ONLY=voting_speed` measures one again and leaves the others as they were. Do not edit it by hand.
A claim is a measured figure beside its floor (at least) or its ceiling (at most). `a / b, speed` says how many times as
fast as b a is; `a / b, CPU` and `a / b, memory` how many times as much a needs. Seconds are CPU seconds unless they are
called wall seconds. The spread is the least and the most over the rounds, in which rivals take turns; look at it before
you trust a ratio. What it takes to run demur at scale is in the [sizing guide](sizing.md)."""


@dataclass(frozen=True)
class Figure:
    """One number or word of a report, and between what it lay over rounds."""

    name: str
    value: Any
    spread: tuple[float, float] | None = None


def draw_page(results: Results) -> str:
    """The page: the machine, what is not met, what failed, and then each script."""
    measured = [result.measured for result in results.scripts.values() if result.measured is not None]
    newest = max(measured, key=lambda one: one.date, default=None)
    parts = [_OPENING, *_machine(newest), *_not_met(results), *_failed(results), *_missing(results)]
    for name, result in results.scripts.items():
        if result.measured is not None:
            parts += _script(name, result, result.measured, newest.machine if newest else None)
    return "\n\n".join(parts) + "\n"


def wanted(claim: Mapping[str, Any]) -> str:
    """The floor or the ceiling of a claim, in words."""
    return f"at least {number(claim['floor'])}" if "floor" in claim else f"at most {number(claim['ceiling'])}"


def figures(report: Mapping[str, Any]) -> list[Figure]:
    """The figures of a report, in its order, under names that join those of the parts they stand in."""
    return [
        figure for part, value in report.items() if part not in _APART for figure in _figures(_in_words(part), value)
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: Any) -> str:
    """A number for people: thousands apart, four digits at most where it is measured."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or (abs(value) < 1e15 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _machine(newest: Measured | None) -> list[str]:
    if newest is None:
        return ["Nothing has been measured yet."]
    return [f"**The machine, {newest.date}:** {newest.machine}."]


def _not_met(results: Results) -> list[str]:
    told = [
        (f"{_link(name)}{', on a busy machine' if result.measured.busy else ''}", claim)
        for name, result in results.scripts.items()
        if result.measured is not None
        for claim in result.measured.claims
    ]
    rows = [
        (claim["claim"], number(claim["measured"]), wanted(claim), where) for where, claim in told if not claim["met"]
    ]
    if not told:
        return []
    if not rows:
        return [f"All {len(told)} claims are met."]
    said = f"{len(rows)} of {len(told)} claims {'is' if len(rows) == 1 else 'are'} not met:"
    return ["## Not met", said, table(("claim", "measured", "wanted", "script"), rows)]


def _failed(results: Results) -> list[str]:
    rows = [
        (_link(name) if result.measured else f"`{name}`", result.failure.date, f"`{result.failure.error}`")
        for name, result in results.scripts.items()
        if result.failure is not None
    ]
    if not rows:
        return []
    said = "These could not run the last time. Where there are figures below, they are older."
    return ["## Failed", said, table(("script", "date", "error"), rows)]


def _missing(results: Results) -> list[str]:
    rows = [
        (f"`{name}`", result.measures)
        for name, result in results.scripts.items()
        if result.measured is None and result.failure is None
    ]
    if not rows:
        return []
    return ["## Not measured yet", "No claim of these is among those above.", table(("script", "measures"), rows)]


def _script(name: str, result: Result, measured: Measured, usual: Machine | None) -> list[str]:
    report = measured.report
    parts = [f"## {name}", f"{result.measures[:1].upper()}{result.measures[1:]}.", _circumstances(measured, usual)]
    if measured.claims:
        rows = [
            (claim["claim"], number(claim["measured"]), wanted(claim), "met" if claim["met"] else "**not met**")
            for claim in measured.claims
        ]
        parts.append(table(("claim", "measured", "wanted", ""), rows))
    rows = [(figure.name, _shown(figure.value), _spread(figure)) for figure in figures(report)]
    if rows:
        parts.append(table(("figure", "measured", "spread"), rows))
    return parts


def _circumstances(measured: Measured, usual: Machine | None) -> str:
    """Date, machine where it is another, setting, versions and peers, a line each."""
    report = measured.report
    when = f"Measured {measured.date}"
    when += f" on another machine: {measured.machine}." if measured.machine != usual else "."
    if measured.busy:
        when += (
            f" Others kept {measured.load:.1f} of the machine's {measured.machine.cores} cores busy when it began:"
            " trust ratios more than seconds."
        )
    lines = [when]
    for part, said in (("setting", "Setting"), ("versions", "Versions"), ("peers", "Peers")):
        if told := [f"{figure.name} {_shown(figure.value)}" for figure in _figures("", report.get(part, {}))]:
            lines.append(f"{said}: {'; '.join(told)}.")
    return "  \n".join(lines)


def _figures(name: str, value: Any) -> Iterator[Figure]:
    """The figures of one part of a report, whatever its form."""
    if isinstance(value, Mapping):
        if value.keys() == {"median", "min", "max"}:
            yield Figure(name, value["median"], (value["min"], value["max"]))
        elif value.keys() == {"median", "rounds"}:
            yield Figure(name, value["median"], (min(value["rounds"]), max(value["rounds"])))
        else:
            for inner, member in value.items():
                yield from _figures(f"{name}: {_in_words(inner)}" if name else _in_words(inner), member)
    elif isinstance(value, list) and value and all(isinstance(each, (int, float)) for each in value):
        yield Figure(name, median(value), (min(value), max(value)))
    elif isinstance(value, list):
        if value and all(isinstance(each, str) for each in value):
            yield Figure(name, ", ".join(value))
        else:
            for place, member in enumerate(value):
                yield from _figures(f"{name} {place + 1}", member)
    elif value is not None:
        yield Figure(name, value)


def _in_words(name: object) -> str:
    words = str(name).replace("_", " ")
    return words.replace("cpu ", "CPU ", 1) if words.startswith("cpu ") else words


def _shown(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else number(value)


def _spread(figure: Figure) -> str:
    return "" if figure.spread is None else " to ".join(number(end) for end in figure.spread)


def _link(name: str) -> str:
    return f"[{name}](#{name})"
