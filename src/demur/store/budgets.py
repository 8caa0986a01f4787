"""What a run may cost, in paths, tokens or seconds, over all processes that ever sample it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from demur.errors import InvalidValue

_MOST = 2**53
LIMITS = ("most_paths", "most_tokens", "most_milliseconds")


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may cost. None leaves a limit as it is, `math.inf` takes it away."""

    paths: float | None = None
    """Paths that are drawn, with those that are drawn again and those that came in vain."""
    tokens: float | None = None
    """Tokens of the paths that came, as far as the model counts them."""
    seconds: float | None = None
    """Seconds at work, summed over processes: two that work for a minute side by side cost two."""

    def __post_init__(self) -> None:
        for part in fields(self):
            value, whole = getattr(self, part.name), part.name != "seconds"
            if value is None or value == math.inf:
                continue
            if isinstance(value, bool) or not 0 < value < _MOST or (whole and value != int(value)):
                kind = "a whole number above 0" if whole else "a number above 0"
                raise InvalidValue(f"a budget of {part.name} is {kind}, or none at all, got {value!r:.40}")

    @property
    def says_nothing(self) -> bool:
        return all(getattr(self, part.name) is None for part in fields(self))

    def columns(self) -> dict[str, int | None]:
        """The limits that it sets, as they are stored."""
        said = zip(LIMITS, (self.paths, self.tokens, self.seconds), (1, 1, 1000), strict=True)
        return {
            name: None if value == math.inf else max(1, round(value * scale))
            for name, value, scale in said
            if value is not None
        }


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run has cost and may cost; `promised` paths are reserved for problems that are under way."""

    paths: int
    promised: int
    tokens: int
    milliseconds: int
    most_paths: int | None = None
    most_tokens: int | None = None
    most_milliseconds: int | None = None

    def granted(self, problems: Iterable[tuple[int, int]], *, all_needed: bool = True) -> tuple[list[int], str]:
        """The first of some problems, by number and paths they lack, that may be taken up; and why no more may be.

        Tokens are reckoned by what a path has cost so far, so what is under way may still pass their limit. Where
        a rule may end a problem before, it is not known that all its paths are needed: they are reserved all the same.
        """
        numbers: list[int] = []
        so_far = self
        for number, size in problems:
            if refusal := so_far._refusal(size, all_needed=all_needed):
                return numbers, refusal
            numbers.append(number)
            so_far = replace(so_far, promised=so_far.promised + size)
        return numbers, ""

    def _refusal(self, size: int, *, all_needed: bool) -> str:
        """Why a problem that lacks so many paths does not fit, and the way out; nothing where it does."""
        paths, reserved = self.paths + self.promised, f", {self.promised} more paths reserved" if self.promised else ""
        if self.most_paths is not None and paths + size > self.most_paths:
            needs = "needs" if all_needed else "may need"
            more = f", and the next problem {needs} {size}" if paths < self.most_paths else ""
            return f"{self.paths} of {self.most_paths} paths{reserved}{more}; raise it with {{budget_paths}} to go on"
        each = self.tokens / self.paths if self.paths else 0.0
        if self.most_tokens is not None and self.tokens + self.promised * each >= self.most_tokens:
            return f"{self.tokens} of {self.most_tokens} tokens{reserved}; raise it with {{budget_tokens}} to go on"
        if self.most_milliseconds is not None and self.milliseconds >= self.most_milliseconds:
            told = f"{self.milliseconds / 1000:.0f} of {self.most_milliseconds / 1000:g} seconds"
            return f"{told}; raise it with {{budget_seconds}} to go on"
        return ""

    @property
    def seconds_left(self) -> float | None:
        """None where seconds are not counted."""
        left = None if self.most_milliseconds is None else self.most_milliseconds - self.milliseconds
        return None if left is None else max(0.0, left / 1000)

    def document(self) -> dict[str, dict[str, float | None]]:
        """As plain values."""
        most = None if self.most_milliseconds is None else self.most_milliseconds / 1000
        return {
            "spent": {"paths": self.paths, "tokens": self.tokens, "seconds": self.milliseconds / 1000},
            "reserved": {"paths": self.promised},
            "limits": {"paths": self.most_paths, "tokens": self.most_tokens, "seconds": most},
        }
