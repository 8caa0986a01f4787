"""Sizes of the pools in traffic, against those of calibration, if a policy declares that sizes vary by chance."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from demur.evidence.strata import SIZE_LEVEL
from demur.policy.decisions import size_shift_note
from demur.server.outcomes import Outcome
from demur.server.served import Served
from demur.store.service import ServiceStore

KIND = "sizes"
_FIRST, _LOOKS = 50, 12
"""The first look is at this number of pools, each further one at twice as many; this is the number of looks."""
_logger = logging.getLogger("demur.server")


class PoolSizes:
    """Counts the sizes of the pools that this process decides on; a difference is an event and a line in the log.

    Look k of a process, from 0, has the level SIZE_LEVEL / ((k + 1)(k + 2)): over all looks a false warning has a
    probability of at most SIZE_LEVEL.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: dict[str, Counter[int]] = {}
        self._looks: Counter[str] = Counter()

    def saw(self, outcome: Outcome) -> None:
        """Count the pool of one decision."""
        served = outcome.question.served
        if outcome.asked is not None and not outcome.shared and served.policy.strata.by_chance:
            with self._lock:
                self._sizes.setdefault(served.full_name, Counter())[outcome.asked.n_paths] += 1

    def note(self, store: ServiceStore, served: Served, now: int) -> None:
        """Test the sizes of a policy's pools, if enough came since the last look."""
        name = served.full_name
        with self._lock:
            sizes, look = Counter(self._sizes.get(name, {})), self._looks[name]
            if look == _LOOKS or sizes.total() < _FIRST * 2**look:
                return
            self._looks[name] += 1
        words = size_shift_note(served.policy.strata, sizes, SIZE_LEVEL / ((look + 1) * (look + 2)))
        if words:
            with self._lock:
                self._looks[name] = _LOOKS
            _logger.warning("%s: %s", name, words)
            store.events.note(now, KIND, f"{name}: {words}", policy=served.number, once=KIND)
