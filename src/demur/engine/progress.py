"""Where long work stands: how much is wanted, how much is saved, what failed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Progress:
    """`failed` are problems that were given up on, with the reason."""

    wanted: int
    """Paths to do, when this began."""
    problems: int
    saved: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    retries: int = 0
    database_retries: int = 0
    """How often a database that was away was asked again: nothing is paid for twice by that."""
    trouble: str = ""
    """Why the last request that had to be tried again had to."""
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    interrupted: bool = False
    out_of_time: bool = False

    @property
    def stopped(self) -> bool:
        """Whether it ended before it was done."""
        return self.interrupted or self.out_of_time

    @property
    def seconds(self) -> float:
        """So far, or until it ended."""
        return (self.ended or time.monotonic()) - self.started

    @property
    def rate(self) -> float:
        """Paths saved per second."""
        return self.saved / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        return (self.wanted - self.saved) / self.rate if self.saved else None
