"""Budgets: paths and tokens that a key may spend in a minute and in a day, counted in the store for all replicas.

A request reserves as many paths as its policy draws, and when it is decided gives back those that were not drawn; so no
budget in paths is ever passed. How many tokens a request takes shows only afterwards: it is let in while less than the
budget is spent, and what is under way when it runs out still counts. Windows are whole minutes and days, UTC.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from demur.server.access.limits import Limits
from demur.server.errors import ApiError, busy
from demur.store.service import ServiceStore, Spent

_MILLISECONDS = {"minute": 60_000, "day": 86_400_000}
_KEPT = 2 * _MILLISECONDS["day"]


def _now() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Bill:
    """What a request cost; until that is known, all that was reserved."""

    paths: int
    tokens: int = 0
    drawn: bool = False
    """Whether paths were drawn by now: they are charged, whatever becomes of the request."""

    def drew(self, paths: int | None, tokens: int) -> None:
        """Charge what was drawn; None where nobody knows, so that what was reserved stays charged."""
        self.paths, self.tokens, self.drawn = self.paths if paths is None else paths, tokens, True


@dataclass(frozen=True)
class _Window:
    """A span of time with limits, and when it began."""

    name: str
    since: int
    paths: int | None
    tokens: int | None

    def key(self, caller: str) -> str:
        return f"{caller}/{self.name}"


class Budgets:
    """Charges keys for what they ask."""

    def __init__(self, store: ServiceStore | None, clock: Callable[[], int] = _now) -> None:
        self.store, self._clock = store, clock
        self._forgot_at = 0

    @asynccontextmanager
    async def reserved(
        self, caller: str | None, limits: Limits, paths: int, most_tokens: int = 0
    ) -> AsyncIterator[Bill]:
        """Within, so many paths are reserved; raises ApiError where they are not to be had.

        What was drawn is charged, whatever fails later. Before that, whoever ends because of an ApiError pays nothing,
        and whoever goes away what was reserved and the most tokens that it may have taken: else hanging up would be a
        way around the budget.
        """
        windows = self._windows(limits)
        bill = Bill(paths)
        if self.store is None or caller is None or not windows:
            yield bill
            return
        await asyncio.to_thread(self._reserve, self.store, caller, windows, paths)
        try:
            yield bill
        except ApiError:
            bill.paths = bill.paths if bill.drawn else 0
            raise
        except asyncio.CancelledError:
            bill.tokens = bill.tokens if bill.drawn else most_tokens
            raise
        finally:
            await asyncio.to_thread(self._settle, self.store, caller, windows, bill.paths - paths, bill.tokens)

    def _windows(self, limits: Limits) -> list[_Window]:
        now = self._clock()
        windows = [
            _Window("minute", now - now % _MILLISECONDS["minute"], limits.paths_per_minute, limits.tokens_per_minute),
            _Window("day", now - now % _MILLISECONDS["day"], limits.paths_per_day, limits.tokens_per_day),
        ]
        return [window for window in windows if (window.paths, window.tokens) != (None, None)]

    def _reserve(self, store: ServiceStore, caller: str, windows: list[_Window], paths: int) -> None:
        """Charge all windows or none. With a limit in tokens one token is charged for now: it asks for room."""
        self._forget(store)
        for window in windows:
            if window.paths is not None and paths > window.paths:
                told = f"a request takes {paths} paths, and this key may draw {window.paths} in a {window.name}"
                raise ApiError(403, told, code="budget_too_small")
        for place, window in enumerate(windows):
            spent = store.spending.spend(
                window.key(caller), window.since, paths, 1, most_paths=window.paths, most_tokens=window.tokens
            )
            if not spent.granted:
                self._settle(store, caller, windows[:place], -paths, 0)
                ends = window.since + _MILLISECONDS[window.name]
                raise busy(_spent(window, spent, paths), (ends - self._clock()) / 1000, "budget_spent")

    def _settle(self, store: ServiceStore, caller: str, windows: list[_Window], paths: int, tokens: int) -> None:
        """Charge what a request cost beyond what was reserved, or give back."""
        for window in windows:
            store.spending.spend(window.key(caller), window.since, paths, tokens - 1)

    def _forget(self, store: ServiceStore) -> None:
        """Drop windows that are long over, once an hour."""
        now = self._clock()
        if abs(now - self._forgot_at) >= 3_600_000:
            self._forgot_at = now
            store.spending.forget(max(0, now - _KEPT))


def _spent(window: _Window, spent: Spent, paths: int) -> str:
    """What a key has not enough of."""
    if window.paths is not None and spent.paths + paths > window.paths:
        return f"this key may draw {window.paths} paths in a {window.name}, and {spent.paths} are drawn or reserved"
    return f"this key may spend {window.tokens} tokens in a {window.name}, and {spent.tokens} are spent"
