"""Watching a policy in use: have keys drifted, has the model changed, are errors too many?

    DriftMonitor       keys alone, no labels: does the traffic still look like the calibration questions?
    CanaryMonitor      old questions asked again: are the model and its server as they were?
    ErrorMonitor       audited questions: is more answered wrongly than this policy's calibration allows?
    OnlineThreshold    a threshold that moves with labels, late and few: its long-run rate is bounded on any sequence
    AuditedThreshold   the same by audits that several processes share, and never below the calibrated threshold
    diagnose           alarms read together: what is in doubt, and since when
    audited_rates      what audits say beside what calibration predicted, with limits that hold whenever one looks

Each monitor is a small object with `update`, `save` and `load`; its file belongs to one policy. Replicas share one by
its `document`, which stays small however long the stream, and goes on from there with `of_document`.
"""

from demur.monitoring.audited_errors import ErrorMonitor
from demur.monitoring.audited_rates import AuditedRates, audited_rates
from demur.monitoring.audited_threshold import AuditedThreshold
from demur.monitoring.audits import AuditedQuestion, settled
from demur.monitoring.canaries import CanaryMonitor
from demur.monitoring.diagnosis import Diagnosis, Moved, diagnose
from demur.monitoring.drift import DriftMonitor
from demur.monitoring.online_threshold import OnlineThreshold

__all__ = [
    "AuditedQuestion",
    "AuditedRates",
    "AuditedThreshold",
    "CanaryMonitor",
    "Diagnosis",
    "DriftMonitor",
    "ErrorMonitor",
    "Moved",
    "OnlineThreshold",
    "audited_rates",
    "diagnose",
    "settled",
]
