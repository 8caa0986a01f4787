"""The paths of a problem in waves, until a stopping rule has enough: by answers in order of index, never of arrival."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from demur.engine.progress import Progress
from demur.records import Path
from demur.stopping import Stopping
from demur.stopping.paths_left import PathsLeft
from demur.store import Pending, Run
from demur.store.ended_pools import ends_of
from demur.tasks import keys_by_task


class UntilStopped:
    """What a rule still wants of each problem, given what is saved and what came since."""

    def __init__(self, stopping: Stopping, run: Run, progress: Progress) -> None:
        self.stopping, self.progress, self._run = stopping, progress, run
        self._labels, self._keys = run.read_by.get("labels", ()), run.keys_of_paths()
        self._left, self._learning = PathsLeft(stopping), threading.Lock()
        self._again = 0
        progress.expected_left = lambda: self._again + self._left.expected

    def begin(self, pending: Sequence[Pending]) -> list[Pending]:
        """Those of the problems that lack paths of which the rule wants more; what is expected of them counts."""
        lacking = self.lacking(pending)
        over = (number for number, keys in self._keys.items() if not self.stopping.wanted(keys))
        for number in chain(over, (one.number for one in lacking)):
            self._left.note(number, self._keys.get(number, {}))
        self._again = sum(len(one.again) for one in lacking)
        return lacking

    def lacking(self, pending: Sequence[Pending]) -> list[Pending]:
        """Those of the problems that lack paths of which the rule wants more, or of which some are drawn again."""
        return [one for one in pending if one.again or self.stopping.wanted(self._keys.get(one.number, {}))]

    def lacking_now(self, numbers: Collection[int], pending: Sequence[Pending]) -> list[Pending]:
        """The same of some problems, of which others may have drawn paths, by what is saved now."""
        for number, keys in self._run.keys_of_paths(numbers).items():
            self._learn(number, keys)
        return self.lacking(pending)

    def ended_between(self, first: int, last: int) -> set[int]:
        """The problems of a stretch whose pools the rule has ended, by what is saved now."""
        keys = self._run.keys_of_paths(range(first, last + 1))
        ended = ends_of(keys, self.stopping).keys()
        for number in ended:
            self._learn(number, keys[number])
        return set(ended)

    def unwanted(self, number: int) -> int:
        """The paths that a problem will never have, given that the rule has ended it."""
        return (self.stopping.most or 0) - len(self._keys.get(number, {}))

    def _learn(self, number: int, keys: Mapping[int, Any]) -> None:
        """Paths of a problem that are saved, whoever drew them."""
        with self._learning:  # paths come in one thread, and what others did is read in another
            known = self._keys.setdefault(number, {})
            known.update(keys)
            self._left.note(number, known)

    def take(self, lacking: Pending, place: int, path: Path) -> None:
        """A path that came."""
        key = keys_by_task(lacking.problem, [path.answer], self._labels)[0]
        self._again -= place in lacking.again
        self._learn(lacking.number, {place: key})

    def waves(self, lacking: Pending) -> Iterator[list[int]]:
        """The paths to draw, a wave at a time: what comes next depends on what came.

        Ends as soon as the rule has enough, or a wave brought nothing. What is not drawn is not wanted any more.
        """
        keys, left = self._keys.setdefault(lacking.number, {}), set(lacking.missing)
        if lacking.again:
            yield sorted(lacking.again)
        while places := self.stopping.wanted(keys):
            yield places
            left -= keys.keys()
            if not left.isdisjoint(places):
                return  # the model gave fewer than it was asked for
        self.progress.wanted -= len(left)
