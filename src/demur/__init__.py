"""Score-weighted votes over sampled reasoning paths that abstain, with a guarantee on confident errors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from demur.version import __version__ as __version__

if TYPE_CHECKING:
    from demur import answers as answers
    from demur import backends as backends
    from demur import baselines as baselines
    from demur import datasets as datasets
    from demur import errors as errors
    from demur import normalisers as normalisers
    from demur import scoring as scoring
    from demur.audit import Audit as Audit
    from demur.audit import audit_policy as audit_policy
    from demur.calibration import HighProbability as HighProbability
    from demur.calibration import Marginal as Marginal
    from demur.calibration import Smoothed as Smoothed
    from demur.errors import DemurError as DemurError
    from demur.evaluation import evaluate_splits as evaluate_splits
    from demur.evidence import Evidence as Evidence
    from demur.frontier import Frontier as Frontier
    from demur.frontier import common_auc as common_auc
    from demur.pipeline import Pipeline as Pipeline
    from demur.policy import Policy as Policy
    from demur.policy import calibrate as calibrate
    from demur.prompts import Template as Template
    from demur.records import Decision as Decision
    from demur.records import Path as Path
    from demur.records import Pool as Pool
    from demur.records import Problem as Problem
    from demur.records import Vote as Vote
    from demur.separability import AccuracyBand as AccuracyBand
    from demur.separability import Hazards as Hazards
    from demur.separability import Interval as Interval
    from demur.separability import Separability as Separability
    from demur.simulate import simulate_pools as simulate_pools
    from demur.splits import split as split
    from demur.store import Store as Store
    from demur.tie_breaks import jitter as jitter
    from demur.tie_breaks import mean_score as mean_score
    from demur.voting import Votes as Votes
    from demur.voting import vote as vote
    from demur.weights import exponential as exponential
    from demur.weights import linear as linear
    from demur.weights import uniform as uniform

# Each name is imported when it is first used, so that `demur --help` does not wait for numpy.
_HOME = {
    "audit": ("Audit", "audit_policy"),
    "calibration": ("HighProbability", "Marginal", "Smoothed"),
    "errors": ("DemurError",),
    "evaluation": ("evaluate_splits",),
    "evidence": ("Evidence",),
    "frontier": ("Frontier", "common_auc"),
    "pipeline": ("Pipeline",),
    "policy": ("Policy", "calibrate"),
    "prompts": ("Template",),
    "records": ("Decision", "Path", "Pool", "Problem", "Vote"),
    "separability": ("AccuracyBand", "Hazards", "Interval", "Separability"),
    "simulate": ("simulate_pools",),
    "splits": ("split",),
    "store": ("Store",),
    "tie_breaks": ("jitter", "mean_score"),
    "voting": ("Votes", "vote"),
    "weights": ("exponential", "linear", "uniform"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_MODULES = ("answers", "backends", "baselines", "datasets", "errors", "normalisers", "scoring")

__all__ = ["__version__", *_MODULES, *_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"demur.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'demur' has no attribute {name!r}")
    value = getattr(import_module(f"demur.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
