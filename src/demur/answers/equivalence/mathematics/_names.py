"""Names: what stands alone on one side of an equation and says what the other side is the value of.

    dropped    x, \\theta; f(x), f(x, y); S_n where n is in the value; |AB|; (x, y), A:B and S_1:S so ordered; answer
    kept       x_1, x_{min}, x', f'(x), f(2), P(A), AB, (y, x), B:A and S:S_1, total cost, \\angle A

A dropped name leaves nothing but the value, so that `x = 3` is `3`; a kept one says which of several values is meant.
"""

from __future__ import annotations

import re

from demur.answers.equivalence.mathematics._syntax import FUNCTIONS, GREEK
from demur.answers.equivalence.mathematics._words import SHORT_WORDS

_EXTREME = "max min maximum minimum largest smallest greatest least biggest highest lowest upper lower"
"""These say which of several values is meant, and with or without an equals sign, so they are no names."""
_COMMANDS = "frac sqrt sum int lim prod binom begin"
_NOT_NAMES = "|".join([*sorted([*FUNCTIONS, *_COMMANDS.split()]), *(f"(?i:{word})" for word in _EXTREME.split())])
_INDEX = r"(?:_(?:\{[^{}]{1,20}\}|\w))?'{0,3}"
_ATOM = rf"(?:\\[a-zA-Z]++|[a-zA-Z]){_INDEX}"  # one letter or command each: no two readings
_ARGUMENT = r"(?:\\?[a-zA-Z]+|-?\d+(?:\.\d+)?)"
_NAME = re.compile(
    rf"(?!\\?(?:{_NOT_NAMES})(?![a-zA-Z]))(?:"
    rf"{_ATOM}(?: ?{_ATOM})*(?: ?\( ?{_ARGUMENT}(?: ?, ?{_ARGUMENT})* ?\))?"  # x, S_n, AB, \theta, f(x), f(3)
    r"|\| ?[A-Z]{1,3} ?\|"  # |AB|
    r"|\( ?[a-z](?: ?, ?[a-z])+ ?\)"  # (x, y)
    rf"|{_ATOM} ?: ?{_ATOM})"  # A:B
)
_LETTERS = re.compile(rf"[a-z]{_INDEX}(?: ?[a-z]{_INDEX}){{1,2}}")
_GREEK_NAMES = "|".join([*sorted(GREEK), "pi"])
_GREEK_PRODUCT = re.compile(rf"(?=.*\\(?:{_GREEK_NAMES})(?![a-zA-Z])){_ATOM}(?: ?{_ATOM})+")
_LONGEST = 40

_LETTER = rf"(?:[a-zA-Z]|\\(?:{_GREEK_NAMES})(?![a-zA-Z]))"
_VARIABLE = rf"(?:[a-z]|\\(?:{_GREEK_NAMES}))"
_SAYS_NOTHING = re.compile(
    rf"{_LETTER}(?: ?\( ?{_VARIABLE}(?: ?, ?{_VARIABLE})* ?\))?|\| ?[A-Z]{{1,3}} ?\|"
    r"|(?i:(?:the ?)?(?:final ?)?(?:answer|ans|result|solution|value))"
)
_SEQUENCE = re.compile(r"[a-zA-Z]_\{?([a-z])\}?")
_WORD = re.compile(r"[a-zA-Z]{4}")


def is_name(text: str) -> bool:
    """Whether a side of an equation is a name: `x`, `S_n`, `AB`, `f(x)`, `total cost`; no product such as `xy`."""
    if len(text) > _LONGEST or _NAME.fullmatch(text) is None:
        return False
    if _LETTERS.fullmatch(text):
        return text in SHORT_WORDS
    return _GREEK_PRODUCT.fullmatch(text) is None


def kept_name(name: str, value: str) -> str | None:
    """A name in one spelling where it says more than that there is a value; None where it may be dropped."""
    if _SAYS_NOTHING.fullmatch(name) and _is_ordered(name):
        return None
    if (sequence := _SEQUENCE.fullmatch(name)) and re.search(
        rf"(?<![a-zA-Z\\_]){sequence.group(1)}(?![a-zA-Z])", value
    ):
        return None
    in_order = name.startswith("(") or ("(" not in name and ":" in name)
    return None if in_order and _is_ordered(name) else plain_name(name)


def _is_ordered(name: str) -> bool:
    """Whether the letters in a bracket, or of a ratio, stand in their order: (x, y), A:B."""
    parts = re.split("[,:]", plain_name(name).rpartition("(")[2].rstrip(")"))
    return parts == sorted(parts, key=_order)


def _order(part: str) -> tuple[str, bool, str]:
    """Letters by the alphabet, those with an index before the same one without."""
    letter, _, index = part.partition("_")
    return letter, not index, index


def plain_name(name: str) -> str:
    """One spelling of a name: no blanks, no braces around an index, words in small letters."""
    plain = "".join(name.split()).replace("{", "").replace("}", "")
    return plain.lower() if _WORD.search(plain) and "\\" not in plain else plain
