"""The paths of a problem in waves, until a stopping rule has enough: by answers in order of index, never of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from demur.engine.progress import Progress
from demur.records import Path
from demur.stopping import Stopping
from demur.store import Pending, Run
from demur.tasks import keys_by_task


class UntilStopped:
    """What a rule still wants of each problem, given what is saved and what came since."""

    def __init__(self, stopping: Stopping, run: Run, progress: Progress) -> None:
        self.stopping, self.progress, self._run = stopping, progress, run
        self._labels, self._keys = run.read_by.get("labels", ()), run.keys_of_paths()

    def lacking(self, pending: Sequence[Pending]) -> list[Pending]:
        """Those of the problems that lack paths of which the rule wants more, or of which some are drawn again."""
        return [one for one in pending if one.again or self.stopping.wanted(self._keys.get(one.number, {}))]

    def lacking_now(self, pending: Sequence[Pending]) -> list[Pending]:
        """The same after others may have drawn some of their paths: by what is saved now."""
        self._keys |= self._run.keys_of_paths([one.number for one in pending])
        return self.lacking(pending)

    def take(self, lacking: Pending, place: int, path: Path) -> None:
        """A path that came."""
        key = keys_by_task(lacking.problem, [path.answer], self._labels)[0]
        self._keys.setdefault(lacking.number, {})[place] = key

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
