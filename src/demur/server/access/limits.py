"""How much the holder of a key may ask for: paths and tokens in a minute and a day, and requests at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

from demur.errors import StoreError
from demur.records import Problem
from demur.server.errors import ApiError, busy


@dataclass(frozen=True)
class Limits:
    """The limits of a key; None: no limit."""

    paths_per_minute: int | None = None
    paths_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    at_once: int | None = None
    """Requests under way at once, on each replica."""

    @classmethod
    def of(cls, stored: Mapping[str, int]) -> Limits:
        """The limits as the store has them; one that is not known here is not passed over."""
        unknown = sorted(set(stored) - {field.name for field in fields(cls)})
        if unknown:
            raise StoreError(f"a key has a limit that this version does not know: {unknown[0]!r:.60}")
        return cls(**stored)

    def given(self) -> dict[str, int]:
        """Those there are, as the store takes them."""
        return {name: value for name, value in asdict(self).items() if value is not None}


UNLIMITED = Limits()


class AtOnce:
    """How many requests of each key are under way here."""

    def __init__(self) -> None:
        self._underway: Counter[str] = Counter()

    @contextmanager
    def one_more(self, key: str | None, limits: Limits) -> Iterator[None]:
        """Within, a request of a key is under way; raises where there are as many as may be."""
        if key is None or limits.at_once is None:
            yield
            return
        if self._underway[key] >= limits.at_once:
            told = f"this key has {self._underway[key]} requests under way, as many as it may"
            raise busy(told, 1.0, "too_many_at_once")
        self._underway[key] += 1
        try:
            yield
        finally:
            self._underway[key] -= 1
            if not self._underway[key]:
                del self._underway[key]


def refuse_long(problem: Problem, most: int) -> None:
    """Raise where a question, with all that reaches the model beside it, has too many characters."""
    if (length := sum(map(_length, (problem.question, problem.extra, problem.group)))) > most:
        raise ApiError(
            400, f"the question has {length:,} characters, and at most {most:,} are taken", param="messages",
            code="context_length_exceeded",
        )  # fmt: skip


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_length, value.values()))
    return sum(map(_length, value)) if isinstance(value, (list, tuple)) else 0
