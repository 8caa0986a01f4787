"""Score-weighted votes over sampled reasoning paths that abstain, with a guarantee on confident errors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from demur.version import __version__ as __version__

if TYPE_CHECKING:
    from demur import answers, backends, datasets, errors, monitoring, plot, scoring, stopping, tasks
    from demur.calibration import (
        Grouped,
        HighProbability,
        JudgeHighProbability,
        JudgeMarginal,
        Marginal,
        Selective,
        Shifted,
        Simultaneous,
        Smoothed,
    )
    from demur.calibration.answer_sets import AnswerSets
    from demur.calibration.down_to import DownTo
    from demur.calibration.labelling import LabelQueue
    from demur.errors import DemurError
    from demur.evaluation.audit import Audit, PolicyAudit, audit_policy
    from demur.evaluation.cascade_audit import CascadeAudit, audit_cascade
    from demur.evaluation.comparison import compare_scores
    from demur.evaluation.learned_key import LearnedKeyFit, fit_learned
    from demur.evaluation.outlook import Outlook, audit_outlook
    from demur.evaluation.planning import Plan, plan
    from demur.evaluation.repeated_splits import Evaluation, evaluate, evaluate_splits
    from demur.evaluation.stopping_rules import StoppingComparison, compare_stopping
    from demur.evaluation.tuning import tune
    from demur.evidence import AccuracyBand, Evidence, Frontier, Hazards, Interval, Separability, common_auc
    from demur.pipeline.answerer import Answerer
    from demur.pipeline.cascade_answerer import CascadeAnswerer
    from demur.pipeline.from_policy import pipeline_of_policy
    from demur.pipeline.label_file import checked_by, labelled_by
    from demur.pipeline.pipeline import Pipeline
    from demur.pipeline.sources import read_pools
    from demur.pipeline.verdicts import read_verdicts
    from demur.pipeline.waves import Waves
    from demur.policy.calibrate import calibrate
    from demur.policy.cascade import Cascade
    from demur.policy.cascade_calibration import Stage, calibrate_cascade
    from demur.policy.curtail import Curtailment
    from demur.policy.policy import Policy
    from demur.policy.selection import Selection
    from demur.policy.signature import read_key
    from demur.policy.tuned import Tuned
    from demur.pools.checks import Checks, draw_checks
    from demur.pools.fields import FieldChoice
    from demur.pools.files import write_pools
    from demur.pools.label_rule import LabelRule
    from demur.pools.simulated import simulate_pools
    from demur.pools.source import PoolSource, vote_pools
    from demur.pools.splits import split
    from demur.pools.voted_pools import VotedPools
    from demur.prompts import Template
    from demur.prompts.conversations import Conversation, conversation_of
    from demur.questions.density_ratio import DensityRatio
    from demur.questions.fitting import fit_shift
    from demur.questions.outliers import OutlierGate
    from demur.questions.shift_file import read_shift, write_shift
    from demur.records import OTHER, Decision, Early, Path, Pool, Problem, Vote
    from demur.reports.in_python import Report, report
    from demur.stopping import Stopping
    from demur.store import Budget, Store
    from demur.voting import (
        Learned,
        Votes,
        baselines,
        exponential,
        jitter,
        linear,
        mean_score,
        normalisers,
        uniform,
        vote,
    )

# Where each public name is. It is imported when it is first used, so that `demur --help` does not wait for numpy.
_HOME = {
    "calibration": (
        *("Grouped", "HighProbability", "JudgeHighProbability", "JudgeMarginal", "Marginal", "Selective", "Shifted"),
        *("Simultaneous", "Smoothed"),
    ),
    "calibration.answer_sets": ("AnswerSets",),
    "calibration.down_to": ("DownTo",),
    "calibration.labelling": ("LabelQueue",),
    "errors": ("DemurError",),
    "evaluation.audit": ("Audit", "PolicyAudit", "audit_policy"),
    "evaluation.cascade_audit": ("CascadeAudit", "audit_cascade"),
    "evaluation.comparison": ("compare_scores",),
    "evaluation.learned_key": ("LearnedKeyFit", "fit_learned"),
    "evaluation.outlook": ("Outlook", "audit_outlook"),
    "evaluation.planning": ("Plan", "plan"),
    "evaluation.repeated_splits": ("Evaluation", "evaluate", "evaluate_splits"),
    "evaluation.stopping_rules": ("StoppingComparison", "compare_stopping"),
    "evaluation.tuning": ("tune",),
    "evidence": ("AccuracyBand", "Evidence", "Frontier", "Hazards", "Interval", "Separability", "common_auc"),
    "pipeline.answerer": ("Answerer",),
    "pipeline.cascade_answerer": ("CascadeAnswerer",),
    "pipeline.from_policy": ("pipeline_of_policy",),
    "pipeline.label_file": ("checked_by", "labelled_by"),
    "pipeline.pipeline": ("Pipeline",),
    "pipeline.sources": ("read_pools",),
    "pipeline.verdicts": ("read_verdicts",),
    "pipeline.waves": ("Waves",),
    "policy.calibrate": ("calibrate",),
    "policy.cascade": ("Cascade",),
    "policy.cascade_calibration": ("Stage", "calibrate_cascade"),
    "policy.curtail": ("Curtailment",),
    "policy.policy": ("Policy",),
    "policy.selection": ("Selection",),
    "policy.signature": ("read_key",),
    "policy.tuned": ("Tuned",),
    "pools.checks": ("Checks", "draw_checks"),
    "pools.fields": ("FieldChoice",),
    "pools.files": ("write_pools",),
    "pools.label_rule": ("LabelRule",),
    "pools.simulated": ("simulate_pools",),
    "pools.source": ("PoolSource", "vote_pools"),
    "pools.splits": ("split",),
    "pools.voted_pools": ("VotedPools",),
    "prompts": ("Template",),
    "prompts.conversations": ("Conversation", "conversation_of"),
    "questions.density_ratio": ("DensityRatio",),
    "questions.fitting": ("fit_shift",),
    "questions.outliers": ("OutlierGate",),
    "questions.shift_file": ("read_shift", "write_shift"),
    "records": ("OTHER", "Decision", "Early", "Path", "Pool", "Problem", "Vote"),
    "reports.in_python": ("Report", "report"),
    "stopping": ("Stopping",),
    "store": ("Budget", "Store"),
    "voting": ("Learned", "Votes", "exponential", "jitter", "linear", "mean_score", "uniform", "vote"),
}
_MODULES = {
    **{name: name for name in ("answers", "backends", "datasets", "errors", "monitoring", "plot", "scoring")},
    **{name: name for name in ("stopping", "tasks")},
    "baselines": "voting.baselines",
    "normalisers": "voting.normalisers",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "OTHER", "AccuracyBand", "AnswerSets", "Answerer", "Audit", "Budget", "Cascade", "CascadeAnswerer", "CascadeAudit",
    "Checks", "Conversation", "Curtailment", "Decision", "DemurError", "DensityRatio", "DownTo", "Early", "Evaluation",
    "Evidence", "FieldChoice", "Frontier", "Grouped", "Hazards", "HighProbability", "Interval", "JudgeHighProbability",
    "JudgeMarginal", "LabelQueue", "LabelRule", "Learned", "LearnedKeyFit", "Marginal", "OutlierGate", "Outlook",
    "Path", "Pipeline", "Plan", "Policy", "PolicyAudit", "Pool", "PoolSource", "Problem", "Report", "Selection",
    "Selective", "Separability", "Shifted", "Simultaneous", "Smoothed", "Stage", "Stopping", "StoppingComparison",
    "Store", "Template", "Tuned", "Vote", "VotedPools", "Votes", "Waves", "__version__", "answers", "audit_cascade",
    "audit_outlook", "audit_policy", "backends", "baselines", "calibrate", "calibrate_cascade", "checked_by",
    "common_auc", "compare_scores", "compare_stopping", "conversation_of", "datasets", "draw_checks", "errors",
    "evaluate", "evaluate_splits", "exponential", "fit_learned", "fit_shift", "jitter", "labelled_by", "linear",
    "mean_score", "monitoring", "normalisers", "pipeline_of_policy", "plan", "plot", "read_key", "read_pools",
    "read_shift", "read_verdicts", "report", "scoring", "simulate_pools", "split", "stopping", "tasks", "tune",
    "uniform", "vote", "vote_pools", "write_pools", "write_shift",
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
