"""Numbers in English words: `twenty-five`, `two hundred and five`, `a million`; and scales behind figures."""

from __future__ import annotations

from collections.abc import Sequence

_SMALL_NAMES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_SMALL = {word: number for number, word in enumerate(_SMALL_NAMES.split())}
_TENS_NAMES = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * number for number, word in enumerate(_TENS_NAMES.split(), start=2)} | {"fourty": 40}
_GROUPS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15}
SCALES = {"hundred": 2, "lakh": 5, "crore": 7, **_GROUPS}
"""Powers of ten that a number before them is multiplied with."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_BEFORE_A_PRONOUN = ("no", "any", "every", "some", "each", "this", "that", "which")


def read(words: Sequence[str], start: int) -> tuple[int, int] | None:
    """The number that begins at a word, and where it ends; None where no number does."""
    if words[start] == "one" and start and words[start - 1] in _BEFORE_A_PRONOUN:
        return None  # no one, this one
    total, position, limit, reached = 0, start, 99, start
    while (group := _below_thousand(words, position)) is not None:
        number, end = group
        scale = _GROUPS.get(_at(words, end), 0)
        if scale >= limit or (position > start and words[position - 1] == "and" and (scale or number > 99)):
            break
        total, reached, limit = total + number * 10**scale, end + bool(scale), scale
        if not scale or not number:
            break
        position = reached + (_at(words, reached) == "and")
    if reached == start or (words[reached - 1] in _TENS and _at(words, reached) in _ORDINALS):
        return None
    return total, reached


def _at(words: Sequence[str], position: int) -> str:
    return words[position] if position < len(words) else ""


def _below_thousand(words: Sequence[str], start: int) -> tuple[int, int] | None:
    head = _below_hundred(words, start)
    if head is None and _at(words, start) == "a" and _at(words, start + 1) in ("hundred", *_GROUPS):
        head = (1, start + 1)
    if head is None or _at(words, head[1]) != "hundred" or not head[0]:
        return head
    number, end = head[0] * 100, head[1] + 1
    rest = _below_hundred(words, end + (_at(words, end) == "and"))
    if rest is None or not rest[0] or _at(words, rest[1]) == "hundred":  # one hundred and two hundred
        return number, end
    return number + rest[0], rest[1]


def _below_hundred(words: Sequence[str], start: int) -> tuple[int, int] | None:
    word = _at(words, start)
    if word in _SMALL:
        return _SMALL[word], start + 1
    if word not in _TENS:
        return None
    unit = _SMALL.get(_at(words, start + 1), 0)
    return (_TENS[word] + unit, start + 2) if 0 < unit < 10 else (_TENS[word], start + 1)
