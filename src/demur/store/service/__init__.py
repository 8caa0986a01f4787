"""The store of a service: decisions, feedback, reviews, policies, keys, budgets, monitors, events and canaries."""

from __future__ import annotations

from demur.store.service.audits import Audit
from demur.store.service.canaries import Canary
from demur.store.service.decisions import Decision, DecisionPath, Tally
from demur.store.service.events import Event
from demur.store.service.feedback import Feedback
from demur.store.service.keys import ApiKey
from demur.store.service.logins import Login
from demur.store.service.monitors import MonitorState
from demur.store.service.policies import PolicyRow
from demur.store.service.repeats import Repeat
from demur.store.service.review_queue import Agreement, NewReview, ReviewCounts, ReviewFilter, ReviewItem
from demur.store.service.service_store import ServiceStore
from demur.store.service.spending import Spent

__all__ = [
    "Agreement",
    "ApiKey",
    "Audit",
    "Canary",
    "Decision",
    "DecisionPath",
    "Event",
    "Feedback",
    "Login",
    "MonitorState",
    "NewReview",
    "PolicyRow",
    "Repeat",
    "ReviewCounts",
    "ReviewFilter",
    "ReviewItem",
    "ServiceStore",
    "Spent",
    "Tally",
]
