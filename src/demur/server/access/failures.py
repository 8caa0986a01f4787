"""How often somebody failed of late: after some failures, they wait."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable

_MOST_REMEMBERED = 10_000


class Failures:
    """Failures by who failed: after `most` of them within `seconds`, they wait until the first is as old."""

    def __init__(self, most: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.seconds, self._clock = most, seconds, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, who: str) -> None:
        times = self._times.setdefault(who, deque(maxlen=self.most))
        times.append(self._clock())
        self._times.move_to_end(who)
        while len(self._times) > _MOST_REMEMBERED:
            self._times.popitem(last=False)

    def wait(self, who: str) -> float:
        """Seconds that they are to wait; 0 where they may try."""
        times = self._times.get(who)
        if times is None or len(times) < self.most:
            return 0.0
        return max(0.0, times[0] + self.seconds - self._clock())
