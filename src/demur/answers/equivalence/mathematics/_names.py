"""Names: what stands alone on one side of an equation and only says what the other side is the value of."""

from __future__ import annotations

import re

from demur.answers.equivalence.mathematics._syntax import FUNCTIONS, GREEK
from demur.answers.equivalence.mathematics._words import SHORT_WORDS

_EXTREME = "max min maximum minimum largest smallest greatest least biggest highest lowest upper lower"
"""These say which of several values is meant, so they are no names."""
_COMMANDS = "frac sqrt sum int lim prod binom begin"
_NOT_NAMES = "|".join([*sorted([*FUNCTIONS, *_COMMANDS.split()]), *(f"(?i:{word})" for word in _EXTREME.split())])
_INDEX = r"(?:_(?:\{[^{}]{1,20}\}|\w))?'{0,3}"
_ATOM = rf"(?:\\[a-zA-Z]+|[a-zA-Z]){_INDEX}"  # one letter or command each: no two readings
_ARGUMENT = r"(?:\\?[a-zA-Z]+|-?\d+(?:\.\d+)?)"
_NAME = re.compile(
    rf"(?!\\?(?:{_NOT_NAMES})(?![a-zA-Z]))(?:"
    rf"{_ATOM}(?: ?{_ATOM})*(?: ?\( ?{_ARGUMENT}(?: ?, ?{_ARGUMENT})* ?\))?"  # x, S_n, AB, \theta, f(x), f(3)
    r"|\| ?[A-Z]{1,3} ?\|"  # |AB|
    r"|\( ?[a-z](?: ?, ?[a-z])+ ?\)"  # (x, y)
    rf"|{_ATOM} ?: ?{_ATOM})"  # A:B
)
_LETTERS = re.compile(rf"[a-z]{_INDEX}(?: ?[a-z]{_INDEX}){{1,2}}")
_GREEK_PRODUCT = re.compile(rf"(?=.*\\(?:{'|'.join(sorted(GREEK))}|pi)(?![a-zA-Z])){_ATOM}(?: ?{_ATOM})+")
_LONGEST = 40


def is_name(text: str) -> bool:
    """Whether a side of an equation is a name: `x`, `S_n`, `AB`, `f(x)`, `total cost`; no product such as `xy`."""
    if len(text) > _LONGEST or _NAME.fullmatch(text) is None:
        return False
    if _LETTERS.fullmatch(text):
        return text in SHORT_WORDS
    return _GREEK_PRODUCT.fullmatch(text) is None
