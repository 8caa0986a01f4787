"""Tables that fit their width: wrapped at blanks and nowhere else, long names shortened with a legend.

What is tried, in this order, until a table fits: titles wrap; texts wrap; long words are shortened in the middle and
named in full beneath; the columns go into several blocks, each with the first column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

_GAP = "  "
_SHORTEST = 12
"""Words up to this length are never shortened."""
_COMFORTABLE = 18
"""Words are shortened to this length before other texts become narrower than it."""
_BETWEEN_WORDS = re.compile(r"(?<!±)\s+(?![%±×])")
"""A figure stays in one line with its sign and its spread."""
_FIGURE = re.compile(r"[-–+−×]?|[-–+−]?[0-9][0-9.,e+−-]*( ?%)?( ± [0-9.]+)?|(always|never) answers")

Row = Sequence[str]


@dataclass
class Layout:
    """The lines of a table, and the names that were shortened in it."""

    blocks: list[list[str]] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)
    """Full names by the short ones."""


def laid_out(header: Row, rows: Sequence[Row], width: int, *, keys: int = 1) -> Layout:
    """A table within so many columns of letters; the first `keys` columns name its rows."""
    columns = [_Column([name, *(row[at] for row in rows)]) for at, name in enumerate(header)]
    layout = Layout()
    for fit in (_natural, _wrapped_titles, _wrapped):
        if _total(widths := [fit(column) for column in columns]) <= width:
            layout.blocks.append(_lines(columns, _stretched(columns, widths, width, fit)))
            return layout
    for fit, shortest in ((_comfortable, _COMFORTABLE), (_wrapped, _SHORTEST)):
        caps = _caps(columns, width, shortest, fit)
        if _total([_capped(column, cap, _wrapped) for column, cap in zip(columns, caps, strict=True)]) <= width:
            break
    else:  # names as long as is comfortable, for there will be several blocks anyway
        caps = _caps(columns, 0, max(_SHORTEST, min(_COMFORTABLE, width // (keys + 1) - len(_GAP))), _wrapped)
    columns, layout.legend = _shortened(columns, caps)
    for block in _blocks(columns, width, keys):
        widths = [_wrapped(column) for column in block]
        layout.blocks.append(_lines(block, _stretched(block, widths, width, _wrapped)))
    return layout


class _Column:
    """The cells of a column as words, its title first."""

    def __init__(self, cells: Iterable[str]) -> None:
        self.cells = [_BETWEEN_WORDS.split(cell.strip()) for cell in cells]
        self.is_figures = all(_FIGURE.fullmatch(" ".join(words)) for words in self.cells[1:])

    @property
    def longest_title_word(self) -> int:
        return max(map(_width, self.cells[0]))

    @property
    def longest_word(self) -> int:
        return max(_width(word) for words in self.cells for word in words)

    @property
    def longest_cell(self) -> int:
        return max((_width(" ".join(words)) for words in self.cells[1:]), default=0)

    def with_words(self, short: Callable[[str], str]) -> _Column:
        column = _Column([])
        column.cells = [self.cells[0], *([short(word) for word in words] for words in self.cells[1:])]
        column.is_figures = self.is_figures
        return column


def _natural(column: _Column) -> int:
    return max(_width(" ".join(words)) for words in column.cells)


def _wrapped_titles(column: _Column) -> int:
    return max(column.longest_title_word, column.longest_cell)


def _wrapped(column: _Column) -> int:
    return column.longest_cell if column.is_figures and _fits_title(column) else column.longest_word


def _comfortable(column: _Column) -> int:
    """With lines of some length, where words would fit into shorter ones."""
    return max(_wrapped(column), min(column.longest_cell, _COMFORTABLE))


def _fits_title(column: _Column) -> bool:
    return column.longest_cell >= column.longest_title_word


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _stretched(columns: Sequence[_Column], widths: list[int], width: int, fit: Callable[[_Column], int]) -> list[int]:
    """The room that is left, given where it saves most lines: to the columns with the highest cells."""
    if fit is _natural:
        return widths
    most = [_natural(column) for column in columns]
    for _ in range(width - _total(widths)):
        heights = [
            max(len(_wrap(words, room)) for words in column.cells) if room < limit else 0
            for column, room, limit in zip(columns, widths, most, strict=True)
        ]
        if not any(heights):
            break
        widths[heights.index(max(heights))] += 1
    return [_tightened(column, room) for column, room in zip(columns, widths, strict=True)]


def _tightened(column: _Column, room: int) -> int:
    """No wider than its lines are."""
    return max(_width(line) for words in column.cells for line in _wrap(words, room))


def _caps(columns: Sequence[_Column], width: int, shortest: int, fit: Callable[[_Column], int]) -> list[int]:
    """How long the words of each column may be, for all to fit; no shorter than asked for, be it too long."""
    caps = [column.longest_word for column in columns]
    while _total([_capped(column, cap, fit) for column, cap in zip(columns, caps, strict=True)]) > width:
        widest = max(range(len(caps)), key=lambda at: (not columns[at].is_figures, caps[at]))
        if caps[widest] <= max(shortest, columns[widest].longest_title_word):
            break
        caps[widest] -= 1
    return caps


def _shortened(columns: Sequence[_Column], caps: Sequence[int]) -> tuple[list[_Column], dict[str, str]]:
    """Columns whose long words are cut in the middle; the short names, and what they stand for."""
    cut = [cap for column, cap in zip(columns, caps, strict=True) if cap < column.longest_word]
    most = min(cut, default=0) - 1  # one name is cut one way everywhere, with room for a comma behind it
    legend: dict[str, str] = {}
    taken: dict[str, str] = {}

    def short(word: str) -> str:
        name = word.rstrip(",;:")
        if name not in taken:
            taken[name] = _cut(name, most, legend)
            legend[taken[name]] = name
        return taken[name] + word[len(name) :]

    return [
        column.with_words(lambda word, cap=cap: short(word) if _width(word) > cap else word)  # type: ignore[misc]
        for column, cap in zip(columns, caps, strict=True)
    ], legend


def _capped(column: _Column, cap: int, fit: Callable[[_Column], int]) -> int:
    """The width of a column whose words are cut to so many letters."""
    return fit(column) if cap >= column.longest_word else max(cap, column.longest_title_word)


def _cut(word: str, most: int, others: Iterable[str]) -> str:
    """A word with its middle left out, unlike those that were cut before."""
    known = set(others)
    for number in range(1, len(known) + 2):
        mark = "…" if number == 1 else f"…{number}…"
        head = (most - len(mark) + 1) // 2
        tail = most - len(mark) - head
        short = f"{_taken(word, head)}{mark}{_taken(word[::-1], tail)[::-1]}"
        if short not in known:
            return short
    return word


def _taken(word: str, room: int) -> str:
    """As many letters as there is room for; some take two."""
    taken = ""
    for letter in word:
        if _width(taken + letter) > room:
            break
        taken += letter
    return taken


def _blocks(columns: Sequence[_Column], width: int, keys: int) -> list[list[_Column]]:
    """Columns in groups that fit, the first ones in each of them; in as few groups as it takes, of like size."""
    if _total([_wrapped(column) for column in columns]) <= width:
        return [list(columns)]
    first = list(columns[:keys])
    room = max(_total(list(map(_wrapped, first))), min(_total(list(map(_natural, first))), width // 3))

    def grouped(most: int) -> list[list[_Column]]:
        blocks = [list(first)]
        for column in columns[keys:]:
            total = _total([room, *map(_wrapped, blocks[-1][keys:]), _wrapped(column)])
            if len(blocks[-1]) > keys and (total > width or len(blocks[-1]) >= keys + most):
                blocks.append(list(first))
            blocks[-1].append(column)
        return blocks

    fewest = len(grouped(len(columns)))
    return next(blocks for most in range(1, len(columns) + 1) if len(blocks := grouped(most)) == fewest)


def _lines(columns: Sequence[_Column], widths: Sequence[int]) -> list[str]:
    """Title lines, a rule, and a line or more per row."""
    lines = _row([column.cells[0] for column in columns], columns, widths, at_the_foot=True)
    lines.append("─" * _total(widths))
    for number in range(1, len(columns[0].cells)):
        lines += _row([column.cells[number] for column in columns], columns, widths)
    return lines


def _row(
    cells: Sequence[Sequence[str]], columns: Sequence[_Column], widths: Sequence[int], *, at_the_foot: bool = False
) -> list[str]:
    wrapped = [_wrap(words, width) for words, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    lines = []
    for line in range(height):
        shown = []
        for at, texts in enumerate(wrapped):
            place = line - (height - len(texts)) if at_the_foot else line
            text = texts[place] if 0 <= place < len(texts) else ""
            blank = " " * (widths[at] - _width(text))
            shown.append(blank + text if at and columns[at].is_figures else text + blank)
        lines.append(_GAP.join(shown).rstrip())
    return lines


def _wrap(words: Sequence[str], width: int) -> list[str]:
    """Words in lines of at most this width, as far as words go."""
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if _width(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
