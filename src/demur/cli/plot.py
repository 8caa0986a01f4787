"""A small plot in plain characters, for terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from demur.cli import output

if TYPE_CHECKING:
    from demur.evaluation.outlook import Outlook

_WIDTH, _HEIGHT = 60, 12
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BAR_HEIGHT = 4
_BAR_WIDTH = 40


def text_plot(
    x: Sequence[float], y: Sequence[float], marks: Mapping[str, tuple[float, float]], *, x_title: str, y_title: str
) -> str:
    """A line of points over [0, 1], and single points by their signs."""
    known = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if not known:
        return ""
    low = min(0.9, *(b for _, b in known))
    low = math.floor(low * 10) / 10
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]

    def put(a: float, b: float, sign: str) -> None:
        column = min(int(a * _WIDTH), _WIDTH - 1)
        row = min(int((1 - b) / max(1 - low, 1e-9) * _HEIGHT), _HEIGHT - 1)
        grid[row][column] = sign

    for column in range(_WIDTH):  # the curve, read off at the middle of each column
        at = (column + 0.5) / _WIDTH
        below = [point for point in known if point[0] <= at]
        above = [point for point in known if point[0] >= at]
        if below and above:
            (a0, b0), (a1, b1) = max(below), min(above)
            put(at, b0 if a1 == a0 else b0 + (b1 - b0) * (at - a0) / (a1 - a0), "·")
    for sign, (a, b) in marks.items():
        if math.isfinite(a) and math.isfinite(b):
            put(a, b, sign)
    lines = [y_title]
    for row, cells in enumerate(grid):
        label = f"{1 - row * (1 - low) / _HEIGHT:6.0%}" if row % 3 == 0 else " " * 6
        lines.append(f"{label} │{''.join(cells).rstrip()}")
    ends = f"{'0%':<{_WIDTH // 2}}{'50%':<{_WIDTH // 2 - 4}}100%"
    return "\n".join([*lines, f"       └{'─' * _WIDTH}", f"        {ends}  {x_title}"])


def plot_frontier(curve: Mapping[str, Sequence[float]], points: Sequence[tuple[float, float, float]]) -> None:
    """Accuracy against yield, with a letter at each alpha."""
    letters = dict(zip("ABCDEFGH", points, strict=False))
    marks = {letter: (x, y) for letter, (_, x, y) in letters.items()}
    titles = {"x_title": "answered", "y_title": "of the answered, right"}
    drawn = text_plot(curve["answered"], curve["selective_accuracy"], marks, **titles)
    seen = {letter: alpha for letter, (alpha, x, y) in letters.items() if math.isfinite(x + y)}
    if drawn:
        output.say(drawn)
        output.say("        " + ", ".join(f"{letter}: alpha {alpha:g}" for letter, alpha in seen.items()))


def plot_costs(curve: Sequence[Mapping[str, Any]], chosen: Mapping[str, float]) -> None:
    """Yield against cost, over shares of the first stage, with an X where the cascade is."""
    largest = max((point["cost"] for point in curve), default=0.0)
    if largest <= 0:
        return
    titles = {"x_title": f"cost per question, of {largest:.4g}", "y_title": "answered"}
    ordered = sorted((point["cost"] / largest, point["answered"]) for point in curve)
    marks = {"X": (chosen["cost"] / largest, chosen["answered"])}
    costs, yields = [x for x, _ in ordered], [y for _, y in ordered]
    output.say(text_plot(costs, yields, marks, **titles), "        X: this cascade")


def plot_yields(yields: Mapping[str, Sequence[tuple[int, float, float]]]) -> None:
    """Yield against the number of labels, a bar each, by promise; what may be more or less is shaded."""
    for promise, bars in yields.items():
        output.say(f"        answered, after so many labels: {promise}")
        for n, mean, sd in bars:
            least, most = (round(_BAR_WIDTH * min(1.0, max(0.0, at))) for at in (mean - sd, mean + sd))
            output.say(f"{n:>7} │{'█' * least}{'▒' * (most - least)} {output.percent(mean, sd)}")


def plot_outlook(outlook: Outlook, found: int | None = None) -> None:
    """How many wrong answers audits find if the promise holds, and how many this one found, if it is known."""
    if not outlook.rule.feasible:
        return
    alpha, n, limit = outlook.rule.alpha, outlook.n, outlook.surprising_above
    likely = [count for count, chance in enumerate(outlook.counts.tolist()) if chance > 1e-4]
    shown = max(*likely, limit, math.ceil(alpha * n), found or 0) + 2

    def column(count: float) -> int:
        return int((count + 0.5) / shown * _WIDTH)

    counts = [*outlook.counts.tolist()[:shown], *[0.0] * (shown - n - 1)]
    heights = [counts[int((at + 0.5) / _WIDTH * shown)] for at in range(_WIDTH)]
    top = max(heights)
    output.say(f"        wrong answers in audits of {n} {outlook.unit}s, if alpha = {alpha:g} is kept:")
    for row in range(_BAR_HEIGHT, 0, -1):
        levels = (round(height / top * 8 * _BAR_HEIGHT) - 8 * (row - 1) for height in heights)
        output.say("        " + "".join(_EIGHTHS[min(8, max(0, level))] for level in levels).rstrip())
    output.say("        " + "─" * _WIDTH)
    marks = {"α": (alpha * n, f"alpha {alpha:g}"), "▸": (limit, f"surprising above {limit} ({limit / n:.1%})")}
    line = [" "] * _WIDTH
    for sign, (count, _) in marks.items():
        line[column(count)] = sign
    output.say(f"        {''.join(line).rstrip()}")
    if found is not None:
        output.say(f"        {' ' * column(found)}▲")
        marks["▲"] = (found, f"this audit: {found} ({found / n:.1%})")
    output.say("        " + ", ".join(f"{sign} {meaning}" for sign, (_, meaning) in marks.items()))
