"""Where long work stands: how much is wanted, how much is saved, what failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Progress:
    """`failed` are problems that were given up on, with the reason."""

    wanted: int
    """Paths to do, when this began; without those that a stopping rule has found to be needed no more."""
    problems: int
    saved: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    retries: int = 0
    database_retries: int = 0
    """How often a database that was away was asked again: nothing is paid for twice by that."""
    by_others: int = 0
    """Paths that other processes did meanwhile."""
    in_vain: int = 0
    """Paths that came when another process had brought them: it had taken over, or this one had too early."""
    lost_leases: int = 0
    """How often others took over from this process, because nothing was seen of it for too long."""
    waiting: str = ""
    """For whom it waits, who are at all that is left."""
    budget: str = ""
    """Which budget of the run is used up, so that it ended before it was done; options stand in it as in remedies."""
    trouble: str = ""
    """Why the last request that had to be tried again had to."""
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    interrupted: bool = False
    out_of_time: bool = False
    expected_left: Callable[[], float] | None = None
    """Paths that a stopping rule is expected to want still; None where all that are wanted are drawn."""

    def count_in_vain(self, paths: int) -> None:
        """Of what was counted as saved, so many paths were there already."""
        self.saved, self.by_others, self.in_vain = self.saved - paths, self.by_others + paths, self.in_vain + paths

    @property
    def stopped(self) -> bool:
        """Whether it ended before it was done."""
        return self.interrupted or self.out_of_time or bool(self.budget)

    @property
    def seconds(self) -> float:
        """So far, or until it ended."""
        return (self.ended or time.monotonic()) - self.started

    @property
    def rate(self) -> float:
        """Paths saved per second."""
        return self.saved / max(self.seconds, 1e-9)

    @property
    def expected(self) -> int:
        """Paths that there will be in the end: all that are wanted, or as many as a stopping rule seems to leave."""
        if self.expected_left is None:
            return self.wanted
        return min(self.wanted, self.saved + self.by_others + round(self.expected_left()))

    @property
    def seconds_left(self) -> float | None:
        left = max(0, self.expected - self.saved - self.by_others)
        return left * self.seconds / (self.saved + self.by_others) if self.saved else None
