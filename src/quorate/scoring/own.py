"""Scores of your own: a function that takes a pool and returns one number per path.

def length(pool):
    return [-len(path.text) for path in pool.paths]

It gets questions, texts and answers, and never gold. It may say how its numbers are to be normalised:
`length.normaliser = "pool_z"`. Its source is part of its identity, so that a changed function is another score.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from quorate.errors import InvalidValue
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
        module = getattr(self.function, "__module__", "")
        qualified = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"scorer": "own", "function": f"{module}:{qualified}", "source": self._digest()}

    def score(self, pool: Pool) -> Sequence[float]:
        return self.function(pool)

    def _digest(self) -> str | None:
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):  # made on the fly, or not written in Python
            return None
        return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def own_score(spec: str) -> OwnScore:
    """The function `package.module:function` as a scorer, under the function's name."""
    return OwnScore(function_named(spec, "--score"), spec.partition(":")[2])
