"""What a service was told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from demur.errors import InvalidValue
from demur.pipeline.waves import Waves

ABSTAIN_TEXT = "I would rather not answer this question."


@dataclass(frozen=True)
class ServiceSettings:
    """How requests are answered. Nothing here changes what was calibrated."""

    show: Literal["answer", "path"] = "answer"
    """What an answered request gets as its text: the answer, or the best path that ends in it."""
    abstain_text: str = ABSTAIN_TEXT
    waves: Waves | None = None
    """How paths are asked for; None: all at once."""
    fan_out: int = 256
    """Most paths that are under way at once."""
    waiting: int = 1_000
    """Most requests that wait for their turn; the next gets 429."""
    seconds: float = 300.0
    """A request takes no longer: then it abstains."""
    keep_alive: float = 10.0
    """Seconds between the comments that keep a stream open."""
    most_bytes: int = 1_000_000
    """Of a body."""
    audit_share: float = 0.05
    """The share of all requests that is marked for audit."""
    second_opinions: float = 0.0
    """The share of reviews that a second person is to judge too, without seeing what the first said."""
    texts: bool = True
    """Whether questions, paths and answers are kept in the log."""

    def __post_init__(self) -> None:
        if self.show not in ("answer", "path"):
            raise InvalidValue(f"an answered request gets its answer or a path, got show = {self.show!r:.40}")
        if not (0 < self.audit_share <= 1):
            raise InvalidValue(f"the share of audits must lie in (0, 1], got {self.audit_share}")
        if not (0 <= self.second_opinions <= 1):
            raise InvalidValue(f"the share of second opinions must lie in [0, 1], got {self.second_opinions}")
        for name in ("fan_out", "waiting", "most_bytes"):
            if getattr(self, name) < 1:
                raise InvalidValue(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("seconds", "keep_alive"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidValue(f"{name} must be a number above 0, got {getattr(self, name)}")
