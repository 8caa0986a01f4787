"""Betting against a hypothesis: money that cannot be expected to grow while it holds, whenever one looks.

Each observation multiplies a stake by a factor of mean at most 1 under the hypothesis. Such money starts at 1, and by
Ville's inequality P(it ever reaches 1/δ) ≤ δ, so that one may look after every observation and stop at will.

A change comes at an unknown time, and a stake that was bet from the first day is spent by then. So the money is not
bet at once: of 1, the cash 1/(1 + log₂(1 + t)) is still unbet after t observations, and what leaves it at time t is
spread evenly over the bets. The value is a mixture over the bets and over when the change began, and a change after t
observations costs about log t + 2 log log t of log-value more than one on the first day, where a stake that always
bets would have lost in proportion to t.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from operator import add, index
from typing import Any

import numpy as np

from demur.errors import InvalidValue
from demur.evidence.counts import Floats

_BLOCK = 1024
MOST = 1e150
"""A value that says enough. It is not let grow further, nor a factor beyond its root, so that nothing overflows."""
LARGEST_LOG_FACTOR = math.log(MOST) / 2
_MOST_OBSERVATIONS = 10**15


class Stakes:
    """The money: cash that is not bet yet, and a stake on each bet."""

    def __init__(self, bets: int, limit: float) -> None:
        self.limit = limit
        """An alarm is raised when the value reaches it."""
        self.seen = 0
        """Observations so far."""
        self.stakes = [0.0] * bets
        self._unbet = _cash(0)
        self.value = self.highest = 1.0
        self.alarm_at: int | None = None
        """How many observations there were when the value first reached the limit."""

    def bet(self, factors: Sequence[float], observations: int = 1) -> None:
        """What an observation makes of each bet; of several together, whose order is not known, their product."""
        self.seen += observations
        before, self._unbet = self._unbet, _cash(self.seen)
        start = (before - self._unbet) / len(self.stakes)
        stakes = [(stake + start) * factor for stake, factor in zip(self.stakes, factors, strict=True)]
        total = _total(stakes)
        if total > MOST:
            stakes = [stake * (MOST / total) for stake in stakes]
            total = _total(stakes)
        self.stakes, self.value = stakes, total + self._unbet
        if self.value > self.highest:
            self.highest = self.value
            if self.value >= self.limit and self.alarm_at is None:
                self.alarm_at = self.seen

    def bet_each(self, factors: Floats) -> None:
        """Many observations in the order they came, a row of factors each: the same as one bet after another."""
        unbet = _cash_from(self.seen, len(factors) + 1)
        starts = ((unbet[:-1] - unbet[1:]) / len(self.stakes)).tolist()
        stakes = np.array([_grown(*each, starts) for each in zip(self.stakes, factors.T.tolist(), strict=True)])
        totals = _total(stakes)
        too_large = totals > MOST
        usual = int(too_large.argmax()) if too_large.any() else len(factors)
        if usual:
            values = totals[:usual] + unbet[1 : usual + 1]
            if self.alarm_at is None and (reached := values >= self.limit).any():
                self.alarm_at = self.seen + 1 + int(reached.argmax())
            self.seen += usual
            self.stakes, self._unbet = stakes[:, usual - 1].tolist(), float(unbet[usual])
            self.value, self.highest = float(values[-1]), max(self.highest, float(values.max()))
        for row in factors[usual:].tolist():
            self.bet(row)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {name: getattr(self, name) for name in ("seen", "stakes", "highest", "alarm_at")}

    def restore(self, document: dict[str, Any]) -> None:
        """Go on from where a document ends; ValueError where it does not hold together."""
        seen = as_count(document.get("seen"), "seen")
        stakes: Any = document.get("stakes")
        highest: Any = document.get("highest")
        alarm_at: Any = document.get("alarm_at")
        if not (isinstance(stakes, list) and len(stakes) == len(self.stakes) and all(map(_is_money, stakes))):
            raise InvalidValue(f"stakes must be {len(self.stakes)} numbers from 0 to {MOST:g}, got {stakes!r:.60}")
        unbet = _cash(seen)
        value = _total(stakes) + unbet
        if not (_is_money(highest) and highest >= value):
            raise InvalidValue(f"highest must be the largest value so far, at least {value:g}, got {highest!r:.60}")
        if alarm_at is not None:
            alarm_at = as_count(alarm_at, "alarm_at")
        if (alarm_at is not None) != (highest >= self.limit) or (alarm_at or 0) > seen:
            raise InvalidValue(f"alarm_at = {alarm_at} does not fit a highest value of {highest:g} after {seen}")
        self.seen, self.stakes, self._unbet, self.value = seen, stakes, unbet, value
        self.highest, self.alarm_at = highest, alarm_at


def as_count(value: Any, name: str) -> int:
    """A whole number from 0 on; a caller's or a file's."""
    try:
        count = -1 if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        count = -1
    if not 0 <= count <= _MOST_OBSERVATIONS:
        raise InvalidValue(f"{name} must be a count, a whole number from 0 on, got {value!r:.60}")
    return count


def _grown(stake: float, factors: Sequence[float], starts: Sequence[float]) -> list[float]:
    """One stake after each of many observations."""
    return [stake := (stake + start) * factor for start, factor in zip(starts, factors, strict=True)]


def _total(stakes: Iterable[Any]) -> Any:
    """Stakes added up in turn, numbers or arrays alike; `sum` rounds otherwise, and not the same in every Python."""
    return reduce(add, stakes)


def _cash(seen: int) -> float:
    return 1 / (1 + math.log2(1 + seen))


def _cash_from(seen: int, count: int) -> Floats:
    """What is not bet after so many observations, and after each of the next."""
    blocks = range(seen // _BLOCK, (seen + count - 1) // _BLOCK + 1)
    return np.concatenate([_cash_block(block) for block in blocks])[seen % _BLOCK :][:count]


@lru_cache(maxsize=64)
def _cash_block(block: int) -> Floats:
    return np.array([_cash(seen) for seen in range(block * _BLOCK, (block + 1) * _BLOCK)])


def _is_money(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 2 * MOST
