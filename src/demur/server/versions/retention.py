"""What is kept, and how long: one process of all forgets what is too old, now and then."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from demur.errors import InvalidValue, StoreError
from demur.store.service import ServiceStore

_logger = logging.getLogger("demur.server")
_DAY = 24 * 3600 * 1000
_EVERY = 3600.0
_LONGEST = 36_500.0
_TURN = (0, "retention")
"""Where processes agree on whose turn it is: no policy has the number 0."""


@dataclass(frozen=True)
class Retention:
    """Days after which decisions, or their texts alone, are forgotten; None: never."""

    keep_days: float | None = None
    keep_text_days: float | None = None

    def __post_init__(self) -> None:
        for name in ("keep_days", "keep_text_days"):
            days = getattr(self, name)
            if days is not None and not 0 < days <= _LONGEST:
                told = f"{name} must be a number of days above 0, up to {_LONGEST:g}, got {days}"
                raise InvalidValue(told, f"leave {{{name}}} out to forget nothing")
        if self.keep_days is not None and self.keep_text_days is not None and self.keep_text_days > self.keep_days:
            raise InvalidValue(
                f"texts cannot be kept {self.keep_text_days:g} days where decisions are kept {self.keep_days:g}",
                "give fewer {keep_text_days}",
            )

    def refuse_within(self, label_days: float) -> None:
        """Raise where decisions would be forgotten while monitors still wait for their labels."""
        if self.keep_days is not None and self.keep_days <= label_days:
            raise InvalidValue(
                f"decisions cannot be forgotten after {self.keep_days:g} days where an audited answer waits "
                f"{label_days:g} days for its label: those that somebody judged in time would be a choice",
                "give more {keep_days}, or fewer {label_days}",
            )

    def forget(self, store: ServiceStore, at: int) -> dict[str, int]:
        """Drop what is too old at a moment, logins that are over too; how many decisions, and of how many the texts."""
        dropped = {"decisions": 0, "texts": 0}
        if self.keep_days is not None:
            dropped["decisions"] = store.retention.forget(_before(at, self.keep_days))
        if self.keep_text_days is not None:
            dropped["texts"] = store.retention.forget_texts(_before(at, self.keep_text_days))
        store.logins.forget(at)
        return dropped

    def forget_in_turn(self, store: ServiceStore, at: int, every: float = _EVERY) -> dict[str, int] | None:
        """The same, unless a process did so less than `every` seconds ago; None where it was not our turn.

        A clock that was set back does not keep everybody waiting: a turn in the future counts as none.
        """
        state = store.monitors.read(*_TURN)
        last = 0 if state is None else int(state.document.get("at", 0))
        if last <= at < last + every * 1000:
            return None
        if not store.monitors.replace(*_TURN, {"at": at}, 0 if state is None else state.version):
            return None
        return self.forget(store, at)

    async def follow(self, store: ServiceStore, every: float = _EVERY) -> None:
        """Forget now and then, until this is cancelled."""
        while True:
            try:
                dropped = await asyncio.to_thread(self.forget_in_turn, store, time.time_ns() // 1_000_000, every)
                if dropped is not None and any(dropped.values()):
                    _logger.info("forgot what is too old", extra={"facts": dropped})
            except StoreError as error:
                _logger.warning("what is too old could not be forgotten: %s", error)
            await asyncio.sleep(every / 4)


def _before(at: int, days: float) -> int:
    return max(0, at - round(days * _DAY))
