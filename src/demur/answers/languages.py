"""How numbers are written in a language: decimal comma or point, and what groups thousands. Said, never guessed."""

from __future__ import annotations

import re
from typing import Any

from demur.errors import InvalidValue

_COMMA = """
    af az be bg bs ca cs da de el es et eu fi fo fr gl hr hu hy id is it ka kk ky lb lt lv mk mn nb nl nn no pl pt ro
    ru sk sl sq sr sv tg tr uk uz vi
"""
_POINT = "am ar bn cy en fa fil ga gu ha he hi ig ja kn ko lo ml mr ms my ne or pa si so sw ta te th tl ur yo zh zu"
_COMMA_LANGUAGES, _POINT_LANGUAGES = frozenset(_COMMA.split()), frozenset(_POINT.split())
_POINT_REGIONS = frozenset(("ch", "li", "mx", "us", "pr", "gt", "hn", "ni", "pa", "pe", "sv", "do"))
"""Where languages of the comma take the point: Switzerland, much of Central America."""
_NUMBER = re.compile(r"(?<![\w.,])(\d{1,3}(?:[. '’]\d{3})+|\d+)(?:,(\d+))?(?![\w,.]\d|\w)")


def checked_language(language: Any) -> str | None:
    """A language's code, in lower case; raises where nobody knows how it writes numbers."""
    if language is None or language == "":
        return None
    code = str(language).lower().replace("_", "-")
    if code.partition("-")[0] not in _COMMA_LANGUAGES | _POINT_LANGUAGES:
        raise InvalidValue(f"the language {language!r} is not known", "give a code such as en, de, fr, pt-BR or hi")
    return code


def takes_comma(code: str | None) -> bool:
    """Whether the decimals of a language stand behind a comma."""
    if code is None:
        return False
    language, _, rest = code.partition("-")
    return language in _COMMA_LANGUAGES and not _POINT_REGIONS & set(rest.split("-"))


def with_points(text: str, code: str | None) -> str:
    """A text of that language with its numbers as English writes them."""
    if not takes_comma(code):
        return text
    return _NUMBER.sub(_with_point, text)


def _with_point(number: re.Match[str]) -> str:
    whole, decimals = number.groups()
    digits = "".join(character for character in whole if character.isdigit())
    return digits if decimals is None else f"{digits}.{decimals}"
