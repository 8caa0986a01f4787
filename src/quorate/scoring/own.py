"""Scores of your own: a function that takes a pool and returns one number per path.

def length(pool):
    return [-len(path.text) for path in pool.paths]

It gets questions, texts and answers, and never gold. It may say how its numbers are to be normalised:
`length.normaliser = "pool_z"`. What it is made of is part of its identity, so that a changed function is another score.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from quorate.errors import InvalidValue, QuorateError, ScoringError
from quorate.functions import function_named
from quorate.records import Pool

Function = Callable[[Pool], Sequence[float]]


class OwnScore:
    """A plain function as a scorer."""

    def __init__(self, function: Function, name: str | None = None) -> None:
        if not callable(function):
            raise InvalidValue(f"a score of your own is a function that takes a pool, got {function!r:.60}")
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.normaliser: str = getattr(function, "normaliser", "none")

    def identity(self) -> dict[str, Any]:
        named = _inner(self.function)
        module = getattr(named, "__module__", "")
        qualified = getattr(named, "__qualname__", type(named).__qualname__)
        return {"scorer": "own", "function": f"{module}:{qualified}", "made_of": _digest(self.function)}

    def score(self, pool: Pool) -> Sequence[float]:
        try:
            return self.function(pool)
        except QuorateError:
            raise
        except Exception as error:  # whatever a function of the user's raises, it is told with its place
            raise ScoringError(f"{self.name} raised {type(error).__name__}: {error}") from error


def own_score(spec: str) -> OwnScore:
    """The function `package.module:function` as a scorer, under the function's name."""
    return OwnScore(function_named(spec, "--score"), spec.partition(":")[2])


def _inner(function: Any) -> Any:
    return _inner(function.func) if isinstance(function, functools.partial) else function


def _digest(function: Any) -> str:
    """Of a function's source, and of all that it brings along: defaults, what it closes over, arguments given already.

    What has no lasting description makes a new identity each time, so that its scores are never taken for others.
    """
    parts: list[Any] = []
    while isinstance(function, functools.partial):
        parts += [function.args, sorted(function.keywords.items())]
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:
        parts.append(vars(function) if hasattr(function, "__dict__") else None)
        function = type(function).__call__
        code = getattr(function, "__code__", None)
    try:
        parts.append(inspect.getsource(function))
    except (OSError, TypeError):  # made on the fly, or not written in Python
        parts += [code.co_code, code.co_consts, code.co_names] if code else [repr(function)]
    parts += [getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)]
    parts += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
