"""Everything demur raises on purpose.

    DemurError
    ├── InvalidValue (also a ValueError)     a caller's argument breaks a rule; names the value and the rule
    ├── PoolFileError                        a pool file cannot be read as one; names file and line
    ├── DatasetError                         questions cannot be found or read
    ├── LogprobsMissing                      a score needs token log-probabilities that were not recorded
    ├── ScoringError                         a scorer gives what is no score, or cannot read a path
    ├── StoreError                           a run cannot be opened, read or written
    │   └── StoreUnreachable                 … for now: its database went away
    ├── BackendError                         a model cannot be reached, or refuses
    │   └── EndpointRefused                  … and will refuse every further request too: key, model
    │       ├── NoSuchRoute                  … or does not offer the route
    │       └── EndpointSilent               … or has answered nobody for longer than the patience
    ├── ClusterError                         a Ray cluster cannot be reached, is of another version, or loses its work
    ├── PolicyFileError                      a policy file is foreign, newer, damaged or edited
    ├── MonitorFileError                     a monitor's file is foreign, newer, damaged, or of another policy
    ├── TunedFileError                       a file of a tuned vote is foreign, newer, damaged or edited
    ├── ShiftFileError                       a file of a fitted shift is foreign, newer, damaged or edited
    ├── PipelineMismatch                     a policy is used on votes made another way
    ├── LabelMismatch                        a policy is audited by labels made another way
    ├── CalibrationLeak                      problems used for calibration turn up where unseen ones are needed
    ├── InsufficientCalibration              too few labels for the promise, and `strict` was asked for
    ├── PluginError                          a part that another package brings cannot be loaded or used
    ├── LoopClosed                           the event loop ended while work was under way
    └── MissingExtra                         a part that is installed separately is not there

Each says what happened and, as its `remedy`, the way out. Options stand in a remedy as {name} or {name=value}: Python
reads `name` and `name=value`, the command line puts its flags there.
`InfeasibleWarning` is the gentle form of InsufficientCalibration: the policy is valid, and abstains always.
`NoJitterWarning` says that ties were to be broken by jitter, and there is nothing to draw it from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec

_OPTION = re.compile(r"\{([a-z_][\w.-]*)(?:=([^{}]*))?\}")


class DemurError(Exception):
    """The root: what happened, what was needed, the way out, in one line."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message, self.remedy = message, remedy

    def __str__(self) -> str:
        return self.told(lambda name, value: name if value is None else f"{name}={value}")

    def told(self, option: Callable[[str, str | None], str]) -> str:
        """The whole line, options put the way that `option` puts a name and a value."""
        remedy = _OPTION.sub(lambda named: option(named.group(1), named.group(2)), self.remedy)
        return f"{self.message}; {remedy}" if remedy else self.message


class InvalidValue(DemurError, ValueError):
    """A value that breaks a stated rule."""


class PoolFileError(DemurError):
    """A pool file, or one line of it, is not what was expected."""


class DatasetError(DemurError):
    """A set of questions cannot be found, or is not in a format that is known."""


class LogprobsMissing(DemurError):
    """A score needs token log-probabilities, and a path has none."""


class ScoringError(DemurError):
    """A scorer gave something other than one finite number per path, or cannot take a path."""


class StoreError(DemurError):
    """A store of runs is foreign, newer, damaged, or cannot be written."""


class StoreUnreachable(StoreError):
    """The database of a store cannot be reached, or not now."""


class BackendError(DemurError):
    """A model cannot be reached, refuses, or sends what cannot be understood."""


class EndpointRefused(BackendError):
    """An endpoint refuses in a way that no other request will change: no key, no such route or model."""


class NoSuchRoute(EndpointRefused):
    """An endpoint does not offer a route, or not for this model."""


class EndpointSilent(EndpointRefused):
    """An endpoint answered nobody for longer than it is waited for, or says that it will not."""

    retry_after: float = 0.0
    """The wait that it asks for, in seconds; 0 where it asks for none."""


class ClusterError(DemurError):
    """A Ray cluster cannot be reached or used, or its workers end before their work does."""


class PolicyFileError(DemurError):
    """A policy file cannot be trusted or understood."""


class MonitorFileError(DemurError):
    """A monitor's file cannot be trusted or understood, or belongs to another policy."""


class TunedFileError(DemurError):
    """A file that `tune` wrote cannot be trusted or understood."""


class ShiftFileError(DemurError):
    """A file of a fitted shift cannot be trusted or understood."""


class PipelineMismatch(DemurError):
    """A policy met votes that were not made the way it was calibrated."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        compared = any(difference.startswith("answers.relation") for difference in self.differences)
        stopped = any(difference.startswith("sampling.stopping") for difference in self.differences)
        super().__init__(
            "these votes were not made the way the policy was calibrated: " + "; ".join(self.differences),
            "leave {task} out, or give the one that the policy was calibrated with; for another, calibrate again"
            if compared
            else "give the policy's rule as {stop} and {wave}, or none where it has none; for another, calibrate again"
            if stopped
            else "",
        )


class LabelMismatch(DemurError):
    """What counts as right is not what counted as right when the policy was calibrated."""


class CalibrationLeak(DemurError):
    """Problems that calibrated or tuned the policy are about to be used as if they were new."""


class InsufficientCalibration(DemurError):
    """The calibration set is too small for the promise asked for."""


class PluginError(DemurError):
    """A plugin fails on import, gives something else than it says, or claims a name that is taken."""


class LoopClosed(DemurError):
    """An event loop was closed while work was under way in it."""


class MissingExtra(DemurError):
    """An optional part is not installed; the remedy is the command that installs it into this environment."""

    def __init__(self, message: str, extra: str, otherwise: str = "") -> None:
        remedy = f"install it with: {install_command(extra)}"
        super().__init__(message, f"{remedy}, {otherwise}" if otherwise else remedy)


class InfeasibleWarning(UserWarning):
    """The calibration set is too small, so the policy abstains on every question."""


class NoJitterWarning(UserWarning):
    """Pools have neither a question nor an id that jitter could be drawn from."""


def install_command(extra: str) -> str:
    """What installs the packages of an extra beside this demur, however demur itself was installed."""
    try:
        required = metadata.requires("demur") or []
    except metadata.PackageNotFoundError:  # run from its source
        required = []
    packages = [line.partition(";")[0].strip() for line in required if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    pip = f"{sys.executable} -m pip" if find_spec("pip") else f"uv pip --python {sys.executable}"
    wanted = [name for name in packages if not name.startswith("demur")] or [f".[{extra}]"]
    return f"{pip} install " + " ".join(f"'{name}'" for name in wanted)
