"""The report: one page that says what a score is worth, what to expect at each alpha, and why."""

from __future__ import annotations

from demur.report.facts import report_facts
from demur.report.page import page_of

__all__ = ["page_of", "report_facts"]
