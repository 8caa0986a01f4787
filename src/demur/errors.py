"""Everything demur raises on purpose.

    DemurError
    ├── InvalidValue (also a ValueError)     a caller's argument breaks a rule; names the value and the rule
    ├── PoolFileError                        a pool file cannot be read as one; names file and line
    ├── DatasetError                         questions cannot be found or read
    ├── LogprobsMissing                      a score needs token log-probabilities that were not recorded
    ├── ScoringError                         a scorer gives what is no score, or cannot read a path
    ├── StoreError                           a run cannot be opened, read or written
    ├── BackendError                         a model cannot be reached, or refuses
    │   └── EndpointRefused                  … and will refuse every further request too: key, model
    │       └── NoSuchRoute                  … or does not offer the route
    ├── PolicyFileError                      a policy file is foreign, newer, damaged or edited
    ├── PipelineMismatch                     a policy is used on votes made another way
    ├── CalibrationLeak                      problems used for calibration turn up where unseen ones are needed
    ├── InsufficientCalibration              too few labels for the promise, and `strict` was asked for
    └── MissingExtra                         a part that is installed separately is not there

`InfeasibleWarning` is the gentle form of the last one: the policy is valid, and abstains always.
"""

from __future__ import annotations

from collections.abc import Sequence


class DemurError(Exception):
    """The root: what happened, what was needed, the way out, in one line."""


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


class BackendError(DemurError):
    """A model cannot be reached, refuses, or sends what cannot be understood."""


class EndpointRefused(BackendError):
    """An endpoint refuses in a way that no other request will change: no key, no such route or model."""


class NoSuchRoute(EndpointRefused):
    """An endpoint does not offer a route, or not for this model."""


class PolicyFileError(DemurError):
    """A policy file cannot be trusted or understood."""


class PipelineMismatch(DemurError):
    """A policy met votes that were not made the way it was calibrated."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__("these votes were not made the way the policy was calibrated: " + "; ".join(self.differences))


class CalibrationLeak(DemurError):
    """Problems that calibrated or tuned the policy are about to be used as if they were new."""


class InsufficientCalibration(DemurError):
    """The calibration set is too small for the promise asked for."""


class MissingExtra(DemurError):
    """An optional part is not installed; the message has the command that installs it."""


class InfeasibleWarning(UserWarning):
    """The calibration set is too small, so the policy abstains on every question."""
