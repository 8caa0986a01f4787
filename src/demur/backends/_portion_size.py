"""How many paths are asked for in one request: fewer where a server gives or takes fewer, more again later."""

from __future__ import annotations

_FULL_BEFORE_MORE = 8
_MOST_BEFORE_MORE = 1024


class PortionSize:
    """The most paths to ask for at once, learned from what came of asking; never beyond `ceiling`.

    A server that takes no more is soon asked for no more. Twice as many are tried again after some full answers, and
    after ever more of them where that fails: trying costs one refusal, or nothing but a second request for the rest.
    """

    def __init__(self, ceiling: int | None = None) -> None:
        self.ceiling = self.limit = ceiling
        """`limit` is None as long as nothing is known against any number."""
        self._short: int | None = None
        """How many the last short answer held, unless more came at once since."""
        self._full = 0
        self._full_before_more = _FULL_BEFORE_MORE

    def next(self, wanted: int) -> int:
        """How many of the wanted paths to put into the next requests."""
        if self.limit is None or self.limit >= wanted:
            return wanted
        if self.limit == self.ceiling or self._full < self._full_before_more:
            return self.limit
        self._full = 0
        self._full_before_more = min(2 * self._full_before_more, _MOST_BEFORE_MORE)
        return min(wanted, 2 * self.limit, self.ceiling or wanted)

    def answered(self, *, asked_for: int, got: int) -> None:
        """A request was answered. One short answer is an accident, two alike in a row are a habit."""
        if got < asked_for:
            if got == self._short:
                self._limit_to(got)
            self._short = got
            return
        self._full += 1
        if self._short is not None and asked_for > self._short:
            self._short = None
        if self.limit is not None and asked_for > self.limit:
            self.limit, self._full_before_more = asked_for, _FULL_BEFORE_MORE

    def takes_at_most(self, number: int) -> None:
        """More than so many were refused, and so many were not."""
        self._limit_to(number)

    def _limit_to(self, number: int) -> None:
        self.limit = number if self.limit is None else min(self.limit, number)
        self._full = 0
