"""Stopping rules: when the paths that a question has are enough, by their answers alone, in order of index.

    fixed           never before the last path
    agreement:W     the last W paths all gave one answer
    beta:P          the answer in front stays there with probability at least P: p ≥ P with
                    p = P(π > 1/2), π ~ Beta(n₁ + 1, n₂ + 1), n₁ and n₂ the paths behind the first and the second

A rule is looked at only where a wave of paths ends, and never sees a label, a score, a clock or the order of arrival:
how many paths a pool has is a function of its answers. So a rule that calibration and use share changes no promise
(docs/theory.md), and can be replayed on pools that have all their paths. One that only use has does break it.

A path without an answer is for nobody: it is in no agreement, and counts neither for n₁ nor for n₂. Where two answers
are level p is 1/2, and P is larger: a tie never stops.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from demur.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LIKELY = Fraction(9, 10)
"""A rule that stops where the answer in front stays there less often than this is greedy."""
_NUMBER = re.compile(r"[0-9]{0,3}\.?[0-9]{1,18}|[0-9]{1,9}/[0-9]{1,9}", re.ASCII)


class Rule(ABC):
    """Whether a pool has paths enough."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """What it is, with its version, in one word; `parse_rule` reads it."""

    @property
    def greedy(self) -> bool:
        """Whether it stops on little: then many pools that agree by chance pass for those that agree."""
        return False

    @abstractmethod
    def enough(self, keys: Sequence[Any]) -> bool:
        """Of the answers so far, None where a path has none."""

    @abstractmethod
    def enough_in(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """The same of many pools with as many paths: answers as whole numbers, negative where a path has none."""


@dataclass(frozen=True)
class Fixed(Rule):
    """All paths, always."""

    @property
    def spec(self) -> str:
        return "fixed@1"

    def enough(self, keys: Sequence[Any]) -> bool:
        return False

    def enough_in(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        import numpy as np

        return np.zeros(len(codes), dtype=np.bool_)


@dataclass(frozen=True)
class Agreement(Rule):
    """The last `window` paths gave one answer."""

    window: int

    def __post_init__(self) -> None:
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 2:
            raise InvalidValue(f"a window of agreement holds two paths or more, got {self.window!r:.60}")

    @property
    def spec(self) -> str:
        return f"agreement@1:{self.window}"

    @property
    def greedy(self) -> bool:
        return _stays_in_front(self.window, 0) < LIKELY

    def enough(self, keys: Sequence[Any]) -> bool:
        last = keys[-self.window :]
        return len(last) == self.window and last[0] is not None and all(key == last[0] for key in last)

    def enough_in(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        if codes.shape[1] < self.window:
            return Fixed().enough_in(codes)
        last = codes[:, -self.window :]
        agree: NDArray[np.bool_] = (last == last[:, :1]).all(axis=1) & (last[:, 0] >= 0)
        return agree


@dataclass(frozen=True)
class Beta(Rule):
    """The answer in front stays there with probability at least `level`, by the paths of the first two."""

    level: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.level, Fraction):
            raise InvalidValue(f"the level of a Beta rule is a Fraction, got {self.level!r:.60}", "use beta(0.95)")
        if not Fraction(1, 2) < self.level < 1:
            raise InvalidValue(f"the P of beta:P must lie strictly between 0.5 and 1, got {float(self.level):g}")

    @property
    def spec(self) -> str:
        return f"beta@1:{_written(self.level)}"

    @property
    def greedy(self) -> bool:
        return self.level < LIKELY

    def enough(self, keys: Sequence[Any]) -> bool:
        times = [paths for _, paths in Counter(key for key in keys if key is not None).most_common(2)]
        first, second = (*times, 0, 0)[:2]
        return first >= self.needed(len(keys))[second]

    def enough_in(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        import numpy as np

        first, second = _first_two(codes)
        enough: NDArray[np.bool_] = first >= np.array(self.needed(codes.shape[1]))[second]
        return enough

    def needed(self, paths: int) -> tuple[int, ...]:
        """How many paths the first answer needs where the second has 0, 1, … `paths`."""
        return _needed(self.level, paths)


@lru_cache(maxsize=256)
def _needed(level: Fraction, paths: int) -> tuple[int, ...]:
    found, first = [], 1
    for second in range(paths + 1):
        while _stays_in_front(first, second) < level:  # it never falls with more paths for the first
            first += 1
        found.append(first)
    return tuple(found)


@lru_cache(maxsize=65536)
def _stays_in_front(first: int, second: int) -> Fraction:
    """P(π > 1/2), π ~ Beta(n₁ + 1, n₂ + 1), exactly: at 1/2, a tail of the beta law is one of coins."""
    tossed = first + second + 1
    return Fraction(sum(math.comb(tossed, heads) for heads in range(second + 1, tossed + 1)), 2**tossed)


def _first_two(codes: NDArray[np.integer[Any]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """How many paths gave the most frequent answer of each pool, and the next one."""
    import numpy as np

    given = codes >= 0
    times = np.zeros(codes.shape, dtype=np.min_scalar_type(codes.shape[1]))
    for path in range(codes.shape[1]):
        times += (codes == codes[:, path : path + 1]) & given
    times[~given] = 0
    leader = np.take_along_axis(codes, times.argmax(axis=1)[:, None], axis=1)
    first: NDArray[np.intp] = times.max(axis=1).astype(np.intp)
    return first, np.where(codes == leader, 0, times).max(axis=1).astype(np.intp)


def parse_rule(text: Any) -> Rule:
    """`fixed`, `agreement:W` or `beta:P`, with or without the version."""
    head, _, argument = text.partition(":") if isinstance(text, str) else ("", "", "")
    name = head.removesuffix("@1")
    if name == "fixed" and not argument:
        return Fixed()
    if name == "agreement" and argument.isascii() and argument.isdigit() and len(argument) < 7:
        return Agreement(int(argument))
    if name == "beta" and argument:
        return Beta(level_of(argument))
    if name == "curtail":
        raise InvalidValue(
            "curtail follows a policy, and is no rule to calibrate by: it changes no decision",
            "draw in waves where the policy is used, by `demur ask` or `demur serve`",
        )
    raise InvalidValue(
        f"unknown stopping rule {text!r:.60}; expected fixed, agreement:W or beta:P, such as beta:0.95",
        "a text that ends a path is {stop_text}",
    )


def level_of(text: str) -> Fraction:
    """A probability as it is written: in floats it would not be exact."""
    try:
        if not _NUMBER.fullmatch(text):
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"the P of beta:P must be a number such as 0.95, got {text!r:.60}") from None


def _written(level: Fraction) -> str:
    """A level as a decimal where it is one, which no other spelling of it changes."""
    scaled = level * 10**20
    if scaled.denominator != 1:
        return str(level)
    return f"0.{scaled.numerator:020d}".rstrip("0")
