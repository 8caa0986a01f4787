"""Work: what a run lacks, asked for a bounded number at a time, committed as it arrives."""

from __future__ import annotations

from demur.engine.progress import Progress
from demur.engine.sample import SamplingProgress, sample
from demur.engine.score import ScoringProgress, score_pool, score_run

__all__ = ["Progress", "SamplingProgress", "ScoringProgress", "sample", "score_pool", "score_run"]
