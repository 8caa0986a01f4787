"""How numbers are written in a language: decimal comma or point, and what groups thousands. Said, never guessed.

    decimals  thousands        languages                  written      read as
    ,         . or blank or '  de, es, it, nl, pt, tr …   1.234,5      1234.5
    ,         blank or '       fr, ru, pl, cs, sv …       1 234,5      1234.5
    .         ,                en, ja, sw, th, zh …       1,234.5      as it stands
    .         , by twos        hi, bn, ta, en-IN …        1,00,000     100000
    .         '                de-CH, de-LI, it-CH …      1'234.5      1234.5

A number that the language does not write so is left as it stands: 1.5 and 0.125 in German, dates, versions, lists.
"""

from __future__ import annotations

import re
from typing import Any

from demur.errors import InvalidValue

_COMMA_AND_POINT = """
    ast az bs ca da de dsb el es eu fo fy gl hr hsb id is it jv kl km lb lo mk nl pt ro rw sc sl sr su tr vi wo
"""
_COMMA_AND_BLANK = """
    af ba be bg br cs eo et fi fr hu hy ka kk ky ln lt lv nb nn no oc pl ru se sk sq sv tg tk tt uk uz
"""
_INDIAN = "as bn gu hi kn ml mr ne or pa sa ta te"
_POINT = """
    am ar ceb cy en fa fil ga gd gsw ha he ig ilo ja ko lg mg mi mn ms mt my ny om ps rm sd si sm sn so st sw th ti tl
    tn ts ug ur xh yi yo zh zu
"""
_POINTS, _BLANKS = frozenset(_COMMA_AND_POINT.split()), frozenset(_COMMA_AND_BLANK.split())
_BY_TWOS = frozenset(_INDIAN.split())
_KNOWN = _POINTS | _BLANKS | _BY_TWOS | frozenset(_POINT.split())
_POINT_REGIONS = frozenset(("mx", "us", "pr", "gt", "hn", "ni", "pa", "pe", "sv", "do"))
"""Where Spanish takes the point: the north and middle of America, and Peru."""
_SWISS = ("de-ch", "de-li", "it-ch", "rm-ch", "gsw-ch")
_COMMA_REGIONS = ("ar-dz", "ar-ma", "ar-tn", "ar-ly")
_INDIAN_REGIONS = ("en-in", "en-pk", "en-bd")

_MOST_GROUPS = 12  # bounds the work on each number
_ALONE = r"(?<![\w.,])"
_END = r"(?![.,]?\d)"
_APOSTROPHE = "['’]"
_DECIMALS = r"(?:(?:,|\{,\})(\d++))?+"


def _grouped(mark: str) -> str:
    """Thousands with that mark between them; nothing that begins with a zero."""
    return rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}}){{1,{_MOST_GROUPS}}}+"


_BY_POINT = re.compile(rf"{_ALONE}({_grouped('[.]')}|{_grouped(' ')}|{_grouped(_APOSTROPHE)}|\d++){_DECIMALS}{_END}")
_BY_BLANK = re.compile(rf"{_ALONE}({_grouped(' ')}|{_grouped(_APOSTROPHE)}|\d++){_DECIMALS}{_END}")
_BY_APOSTROPHE = re.compile(rf"{_ALONE}({_grouped(_APOSTROPHE)})(?:[.](\d++))?+{_END}")
_TWOS = re.compile(rf"{_ALONE}([1-9]\d?(?:,\d\d){{1,{_MOST_GROUPS}}},\d{{3}})(?:[.](\d++))?+{_END}")
_PAIR = re.compile(r"((?:\\\{|[(\[]|(?<![\w}^\\])\{)\s?[-+]?\d++,[-+]?\d++\s?(?=[)\]}]|\\\}|\\right))")
"""Two numbers alone in brackets are a pair, as nobody puts brackets around one decimal; braces of LaTeX are none."""


def checked_language(language: Any) -> str | None:
    """A language's code, in lower case; raises where nobody knows how it writes numbers."""
    if language is None or language == "":
        return None
    code = str(language).strip().lower().replace("_", "-")
    if code.partition("-")[0] not in _KNOWN:
        raise InvalidValue(
            f"the language {str(language)!r:.40} is not known", "give a code such as en, de, fr, pt-BR or hi"
        )
    return code


def takes_comma(code: str | None) -> bool:
    """Whether the decimals of a language stand behind a comma."""
    return _pattern(code) in (_BY_POINT, _BY_BLANK)


def with_points(text: str, code: str | None) -> str:
    """A text of that language with its numbers as English writes them."""
    pattern = _pattern(code)
    if pattern is None:
        return text
    if pattern not in (_BY_POINT, _BY_BLANK):
        return pattern.sub(_with_point, text)
    between = _PAIR.split(text)  # every other part is a pair, which stays
    between[::2] = [pattern.sub(_with_point, part) for part in between[::2]]
    return "".join(between)


def _pattern(code: str | None) -> re.Pattern[str] | None:
    """What a number looks like that English writes otherwise; None where there is none."""
    if code is None:
        return None
    language, *rest = code.split("-")
    place = f"{language}-{rest[-1]}" if rest else language
    if place in _SWISS:
        return _BY_APOSTROPHE
    if language in _BY_TWOS or place in _INDIAN_REGIONS:
        return _TWOS
    if language in _POINTS | _BLANKS and _POINT_REGIONS.isdisjoint(rest):
        return _BY_POINT if language in _POINTS else _BY_BLANK
    return _BY_POINT if place in _COMMA_REGIONS else None


def _with_point(number: re.Match[str]) -> str:
    whole, decimals = number.groups()
    digits = "".join(character for character in whole if character.isdigit())
    return digits if decimals is None else f"{digits}.{decimals}"
