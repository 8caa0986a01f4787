"""Scores of your own: a function that takes a pool and returns one number per path.

def length(pool):
    return [-len(path.text) for path in pool.paths]

It gets questions, texts and answers, and never gold. It may say how its numbers are to be normalised:
`length.normaliser = "pool_z"`. What it is made of is part of its identity, so that a changed function is another score.
It may also say that it scores each path by itself, `length.path_by_path = True`, and between which numbers its scores
lie, `length.within = (-5000, 0)`: then sampling may stop before all paths of a pool are drawn.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from demur.errors import DemurError, InvalidValue, ScoringError
from demur.foreign_code import function_named
from demur.records import Pool

Function = Callable[[Pool], Sequence[float]]


class OwnScore:
    """A plain function as a scorer."""

    def __init__(self, function: Function, name: str | None = None) -> None:
        if not callable(function):
            raise InvalidValue(f"a score of your own is a function that takes a pool, got {function!r:.60}")
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.normaliser: str = getattr(function, "normaliser", "none")

    @property
    def within(self) -> tuple[float, float] | None:
        """What the function says of the numbers it gives: see `scoring.protocol.range_of`."""
        told: Any = getattr(self.function, "within", None)
        if told is None:
            return None
        try:
            lowest, highest = map(float, told)
        except (TypeError, ValueError):
            lowest = highest = math.nan
        if not lowest <= highest:
            raise InvalidValue(f"{self.name}.within must be two numbers, the smaller first, got {told!r:.60}")
        return lowest, highest

    def stays(self, pool: Pool) -> bool:
        """Whether the function says that it scores each path by itself."""
        return getattr(self.function, "path_by_path", False) is True

    def identity(self) -> dict[str, Any]:
        named = _inner(self.function)
        module = getattr(named, "__module__", "")
        qualified = getattr(named, "__qualname__", type(named).__qualname__)
        return {"scorer": "own", "function": f"{module}:{qualified}", "made_of": _digest(self.function)}

    def score(self, pool: Pool) -> Sequence[float]:
        try:
            scores = self.function(pool)
            if isinstance(scores, (set, frozenset, Mapping, str, bytes)):
                raise ScoringError(f"{self.name} gave a {type(scores).__name__}, which has no order of paths")
            return list(scores)
        except DemurError:
            raise
        except (Exception, SystemExit) as error:  # whatever a function of the user's does, it is told with its place
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}, line {where.lineno}"
            raise ScoringError(f"{self.name} raised {type(error).__name__} ({place}): {error}") from error


def own_score(spec: str) -> OwnScore:
    """The function `package.module:function` as a scorer, under the function's name."""
    return OwnScore(function_named(spec, "the score"), spec.partition(":")[2])


def _inner(function: Any) -> Any:
    return _inner(function.func) if isinstance(function, functools.partial) else function


def _digest(function: Any) -> str:
    """Of a function's source and of all that it brings along, the same in every process.

    Defaults, what it closes over, arguments given already, and the functions and constants of its own module that it
    uses are part of it. Objects count by their class and their fields.
    """
    return hashlib.sha256(_stable(function, set()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _stable(value: Any, within: set[int]) -> str:
    """A text that is the same for the same value in every process, and another for another."""
    if id(value) in within:
        return "again"
    within = within | {id(value)}

    def inner(part: Any) -> str:
        return _stable(part, within)

    if isinstance(value, (str, bytes, int, float, complex, type(None))):
        return repr(value)
    if isinstance(value, (set, frozenset)):
        return f"set({sorted(map(inner, value))})"
    if isinstance(value, Mapping):
        return f"map({sorted((inner(key), inner(entry)) for key, entry in value.items())})"
    if isinstance(value, (list, tuple)):
        return f"list({[inner(entry) for entry in value]})"
    if isinstance(value, functools.partial):
        return f"partial({inner(value.func)}, {inner(value.args)}, {inner(value.keywords)})"
    if isinstance(value, types.FunctionType):
        return _of_function(value, inner)
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    called = getattr(type(value), "__call__", None)  # noqa: B004 - its code, not whether it has any
    own = _of_function(called, inner) if isinstance(called, types.FunctionType) else ""
    return f"{type(value).__module__}.{type(value).__qualname__}({own}, {inner(getattr(value, '__dict__', None))})"


def _of_function(function: types.FunctionType, inner: Callable[[Any], str]) -> str:
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):  # made on the fly
        source = repr((function.__code__.co_code, function.__code__.co_names))
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    used = [function.__globals__.get(name) for name in _names(function.__code__)]
    mine = [entry for entry in used if _is_part(entry, function.__module__)]
    return f"def({source!r}, {inner([function.__defaults__, function.__kwdefaults__, cells, mine])})"


def _is_part(used: Any, module: str) -> bool:
    if isinstance(used, types.FunctionType):
        return used.__module__ == module
    return isinstance(used, (str, bytes, int, float, tuple, frozenset))


def _names(code: types.CodeType) -> list[str]:
    """Names that a function looks up outside itself, those of comprehensions and inner functions included."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return list(dict.fromkeys([*code.co_names, *inner]))
