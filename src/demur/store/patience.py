"""Patience with a database: work that its server went away from is done again when the server is back.

What is done again may have been committed without our learning of it, so all of it must bear being done twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from demur.errors import StoreUnreachable

SECONDS = 300.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Patience:
    """How long a server may be away, in seconds, before work is given up; and how often that was so."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self.retries = 0
        self.waiting = False
        self.trouble = ""
        """Why it waits, or waited last."""
        self._ended = threading.Event()
        self._here = threading.local()

    def end(self) -> None:
        """Wait no longer, now and from now on: somebody wants to go."""
        self._ended.set()

    def renew(self) -> None:
        """Wait again."""
        self._ended.clear()

    def outlast(self, work: Callable[[], Result], *, only: str = "") -> Result:
        """What work gives, done again as long as its server is away, and says `only` why.

        Within work that is outlasted already, it is done once: two patiences would add up.
        """
        if getattr(self._here, "outlasting", False):
            return work()
        self._here.outlasting = True
        try:
            return self._outlast(work, only)
        finally:
            self._here.outlasting = self.waiting = False

    def _outlast(self, work: Callable[[], Result], only: str) -> Result:
        since, pause = None, _FIRST_PAUSE
        while True:
            try:
                return work()
            except StoreUnreachable as error:
                now = time.monotonic()
                since = now if since is None else since
                left = since + self.seconds - now
                if left <= 0 or self._ended.is_set() or only not in str(error):
                    raise
                self.waiting = True
                self.retries += 1
                self.trouble = str(error)
                self._ended.wait(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)


class _Patient(Protocol):
    @property
    def patience(self) -> Patience: ...


Owner = TypeVar("Owner", bound=_Patient)


def patient(method: Callable[Concatenate[Owner, Given], Result]) -> Callable[Concatenate[Owner, Given], Result]:
    """A method that bears being done twice, and outlasts a server that goes away."""

    @wraps(method)
    def outlasting(self: Owner, /, *given: Given.args, **named: Given.kwargs) -> Result:
        return self.patience.outlast(lambda: method(self, *given, **named))

    return outlasting
