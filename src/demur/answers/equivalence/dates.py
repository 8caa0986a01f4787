"""Dates and clock times as they are written, where they can be read in one way only.

A year of two digits is of the 1900s from 50 on and of the 2000s up to 29; others stay as they are. Days that no
calendar has stay text, and so do 01/02/2020 and its like, which is one date here and another there.
"""

from __future__ import annotations

import re
from datetime import date

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: number for number, month in enumerate(_MONTH_NAMES.split(), 1) for name in (month, month[:3])}
_MONTHS["sept"] = 9
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

_WEEKDAY = rf"(?:(?P<w>{'|'.join(_DAYS)}|mon|tues?|wed|thur?s?|fri|sat|sun)\.?,? )?"
_M = rf"(?P<m>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_D = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_Y = r"(?P<y>\d{4}|'?\d\d)"
_WORDED = [
    re.compile(pattern, re.ASCII)
    for pattern in (
        rf"{_WEEKDAY}(?:the )?{_D}(?: of)? {_M}\.?(?:,? {_Y})?",  # 4th of July, 1776
        rf"{_WEEKDAY}{_M}\.? (?:the )?{_D}(?:(?:, ?| ){_Y})?",  # July 4, 1776
        rf"{_D}-{_M}-{_Y}",  # 4-Jul-1776
        rf"(?P<y>\d{{4}}),? {_M}\.? {_D}",  # 1776 July 4
        rf"{_M}\.?,? (?:of )?(?P<y>\d{{4}}|'\d\d)",  # July 1776
    )
]
_FIGURES = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})", re.ASCII)

_CLOCK = re.compile(
    r"(?<![\w:.,$-])(0?[1-9]|1[0-2])(?:[:.]([0-5]\d))?(?::([0-5]\d))? ?(?:o'clock ?)?([ap])(?:\.m\b\.?|m\b)",
    re.I | re.A,
)
_OCLOCK = re.compile(r"(?<![\w:.,$-])(\d{1,2}) o'clock\b", re.I | re.A)
_AFTERNOON = re.compile(r"(?<![\w:.,$-])(1[3-9]|2[0-3]):([0-5]\d)(?![\w:]|\.\d)", re.A)
_LEADING_ZERO = re.compile(r"(?<![\w:.,$-])0(\d:[0-5]\d)(?![\w:])", re.A)
_TWELVE = re.compile(r"(?:12(?::00)? )?(noon|midday|midnight)")


def date_key(text: str) -> str | None:
    """The key of a text in lower case that is one date; None where it is not."""
    if figures := _FIGURES.fullmatch(text):
        return _by_figures(*figures.groups())
    for pattern in _WORDED:
        if found := pattern.fullmatch(text):
            return _by_words({"w": None, "d": None, "y": None, **found.groupdict()})
    return None


def _by_words(said: dict[str, str | None]) -> str | None:
    month, day = _MONTHS[said["m"] or ""], said["d"]
    year = None if said["y"] is None else full_year(said["y"])
    if said["y"] is not None and year is None:
        return None
    known = _valid(2000 if year is None else year, month, 1 if day is None else int(day))
    if known is None or (said["w"] and (year is None or not _DAYS[known.weekday()].startswith(said["w"][:3]))):
        return None
    return f"d:{'-' if year is None else f'{year:04d}'}-{month:02d}" + ("" if day is None else f"-{int(day):02d}")


def _by_figures(first: str, mark: str, second: str, third: str) -> str | None:
    """A date in figures, if one reading of it makes sense; where several do, the figures without leading zeros."""
    if len(first) == 4 and len(third) <= 2:
        only = _valid(int(first), int(second), int(third))
        return f"d:{only}" if only else None
    if len(first) > 2 or len(third) not in (2, 4) or (len(third) == 2 and mark != "/"):
        return None
    year, day_or_month, month_or_day = full_year(third), int(first), int(second)
    readings = {_valid(year, month_or_day, day_or_month), _valid(year, day_or_month, month_or_day)}
    if len(third) == 2:
        readings.add(_valid(full_year(first), int(second), int(third)))
    dates = readings - {None}
    if len(dates) == 1:
        return f"d:{dates.pop()}"
    return f"p:{day_or_month}{mark}{month_or_day}{mark}{third}" if dates else None


def full_year(year: str) -> int | None:
    """A year in four digits, or the one that two digits stand for; None where they may stand for two."""
    digits = year.lstrip("'")
    if len(digits) == 4:
        return int(digits)
    if len(digits) != 2 or 30 <= int(digits) < 50:
        return None
    return int(digits) + (1900 if int(digits) >= 50 else 2000)


def _valid(year: int | None, month: int, day: int) -> date | None:
    try:
        return None if year is None else date(year, month, day)
    except ValueError:
        return None


def with_plain_times(text: str) -> str:
    """A text in which 3 PM, 3:00 p.m. and 15:00 are written alike: 15:00h. What may be of either half stays: 3:00."""
    if twelve := _TWELVE.fullmatch(text.lower().rstrip(".!")):
        return "00:00h" if twelve.group(1) == "midnight" else "12:00h"
    text = _OCLOCK.sub(r"\1:00", _CLOCK.sub(_time, text))
    return _LEADING_ZERO.sub(r"\1", _AFTERNOON.sub(r"\1:\2h", text))


def _time(found: re.Match[str]) -> str:
    hour, minute, second, half = found.groups()
    seconds = f":{second}" if second and int(second) else ""
    return f"{int(hour) % 12 + 12 * (half in 'pP'):02d}:{minute or '00'}{seconds}h"
