"""Values on their way into a database and back: of one kind per column, and checked both ways."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from demur.errors import InvalidValue
from demur.store.connection import UNREADABLE
from demur.store.rows import LONGEST_NAME, is_name, pack, plain, storable, unpack

Record = TypeVar("Record")
_LARGEST, _LARGEST_COUNT = 2**53, 2**31


@dataclass(frozen=True)
class Kind:
    """What a column holds: whether a value fits, how it is put, and how it is taken back."""

    described: str
    fits: Callable[[Any], bool]
    put: Callable[[Any], Any] = lambda value: value
    take: Callable[[Any], Any] = lambda value: value
    may_lack: bool = False

    def given(self, name: str, value: Any) -> Any:
        """A caller's value as it is stored; raises where it does not fit."""
        if value is None and self.may_lack:
            return None
        if self.fits(value):
            try:
                return self.put(value)
            except (TypeError, ValueError, RecursionError):  # no JSON
                pass
        raise InvalidValue(f"{name} must be {self.described}, got {value!r:.60}")

    def stored(self, name: str, value: Any) -> Any:
        """A stored value as it was given; raises where demur cannot have written it."""
        if value is None and self.may_lack:
            return None
        try:
            taken = None if value is None else self.take(value)
        except UNREADABLE as error:
            raise TypeError(f"{name} is {value!r:.60}, which is not {self.described} ({error})") from None
        if not self.fits(taken):
            raise TypeError(f"{name} is {value!r:.60}, not {self.described}")
        return taken


def optional(kind: Kind) -> Kind:
    return replace(kind, may_lack=True)


def one_of(*words: str) -> Kind:
    return Kind(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _flag(value: Any) -> bool:
    return {0: False, 1: True}[value]


def _list(value: Any) -> tuple[Any, ...]:
    items = json.loads(value)
    if not isinstance(items, list):
        raise TypeError("no list")
    return tuple(items)


NAME = Kind(f"a text of 1 to {LONGEST_NAME} characters that every database takes", is_name)
TEXT = Kind("a text", lambda value: isinstance(value, str), storable)
WHOLE = Kind("a whole number from 0 to 2⁵³", _is_whole)
COUNT = Kind("a whole number from 0 to 2³¹", lambda value: _is_whole(value) and value < _LARGEST_COUNT)
NUMBER = Kind("a finite number", _is_number, float)
FLAG = Kind("true or false", lambda value: type(value) is bool, int, _flag)
OBJECT = Kind("a JSON object", lambda value: isinstance(value, Mapping), lambda value: plain(dict(value)), json.loads)
NAMES = Kind(
    "a list of texts",
    lambda value: isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value),
    lambda value: plain(list(value)),
    _list,
)
KEY = Kind(
    "a list of numbers that are finite or -inf",
    lambda value: isinstance(value, (list, tuple)) and all(one == -math.inf or _is_number(one) for one in value),
    lambda value: plain(list(value)),
    lambda value: tuple(-math.inf if one is None else one for one in _list(value)),
)
"""The key of a vote. −∞ stands where there was nothing to break a tie by, and is null in JSON, as in policy files."""
PACKED = Kind("a text", lambda value: isinstance(value, str), pack, unpack)


def known_names(names: Iterable[str]) -> list[str]:
    """Those that can be names at all, each once and in order: nothing is stored under any other."""
    return sorted({name for name in names if is_name(name)})


Kinds = Mapping[str, Kind]


def row_of(record: Any, kinds: Kinds) -> dict[str, Any]:
    """The row of a record, checked."""
    return {name: kind.given(name, getattr(record, name)) for name, kind in kinds.items()}


def record_of(made: Callable[..., Record], row: Any, kinds: Kinds, **further: Any) -> Record:
    """The record of a row, checked."""
    return made(**{name: kind.stored(name, getattr(row, name)) for name, kind in kinds.items()}, **further)
