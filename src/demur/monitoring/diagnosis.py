"""What is in doubt, and since when: the alarms of all monitors, read together.

Canaries are old questions, so that only the model or its server can change what they come to. Keys of the traffic
change with the model or with the questions. So a canary alarm names the model. A drift alarm names the questions only
where canaries that were asked after the change began speak for the model; until enough of them do, it is not known.

    d       the way in which keys of the traffic drifted: higher or lower
    x, y    canaries asked since then whose key moved that way, and the other way
    H       the model changed with the traffic: of the canaries whose keys move, at least two in three move that way

Under H, (½ / ⅔)ˣ (½ / ⅓)ʸ is at most a fair bet, so that it ever reaches 20 with a probability of at most 1/20 (Ville),
however often one looks. From there on the questions are named. A change of the model that moves fewer canaries than
two in three that way can be taken for one of the questions, and so can one that began later than the drift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from demur.errors import InvalidValue

MODEL, QUESTIONS, EITHER, ERRORS = "model", "questions", "model or questions", "errors"
_SHARE, _SPEAKS = 2 / 3, 20.0


@dataclass(frozen=True)
class Moved:
    """Canaries by what became of their keys."""

    higher: int = 0
    lower: int = 0
    equal: int = 0

    @property
    def n(self) -> int:
        return self.higher + self.lower + self.equal

    def speaks_against(self, change: str | None) -> bool:
        """Whether these canaries rule out that the model changed as the keys of the traffic did."""
        if change not in ("higher", "lower"):
            return False  # keys that are drawn together or spread out move both ways
        along, against = (self.higher, self.lower) if change == "higher" else (self.lower, self.higher)
        return along * math.log(0.5 / _SHARE) + against * math.log(0.5 / (1 - _SHARE)) >= math.log(_SPEAKS)


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
    drift_from: datetime | None = None,
    drift_change: str | None = None,
    canaries: Moved = Moved(),  # noqa: B008 - frozen
) -> Diagnosis:
    """Read alarms together, each given by when it was raised.

    `drift_from` is when the drift probably began (the time of the key `DriftMonitor.change_from`), `drift_change` how
    keys differ (`DriftMonitor.change`), and `canaries` are those that were asked after `drift_from`
    (`CanaryMonitor.moved`): those before show the model as it was.
    """
    raised = {"canary_since": canary_since, "drift_since": drift_since, "errors_since": errors_since}
    _check({**raised, "drift_from": drift_from})
    doubts = []
    if canary_since is not None:
        doubts.append(Doubt(MODEL, canary_since, f"Model or server changed (canary alarm of {_told(canary_since)})."))
    if drift_since is not None:
        begun = "" if drift_from is None else f", probably from {_told(drift_from)} on"
        alarm = f"(drift alarm of {_told(drift_since)}{begun})"
        what, told = _drift(alarm, drift_change, canaries, model_changed=canary_since is not None)
        doubts.append(Doubt(what, drift_since, told))
    if errors_since is not None:
        told = "Errors above the promise: more audited questions are or were answered wrongly than calibration allows"
        doubts.append(Doubt(ERRORS, errors_since, f"{told} (alarm of {_told(errors_since)})."))
    return Diagnosis(tuple(sorted(doubts, key=lambda doubt: doubt.since)))


def _drift(alarm: str, change: str | None, canaries: Moved, *, model_changed: bool) -> tuple[str, str]:
    if model_changed:
        return EITHER, f"Keys of the traffic drifted too {alarm}, which the changed model alone can explain."
    open_ = f"Questions changed, or the model did {alarm}: not known yet which"
    if not canaries.n:
        return EITHER, f"{open_}, because no canary was asked since then."
    moved = f"the keys of {canaries.higher} are higher and of {canaries.lower} lower"
    told = f"of {canaries.n} canaries asked since then, {moved}"
    if canaries.speaks_against(change):
        return QUESTIONS, f"Questions changed {alarm}: {told}, so that the model did not change in the same way."
    if change in ("higher", "lower"):
        return EITHER, f"{open_}; {told}, which is too little to tell."
    return EITHER, f"{open_}; {told}, and canaries cannot tell when keys of the traffic are {change}."


def _check(raised: Mapping[str, datetime | None]) -> None:
    for name, since in raised.items():
        if since is not None and (not isinstance(since, datetime) or since.tzinfo is None):
            raise InvalidValue(f"{name} must be a time with its time zone, got {since!r:.60}")


def _told(since: datetime) -> str:
    return since.isoformat(sep=" ", timespec="minutes")
