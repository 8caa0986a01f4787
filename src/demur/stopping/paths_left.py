"""How many paths a rule will still want, going by the pools that it has looked at.

Of the pools that came to a look, a share ended there; one that is still to come to it is expected to do as they did.
Pools that go on count at each look that they passed: those that end early are there first, and would otherwise make all
others seem as short.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demur.errors import InvalidValue
from demur.stopping.stopping import Stopping


class PathsLeft:
    """Pools as far as they are drawn, each by a number of its own."""

    def __init__(self, stopping: Stopping) -> None:
        if stopping.most is None:
            raise InvalidValue("what is left can be reckoned up to a number of paths, and this rule does not say which")
        self.rule, self._looks = stopping.rule, (*stopping.looks(stopping.most), stopping.most)
        self._looked, self._ended, self._before = ([0] * len(self._looks) for _ in range(3))
        """By look: the pools that came to it, those that ended there, and those for which it is the next."""
        self._going_on: dict[int, tuple[int, int]] = {}
        """The next look of a pool, and its paths behind the last one."""
        self._over: set[int] = set()
        self._behind = 0

    def note(self, pool: int, keys: Mapping[int, Any]) -> None:
        """Where a pool stands, by the answers of its paths that are there; more than before, or as many."""
        if pool in self._over:
            return
        look, behind = self._going_on.pop(pool, (None, 0))
        self._behind -= behind
        if look is None:
            look = 0
        else:
            self._before[look] -= 1
        while all(path in keys for path in range(self._looks[look])):
            self._looked[look] += 1
            last = look == len(self._looks) - 1
            if last or self.rule.enough([keys[path] for path in range(self._looks[look])]):
                self._ended[look] += 1
                self._over.add(pool)
                return
            look += 1
        behind = sum(path in keys for path in range(self._drawn(look), self._looks[look]))
        self._going_on[pool] = look, behind
        self._before[look] += 1
        self._behind += behind

    @property
    def expected(self) -> float:
        """Paths that are still to come, of all pools that were noted. Where no pool came to a look, none ends there."""
        of_one, of_all = 0.0, 0.0
        for look in reversed(range(len(self._looks))):
            looked = self._looked[look]
            goes_on = 1 - self._ended[look] / looked if looked else 1.0
            of_one = self._looks[look] - self._drawn(look) + goes_on * of_one
            of_all += self._before[look] * of_one
        return of_all - self._behind

    def _drawn(self, look: int) -> int:
        """The paths of a pool for which this look is the next."""
        return self._looks[look - 1] if look else 0
