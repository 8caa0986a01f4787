"""JSON, read strictly and written strictly.

`parse` refuses a key that stands twice in an object and nesting that is too deep. `as_json` writes everything that
demur writes: JSON has no NaN and no infinite numbers, so those become null, or are refused with `finite`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

_DEEPEST = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]')
_COLON = re.compile(r"\s*+:")


class NotJson(ValueError):
    """Why a text cannot be read, and in which of its lines."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


class RepeatedKey(NotJson):
    """An object says something twice, and a reader would take either for the truth."""


def parse(text: str, *, finite: bool = False, any_depth: bool = False) -> Any:
    """The value of a text; `finite` refuses NaN and Infinity, which are no JSON.

    Who takes `any_depth`, for speed, must look at what may be deep themselves.
    """
    try:
        value = (_FINITE if finite else _LENIENT).decode(text)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg.removesuffix(' at')} at column {error.colno}", error.lineno) from None
    except RepeatedKey as error:
        raise RepeatedKey(str(error), _line_of_repeated_key(text)) from None
    except NotJson:
        raise
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError:  # the only other one: the interpreter's limit to the length of whole numbers
        raise NotJson("it holds a number of too many digits") from None
    if not any_depth and is_deep(value):
        raise NotJson("it is nested too deeply")
    return value


def as_json(
    value: Any,
    *,
    finite: bool = False,
    ensure_ascii: bool = True,
    sort_keys: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """A value as JSON. NaN and infinite numbers are written as null; `finite` raises ValueError on them."""

    def written(held: Any, plain: Callable[[Any], Any] | None) -> str:
        how = (ensure_ascii, sort_keys, indent, separators)
        return (_encoder(*how) if plain is None else _encoder.__wrapped__(*how, plain)).encode(held)

    try:
        return written(value, default)
    except ValueError:
        if finite:
            raise
    return written(with_nulls(value), default and (lambda held: with_nulls(default(held))))


@lru_cache
def _encoder(
    ensure_ascii: bool,
    sort_keys: bool,
    indent: int | None,
    separators: tuple[str, str] | None,
    default: Callable[[Any], Any] | None = None,
) -> json.JSONEncoder:
    """What writes JSON in one way, made once for all values."""
    how: dict[str, Any] = {"indent": indent, "separators": separators, "default": default}
    return json.JSONEncoder(ensure_ascii=ensure_ascii, sort_keys=sort_keys, allow_nan=False, **how)


def is_finite(value: Any) -> bool:
    """Whether JSON has every number that stands in a value."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def with_nulls(value: Any) -> Any:
    """A value with null in place of each number that JSON does not have."""
    if isinstance(value, dict):
        return {_key(key): with_nulls(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_nulls(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _key(key: Any) -> Any:
    return str(key) if isinstance(key, float) and not math.isfinite(key) else key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise RepeatedKey(f"the key {twice!r:.60} stands twice in one object")
    return fields


def _refuse_constant(constant: str) -> NoReturn:
    raise NotJson(f"{constant} is not JSON")


_LENIENT = json.JSONDecoder(object_pairs_hook=_once)
_FINITE = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse_constant)


def is_deep(value: Any) -> bool:
    """Whether lists and objects stand in each other deeper than anybody needs; later steps would fail on them."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(_DEEPEST):
        inner = (entry for held in level for entry in (held.values() if isinstance(held, dict) else held))
        level = [entry for entry in inner if isinstance(entry, (dict, list))]
        if not level:
            return False
    return True


def _line_of_repeated_key(text: str) -> int:
    """The line of the first key that its object has already; slow, and asked only where there is one."""
    open_: list[set[str] | None] = []
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "{[":
            open_.append(set() if mark == "{" else None)
        elif mark in "}]":
            open_.pop()
        elif open_ and (keys := open_[-1]) is not None and _COLON.match(text, token.end()):
            key = json.loads(mark)
            if key in keys:
                return text.count("\n", 0, token.start()) + 1
            keys.add(key)
    return 1
