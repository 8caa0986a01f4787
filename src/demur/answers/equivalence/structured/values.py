"""JSON that a model wrote, read strictly, and written in one way: equal values, equal text.

Numbers are exact decimals, so that 1, 1.0 and 1e0 are one value and no digit is lost. Accents in texts are composed.
A key twice in one object, NaN and Infinity, and lists in lists beyond any use make a value no valid one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

LONGEST = 20_000  # characters of a written value
DEEPEST = 100
INVALID: Any = object()
"""What stands in the place of a value that is none."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_PLAIN_DIGITS = 20
_FENCE = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\n(.*)```", re.S)


def _number(text: str) -> Any:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that no decimal has
        return INVALID


def _object(pairs: list[tuple[str, Any]]) -> Any:
    fields = {composed(name): value for name, value in pairs}
    return fields if len(fields) == len(pairs) else INVALID


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_number, parse_float=_number, parse_constant=lambda _: INVALID
)


def value_at(text: str, start: int) -> tuple[Any, int]:
    """The value that begins there, INVALID where it breaks a rule, and its end.

    Raises json.JSONDecodeError where no value ends, and RecursionError where it is nested without end.
    """
    value, end = _DECODER.raw_decode(text, start)
    return (_all_composed(value) if _is_valid(value) else INVALID), end


def parsed(text: str) -> Any:
    """The value that a text is, blanks and one code fence around it aside; INVALID where it is none."""
    bare = text.strip().removeprefix("\ufeff")
    if len(bare) > LONGEST:
        return INVALID
    if bare.startswith("```") and (fenced := _FENCE.fullmatch(bare)):
        bare = fenced.group(1).strip()
    try:
        value, end = value_at(bare, 0)
    except (json.JSONDecodeError, RecursionError):
        return INVALID
    return value if end == len(bare) else INVALID


def _is_valid(value: Any) -> bool:
    """Whether no part of a value is invalid, nor deeper than the deepest."""
    level = [value]
    for _ in range(DEEPEST):
        if any(entry is INVALID for entry in level):
            return False
        inner = (
            entry.values() if isinstance(entry, dict) else entry for entry in level if isinstance(entry, (dict, list))
        )
        level = [part for parts in inner for part in parts if part is INVALID or isinstance(part, (dict, list))]
        if not level:
            return True
    return False


def count_parts(value: Any) -> int:
    """How many members and elements a value has, at all depths."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(inner) + sum(map(count_parts, inner))


def composed(text: str) -> str:
    """A text with its accents composed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _all_composed(value: Any) -> Any:
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, dict):
        return {name: _all_composed(entry) for name, entry in value.items()}
    return [_all_composed(entry) for entry in value] if isinstance(value, list) else value


def written(value: Any) -> str:
    """The one way to write a value."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{text_written(name)}:{written(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return scalar_written(value)


def scalar_written(value: Any) -> str:
    """The same for what is neither an object nor a list."""
    if isinstance(value, str):
        return text_written(value)
    if isinstance(value, Decimal):
        return number_written(value)
    return "null" if value is None else "true" if value else "false"


def text_written(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair: only an escape can write it
        return encode_basestring_ascii(text)
    return encode_basestring(text)


def number_written(number: Decimal) -> str:
    """Digits, without an exponent where there are not too many zeros."""
    if not number:
        return "0"
    least = number.normalize(_EXACT)
    return format(least, "f") if abs(least.adjusted()) <= _PLAIN_DIGITS else str(least)
