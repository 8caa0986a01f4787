"""Times of day, and what is written in numbers but is no arithmetic: ratios, ranges, scores, dates.

A time with "p.m." is the time of the 24-hour clock that it says, where nothing else is written so: 8:34 p.m. is 20:34.
Without "a.m." or "p.m." a time before one o'clock in the afternoon says neither, so it stays as it is written.
"""

from __future__ import annotations

import re

_RATIO = re.compile(r"\d+(?:\s*:\s*\d+)+", re.ASCII)
_RANGE = re.compile(r"\d+(?:-\d+)+|\d{1,2}/\d{1,2}/\d{2,4}", re.ASCII)
"""Without blanks: `10-12` is a range or a score, `2020-05-06` a date; `10 - 12` is a difference."""
_HALF = r"(?:\\text\s*\{\s*)?([aApP])\s?\.?\s?[mM]\.?\s*\}?"
_CLOCK = re.compile(rf"(0?[1-9]|1[0-2])(?:\s*:\s*([0-5]\d))?\s*{_HALF}", re.ASCII)


def clock_key(text: str) -> str | None:
    """The key of a time, or of numbers that stay as they are written; None where a text is neither."""
    if (time := _CLOCK.fullmatch(text)) is not None:
        hour, minutes, half = int(time.group(1)), time.group(2) or "00", time.group(3).lower()
        return f"r:{hour + 12}:{minutes}" if half == "p" and hour < 12 else f"r:{hour}:{minutes} {half}m"
    return "r:" + "".join(text.split()) if _RATIO.fullmatch(text) or _RANGE.fullmatch(text) else None
