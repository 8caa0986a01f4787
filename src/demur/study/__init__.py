"""Studies: the paper's protocol on anyone's cells, and all its tables and figures."""

from __future__ import annotations

from demur.study.description import StudyDescription, read_study
from demur.study.running import StudyResult, run_study

__all__ = ["StudyDescription", "StudyResult", "read_study", "run_study"]
