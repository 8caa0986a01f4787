"""Score-weighted votes over sampled reasoning paths that abstain, with a guarantee on confident errors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from demur.version import __version__ as __version__

if TYPE_CHECKING:
    from demur import answers, backends, datasets, errors, monitoring, plot, scoring, tasks
    from demur.calibration import Grouped, HighProbability, Marginal, Selective, Smoothed
    from demur.calibration.labelling import LabelQueue
    from demur.errors import DemurError
    from demur.evaluation.audit import Audit, PolicyAudit, audit_policy
    from demur.evaluation.comparison import compare_scores
    from demur.evaluation.outlook import Outlook, audit_outlook
    from demur.evaluation.planning import Plan, plan
    from demur.evaluation.repeated_splits import Evaluation, evaluate, evaluate_splits
    from demur.evidence import AccuracyBand, Evidence, Frontier, Hazards, Interval, Separability, common_auc
    from demur.pipeline.answerer import Answerer
    from demur.pipeline.from_policy import pipeline_of_policy
    from demur.pipeline.label_file import labelled_by
    from demur.pipeline.pipeline import Pipeline
    from demur.pipeline.sources import read_pools
    from demur.pipeline.verdicts import read_verdicts
    from demur.policy.calibrate import calibrate
    from demur.policy.policy import Policy
    from demur.policy.selection import Selection
    from demur.policy.signature import read_key
    from demur.pools.fields import FieldChoice
    from demur.pools.files import write_pools
    from demur.pools.label_rule import LabelRule
    from demur.pools.simulated import simulate_pools
    from demur.pools.source import PoolSource, vote_pools
    from demur.pools.splits import split
    from demur.pools.voted_pools import VotedPools
    from demur.prompts import Template
    from demur.records import Decision, Path, Pool, Problem, Vote
    from demur.reports.in_python import Report, report
    from demur.store import Store
    from demur.voting import Votes, baselines, exponential, jitter, linear, mean_score, normalisers, uniform, vote

# Where each public name is. It is imported when it is first used, so that `demur --help` does not wait for numpy.
_HOME = {
    "calibration": ("Grouped", "HighProbability", "Marginal", "Selective", "Smoothed"),
    "calibration.labelling": ("LabelQueue",),
    "errors": ("DemurError",),
    "evaluation.audit": ("Audit", "PolicyAudit", "audit_policy"),
    "evaluation.comparison": ("compare_scores",),
    "evaluation.outlook": ("Outlook", "audit_outlook"),
    "evaluation.planning": ("Plan", "plan"),
    "evaluation.repeated_splits": ("Evaluation", "evaluate", "evaluate_splits"),
    "evidence": ("AccuracyBand", "Evidence", "Frontier", "Hazards", "Interval", "Separability", "common_auc"),
    "pipeline.answerer": ("Answerer",),
    "pipeline.from_policy": ("pipeline_of_policy",),
    "pipeline.label_file": ("labelled_by",),
    "pipeline.pipeline": ("Pipeline",),
    "pipeline.sources": ("read_pools",),
    "pipeline.verdicts": ("read_verdicts",),
    "policy.calibrate": ("calibrate",),
    "policy.policy": ("Policy",),
    "policy.selection": ("Selection",),
    "policy.signature": ("read_key",),
    "pools.fields": ("FieldChoice",),
    "pools.files": ("write_pools",),
    "pools.label_rule": ("LabelRule",),
    "pools.simulated": ("simulate_pools",),
    "pools.source": ("PoolSource", "vote_pools"),
    "pools.splits": ("split",),
    "pools.voted_pools": ("VotedPools",),
    "prompts": ("Template",),
    "records": ("Decision", "Path", "Pool", "Problem", "Vote"),
    "reports.in_python": ("Report", "report"),
    "store": ("Store",),
    "voting": ("Votes", "exponential", "jitter", "linear", "mean_score", "uniform", "vote"),
}
_MODULES = {
    **{name: name for name in ("answers", "backends", "datasets", "errors", "monitoring", "plot", "scoring", "tasks")},
    "baselines": "voting.baselines",
    "normalisers": "voting.normalisers",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AccuracyBand", "Answerer", "Audit", "Decision", "DemurError", "Evaluation", "Evidence", "FieldChoice", "Frontier",
    "Grouped", "Hazards", "HighProbability", "Interval", "LabelQueue", "LabelRule", "Marginal", "Outlook", "Path",
    "Pipeline", "Plan", "Policy", "PolicyAudit", "Pool", "PoolSource", "Problem", "Report", "Selection", "Selective",
    "Separability", "Smoothed", "Store", "Template", "Vote", "VotedPools", "Votes", "__version__", "answers",
    "audit_outlook", "audit_policy", "backends", "baselines", "calibrate", "common_auc", "compare_scores", "datasets",
    "errors", "evaluate", "evaluate_splits", "exponential", "jitter", "labelled_by", "linear", "mean_score",
    "monitoring", "normalisers", "pipeline_of_policy", "plan", "plot", "read_key", "read_pools", "read_verdicts",
    "report", "scoring", "simulate_pools", "split", "tasks", "uniform", "vote", "vote_pools", "write_pools",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"demur.{_MODULES[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'demur' has no attribute {name!r}")
    value = getattr(import_module(f"demur.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
