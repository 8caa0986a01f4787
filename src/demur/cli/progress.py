"""How long work is shown: a bar on a terminal, plain lines elsewhere; and how Ctrl-C ends it cleanly."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from demur.cli import output

if TYPE_CHECKING:
    from demur.engine.progress import Progress

_SECONDS_BETWEEN_LINES = 10.0


class Meter:
    """Watches long work. Call it with each state; the line ends with the block it is used in."""

    def __init__(self, *, quiet: bool = False, counted: str = "paths") -> None:
        self.quiet, self.counted = quiet, counted
        self._bar: Any = None
        self._task: Any = None
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if self.quiet:
            return
        if sys.stderr.isatty():
            self._draw(progress)
        elif time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            about = "" if progress.expected == progress.wanted else "about "
            output.mention(f"{progress.saved} of {about}{progress.expected} {self.counted}; {self._facts(progress)}")

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:
            from rich import progress as rich_progress
            from rich.console import Console

            columns = rich_progress.BarColumn(), rich_progress.MofNCompleteColumn()
            told = rich_progress.TextColumn("{task.description}", markup=False)
            self._bar = rich_progress.Progress(*columns, told, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=progress.expected)
        self._bar.update(
            self._task, total=progress.expected, completed=progress.saved, description=self._facts(progress)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _facts(self, progress: Progress) -> str:
        facts = [f"{progress.rate:.1f} {self.counted}/s"]
        tokens = getattr(progress, "tokens", 0)  # scoring counts none
        if tokens:
            facts.append(f"{tokens / max(progress.seconds, 1e-9):.0f} tokens/s")
        if progress.failed:
            facts.append(f"{len(progress.failed)} problems failed")
        if progress.retries:
            facts.append(f"{progress.retries} requests tried again (last: {output.visible(progress.trouble, 80)})")
        if progress.waiting:
            facts.append(progress.waiting)
        elif progress.seconds_left is not None:
            facts.append(f"{duration(progress.seconds_left)} left")
        return ", ".join(facts)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """Within, being asked to end (SIGTERM) is the same as Ctrl-C: what came is saved first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
