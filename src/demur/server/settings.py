"""What a service was told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from demur.calibration import exact_alpha
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
    most_characters: int = 200_000
    """Of a question, with its options, passages and earlier turns."""
    body_seconds: float = 30.0
    """A body takes no longer to arrive."""
    audit_share: float = 0.05
    """The share of all requests that is marked for audit."""
    second_opinions: float = 0.0
    """The share of reviews that a second person is to judge too, without seeing what the first said."""
    texts: bool = True
    """Whether anything that a person or a model wrote is stored or logged."""
    on_alarm: Literal["warn", "abstain", "strictest"] = "warn"
    """What an alarm does beside being told: nothing, no answers, or answers at the strictest alpha alone."""
    label_days: float = 7.0
    """So long an audited answer waits for a label; then monitors take it as no error, which can only delay an alarm."""
    online_step: float | None = None
    """How far an audited error raises the threshold, as a share of the calibration keys; None: it stays calibrated."""
    canaries_per_day: float = 24.0
    """Questions of a run that are asked again, of each policy."""
    watch_seconds: float = 3.0
    """Between looks at what monitors are to take."""
    late_seconds: float = 60.0
    """So much later than it must be decided, a request is in the log at the latest, and its audit has its turn."""

    def kept(self, text: str | None) -> str | None:
        """What is stored of a text that a person wrote."""
        return text if self.texts else None

    def __post_init__(self) -> None:
        if self.show not in ("answer", "path"):
            raise InvalidValue(f"an answered request gets its answer or a path, got show = {self.show!r:.40}")
        if not (0 < self.audit_share <= 1):
            raise InvalidValue(f"the share of audits must lie in (0, 1], got {self.audit_share}")
        if not (0 <= self.second_opinions <= 1):
            raise InvalidValue(f"the share of second opinions must lie in [0, 1], got {self.second_opinions}")
        for name in ("fan_out", "waiting", "most_bytes", "most_characters"):
            if getattr(self, name) < 1:
                raise InvalidValue(f"{name} must be at least 1, got {getattr(self, name)}", f"give more {{{name}}}")
        if self.on_alarm not in ("warn", "abstain", "strictest"):
            raise InvalidValue(f"an alarm has the effect warn, abstain or strictest, got {self.on_alarm!r:.40}")
        if self.online_step is not None:
            exact_alpha(self.online_step, "online_step")
        above_zero = ("label_days", "canaries_per_day", "watch_seconds", "late_seconds")
        for name in ("seconds", "keep_alive", "body_seconds", *above_zero):
            if not 0 < getattr(self, name) < math.inf:
                told = f"{name} must be a number above 0, got {getattr(self, name)}"
                raise InvalidValue(told, f"give another {{{name}}}")
