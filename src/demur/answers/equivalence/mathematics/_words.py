"""Words that are numbers (twenty-five, three dozen, two thirds), that multiply one (million), or that are short.

A word of two or three letters may be a product of letters, so those that are words are listed.
"""

from __future__ import annotations

from fractions import Fraction

SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
"""Words that multiply the number in front of them."""
SCALES |= {word + "s": scale for word, scale in SCALES.items()}
_SMALL_NAMES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_SMALL = {word: value for value, word in enumerate(_SMALL_NAMES.split())}
_TENS_NAMES = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * value for value, word in enumerate(_TENS_NAMES.split(), start=2)} | {"fourty": 40}
_PARTS_NAMES = "half third fourth fifth sixth seventh eighth ninth tenth"
_PARTS = {word: value for value, word in enumerate(_PARTS_NAMES.split(), start=2)} | {"quarter": 4, "hundredth": 100}
_PARTS |= {word + "s": value for word, value in _PARTS.items()} | {"halves": 2}
_SPEAKING = frozenset([*_SMALL, *_TENS, *_PARTS, "a", "half"])

_SHORT_WORDS = """
    odd all any red yes no not none sum ans age avg hot wet dry big old new one two six ten low mid top out off
    may mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep oct nov dec
    tom tim sam ann amy ben bob joe jim kim dan max meg mia zoe eve ava leo jon ron ian pat ray roy sue ted tia una kay
    cat dog cow pig hen fox bee ant car bus box cup pen cap hat map man men boy day ice sea sky egg pie tea gas oil
    usa uk eu nyc us ny la up it he we
"""
SHORT_WORDS = frozenset(_SHORT_WORDS.split())
"""Words of two or three letters that nobody means as a product."""


Counted = tuple[Fraction, list[str]]
"""A number, and the words behind it."""


def spoken(words: list[str]) -> Counted | None:
    """The number that words begin with; None where they begin with none."""
    if not words:
        return None
    first, *rest = words
    if first in ("negative", "minus"):
        after = spoken(rest) if rest and rest[0] in _SPEAKING else None
        return None if after is None else (-after[0], after[1])
    if first == "half":
        scale, behind = scaled(rest[1:]) if rest[:1] == ["a"] else (1, rest)
        return (Fraction(scale, 2), behind) if scale > 1 else (Fraction(1, 2), rest)
    if first == "a":
        counted = spoken(["one", *rest]) if rest and (rest[0] in SCALES or rest[0] == "half") else None
    else:
        counted = _whole(words)
    return None if counted is None else _with_part(*counted)


def _with_part(value: Fraction, rest: list[str]) -> Counted:
    """Two thirds; two and a half."""
    if rest and rest[0] in _PARTS and value < 10 and value.denominator == 1:
        return value / _PARTS[rest[0]], rest[1:]
    if rest[:1] == ["and"]:
        part = spoken(rest[1:])
        if part is not None and 0 < part[0] < 1:
            scale, behind = scaled(part[1])
            return (value + part[0]) * scale, behind
    return value, rest


def _whole(words: list[str]) -> Counted | None:
    """Two million three hundred thousand and five: groups of falling scale."""
    total, rest, ceiling = Fraction(0), words, 10**15
    while True:
        joined = rest[1:] if total and rest[:1] == ["and"] else rest
        group = _below_thousand(joined)
        if group is None:
            break
        value, after = group
        scale, behind = scaled(after)
        if scale >= ceiling or after[:1] == ["hundred"]:
            return None
        total, rest, ceiling = total + value * scale, behind, scale
        if scale == 1:
            break
    return None if rest is words else (total, rest)


def scaled(words: list[str]) -> tuple[int, list[str]]:
    """What the words that multiply, with which words begin, come to; and the words behind them."""
    scale, place = 1, 0
    while place < len(words) and words[place] in SCALES and place < 3:
        scale, place = scale * SCALES[words[place]], place + 1
    return scale, words[place:]


def _below_thousand(words: list[str]) -> Counted | None:
    group = _below_hundred(words)
    if group is None or group[1][:1] != ["hundred"]:
        return group
    hundreds, rest = group[0] * 100, group[1][1:]
    more = _below_hundred(rest[1:] if rest[:1] == ["and"] else rest)
    return (hundreds, rest) if more is None else (hundreds + more[0], more[1])


def _below_hundred(words: list[str]) -> Counted | None:
    if words and words[0] in _SMALL:
        return Fraction(_SMALL[words[0]]), words[1:]
    if words and words[0] in _TENS:
        tens, ones = _TENS[words[0]], _SMALL.get(words[1], 0) if words[1:] else 0
        return (Fraction(tens + ones), words[2:]) if 0 < ones < 10 else (Fraction(tens), words[1:])
    return None
