"""What a scorer is: a whole pool in, one finite number per path out, more being better. None of them ever sees gold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from demur.errors import DemurError, ScoringError
from demur.files.strict_json import as_json
from demur.records import Pool
from demur.store import PathScore

FLOOR = "floor"
"""The value is an upper bound: the number itself was too small to be told."""
CUT = "cut"
"""The path was longer than the scorer can read; it read the end of it."""
EMPTY = "empty"
"""The path says nothing."""


@runtime_checkable
class Scorer(Protocol):
    """Scores a pool at a time."""

    name: str
    normaliser: str
    """The normaliser its numbers are voted with unless another is asked for."""

    def identity(self) -> dict[str, Any]:
        """All that decides its numbers: enters the run, the fingerprint and the policy."""
        ...

    def score(self, pool: Pool) -> Sequence[float]: ...


def stays(scorer: Scorer, pool: Pool) -> bool:
    """Whether the scores of these paths stay what they are, whatever other paths their pool will have.

    A scorer that knows has a method of that name; one without looks at the whole pool, as far as anybody can tell.
    """
    knows = getattr(scorer, "stays", None)
    return knows is not None and bool(knows(pool))


def range_of(scorer: Scorer) -> tuple[float, float]:
    """Between which numbers its scores lie, whatever the path: what it says of itself as `within`, or any."""
    lowest, highest = getattr(scorer, "within", None) or (-math.inf, math.inf)
    return float(lowest), float(highest)


@dataclass(frozen=True, slots=True)
class Failed:
    """A path that could not be scored, and why."""

    number: int
    problem: str
    error: DemurError

    @property
    def reason(self) -> str:
        return str(self.error)


Outcome = PathScore | Failed
Emit = Callable[[Outcome], None]


def flagged(*flags: str | None) -> str | None:
    return "+".join(sorted({single for flag in flags if flag for single in flag.split("+")})) or None


def checked(values: Sequence[float], pool: Pool, scorer: str) -> list[float]:
    """A pool's numbers, or an error that says which is none."""
    try:
        numbers = list(values)
    except TypeError:
        raise ScoringError(f"the scorer {scorer!r} gave {values!r:.40}; it must give one number per path") from None
    if len(numbers) != len(pool.paths):
        raise ScoringError(
            f"the scorer {scorer!r} gave {len(numbers)} numbers for the {len(pool.paths)} paths of problem "
            f"{pool.problem.id!r}; it must give one for each"
        )
    for position, value in enumerate(numbers):
        try:
            # Also those of arrays: true and false are labels, and no scores.
            fits = not isinstance(value, bool) and type(value).__name__ != "bool" and math.isfinite(value)
        except (TypeError, OverflowError):
            fits = False
        if not fits:
            raise ScoringError(
                f"the scorer {scorer!r} gave {value!r:.40} for path {position} of problem {pool.problem.id!r}; "
                "a score is a finite number"
            )
    return [float(value) for value in numbers]


def as_number(value: Any, what: str) -> float:
    """A number as a server sent it; raises where it is none, or beyond all measure."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise ScoringError(f"the endpoint gave {value!r:.40} for {what}")


def full_identity(scorer: Scorer) -> dict[str, Any]:
    """An identity as it is stored: with the normaliser, and as JSON has it."""
    return json.loads(as_json({**scorer.identity(), "normaliser": scorer.normaliser}))  # type: ignore[no-any-return]
