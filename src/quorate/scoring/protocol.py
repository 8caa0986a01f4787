"""What a scorer is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from quorate.errors import InvalidValue
from quorate.records import Pool
from quorate.scoring.perplexity import Perplexity


class Scorer(Protocol):
    """Takes a whole pool and returns one finite number per path: more is better."""

    name: str
    normaliser: str
    """The normaliser its numbers are voted with unless another is asked for."""

    def identity(self) -> dict[str, Any]:
        """All that decides its numbers: enters the run, the fingerprint and the policy."""
        ...

    def score(self, pool: Pool) -> Sequence[float]: ...


SCORERS: dict[str, type[Scorer]] = {Perplexity.name: Perplexity}


def scorer_named(name: str) -> Scorer:
    """The scorer of that name."""
    if name not in SCORERS:
        raise InvalidValue(f"there is no score {name!r}; expected one of {', '.join(SCORERS)}")
    return SCORERS[name]()
