"""What is in doubt, and since when: the alarms of all monitors, read together.

Canaries are old questions, so that only the model or its server can change what they come to. Keys of the traffic
change with the model or with the questions. So a canary alarm names the model, and a drift alarm names the questions
only where canaries are asked at that time and are quiet: enough of them that a change could have shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from demur.errors import InvalidValue

MODEL, QUESTIONS, EITHER, ERRORS = "model", "questions", "model or questions", "errors"
ENOUGH = 12
"""Canaries whose keys all move one way, before they raise an alarm at the usual level: fewer may well be quiet."""


@dataclass(frozen=True)
class Doubt:
    """One thing that is in doubt."""

    what: str
    """`model`, `questions`, `model or questions`, or `errors`."""
    since: datetime
    """When the alarm was raised; what it found began before."""
    sentence: str


@dataclass(frozen=True)
class Diagnosis:
    """What the alarms together say."""

    doubts: tuple[Doubt, ...] = ()
    """The earliest alarm first."""

    @property
    def since(self) -> datetime | None:
        """Since when the promise is in doubt; None where it is not."""
        return self.doubts[0].since if self.doubts else None

    @property
    def sentence(self) -> str:
        """All of it, for people."""
        if not self.doubts:
            return "No alarm: nothing speaks against the promise."
        told = " ".join(doubt.sentence for doubt in self.doubts)
        return f"The promise is in doubt since {_told(self.doubts[0].since)}. {told}"


def diagnose(
    *,
    canary_since: datetime | None = None,
    drift_since: datetime | None = None,
    errors_since: datetime | None = None,
    canaries: int = 0,
) -> Diagnosis:
    """Read alarms together, each given by when it was raised.

    `canaries` says how many were compared about the time of the drift alarm: those asked long before show the model as
    it was then.
    """
    raised = {"canary_since": canary_since, "drift_since": drift_since, "errors_since": errors_since}
    _check(raised)
    doubts = []
    if canary_since is not None:
        doubts.append(Doubt(MODEL, canary_since, f"Model or server changed (canary alarm of {_told(canary_since)})."))
    if drift_since is not None:
        doubts.append(_drift(drift_since, canary_since, canaries))
    if errors_since is not None:
        told = "Errors above the promise: more audited questions are or were answered wrongly than calibration allows"
        doubts.append(Doubt(ERRORS, errors_since, f"{told} (alarm of {_told(errors_since)})."))
    return Diagnosis(tuple(sorted(doubts, key=lambda doubt: doubt.since)))


def _drift(since: datetime, canary_since: datetime | None, canaries: int) -> Doubt:
    alarm = f"(drift alarm of {_told(since)})"
    if canary_since is not None:
        told = f"Keys of the traffic drifted too {alarm}, which the changed model alone can explain."
        return Doubt(EITHER, since, told)
    if not canaries:
        told = f"Questions changed, or the model did {alarm}: no canary was asked that would tell."
        return Doubt(EITHER, since, told)
    if canaries < ENOUGH:
        told = f"Questions changed, or the model did {alarm}: {canaries} canaries of that time are too few to tell."
        return Doubt(EITHER, since, told)
    told = f"Questions changed {alarm}: {canaries} canaries of that time show no change of the model."
    return Doubt(QUESTIONS, since, told)


def _check(raised: Mapping[str, datetime | None]) -> None:
    for name, since in raised.items():
        if since is not None and (not isinstance(since, datetime) or since.tzinfo is None):
            raise InvalidValue(f"{name} must be a time with its time zone, got {since!r:.60}")


def _told(since: datetime) -> str:
    return since.isoformat(sep=" ", timespec="minutes")
