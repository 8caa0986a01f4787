"""What a key says of its answer: the kind of thing that it was read as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_KINDS = {
    "n": ("the number", "numbers"),
    "c": ("the constant", "constants"),
    "e": ("the expression with values", "expressions"),
    "q": ("the equation", "equations"),
    "l": ("the inequality", "inequalities"),
    "i": ("the pair or interval", "pairs or intervals"),
    "u": ("the union", "unions"),
    "t": ("the tuple", "tuples"),
    "m": ("the matrix", "matrices"),
    "a": ("the assignments", "assignments"),
    "v": ("one or the other of", "alternatives"),
    "b": ("the number in a base", "numbers in a base"),
    "r": ("the time, ratio or range", "times, ratios or ranges"),
    "k": ("the number with its words", "numbers with words"),
    "w": ("the word", "words"),
    "p": ("the phrase", "phrases"),
    "d": ("the date", "dates"),
    "o": ("the option", "options"),
    "j": ("the JSON", "JSON values"),
    "s": ("text that is compared as it stands,", "texts as they stand"),
}


def reading(key: str | None) -> str:
    """What an answer of this key was read as, in words."""
    if key is None:
        return "no answer"
    if key.startswith("{"):
        return f"the set {key}"
    kind, colon, rest = key.partition(":")
    return f"{_KINDS[kind][0]} {rest}" if colon and kind in _KINDS else f"{key!r}"


def counted(keys: Iterable[str | None]) -> Counter[str]:
    """How many answers there are of each kind; those that are none are not counted."""
    return Counter(_plural(key) for key in keys if key is not None)


def _plural(key: str) -> str:
    if key.startswith("{"):
        return "sets or lists"
    kind, colon, _ = key.partition(":")
    return _KINDS[kind][1] if colon and kind in _KINDS else "texts"
