"""Score-weighted votes over sampled reasoning paths that abstain, with a guarantee on confident errors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quorate.version import __version__ as __version__

if TYPE_CHECKING:
    from quorate import answers as answers
    from quorate import backends as backends
    from quorate import baselines as baselines
    from quorate import datasets as datasets
    from quorate import errors as errors
    from quorate import normalisers as normalisers
    from quorate import scoring as scoring
    from quorate.audit import Audit as Audit
    from quorate.audit import audit_policy as audit_policy
    from quorate.calibration import HighProbability as HighProbability
    from quorate.calibration import Marginal as Marginal
    from quorate.calibration import Smoothed as Smoothed
    from quorate.errors import QuorateError as QuorateError
    from quorate.evaluation import evaluate_splits as evaluate_splits
    from quorate.evidence import Evidence as Evidence
    from quorate.frontier import Frontier as Frontier
    from quorate.frontier import common_auc as common_auc
    from quorate.pipeline import Pipeline as Pipeline
    from quorate.policy import Policy as Policy
    from quorate.policy import calibrate as calibrate
    from quorate.prompts import Template as Template
    from quorate.records import Decision as Decision
    from quorate.records import Path as Path
    from quorate.records import Pool as Pool
    from quorate.records import Problem as Problem
    from quorate.records import Vote as Vote
    from quorate.separability import AccuracyBand as AccuracyBand
    from quorate.separability import Hazards as Hazards
    from quorate.separability import Interval as Interval
    from quorate.separability import Separability as Separability
    from quorate.simulate import simulate_pools as simulate_pools
    from quorate.splits import split as split
    from quorate.store import Store as Store
    from quorate.tie_breaks import jitter as jitter
    from quorate.tie_breaks import mean_score as mean_score
    from quorate.voting import Votes as Votes
    from quorate.voting import vote as vote
    from quorate.weights import exponential as exponential
    from quorate.weights import linear as linear
    from quorate.weights import uniform as uniform

# Each name is imported when it is first used, so that `quorate --help` does not wait for numpy.
_HOME = {
    "audit": ("Audit", "audit_policy"),
    "calibration": ("HighProbability", "Marginal", "Smoothed"),
    "errors": ("QuorateError",),
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
        return import_module(f"quorate.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'quorate' has no attribute {name!r}")
    value = getattr(import_module(f"quorate.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
