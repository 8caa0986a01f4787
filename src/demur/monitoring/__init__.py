"""Watching a policy in use: have its keys drifted, are its errors too many, and a threshold that follows the labels.

    DriftMonitor       keys alone, no labels: does the traffic still look like the calibration questions?
    ErrorMonitor       audited questions: is more answered wrongly than this policy's calibration allows?
    OnlineThreshold    a threshold that moves with labels, late and few: its long-run rate is bounded on any sequence

Each is a small object with `update`, `save` and `load`; its file belongs to one policy.
"""

from demur.monitoring.audited_errors import ErrorMonitor
from demur.monitoring.drift import DriftMonitor
from demur.monitoring.online_threshold import OnlineThreshold

__all__ = ["DriftMonitor", "ErrorMonitor", "OnlineThreshold"]
