"""What the Tab key offers as values: names that demur knows, and those that the first pool of the named file has."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

DATASETS = (
    "gsm8k", "math", "math-hard", "hotpotqa", "mmlu", "mmlu-pro",
    "builtin:addition", "builtin:capitals", "builtin:word-problems",
)  # fmt: skip
TASKS = ("math", "qa", "mc", "auto", "plain", "gsm8k", "hotpotqa", "mmlu")
RELATIONS = ("mathematics", "text", "choice", "auto", "plain", "json", "tool-calls")
SCORES = ("perplexity", "perplexity-std", "perplexity-std-negated", "self-consistency", "judge", "reward")
NORMALISERS = ("none", "pool_z", "pool_minmax", "rank", "fixed_affine:", "fixed_sigmoid:")
WEIGHTS = ("uniform", "linear", "exponential:1", "exponential:5")
TIE_BREAKS = ("none", "mean_score", "fewer_paths", "more_paths", "jitter:0", "column:")
STOP_RULES = ("beta:0.95", "agreement:4", "fixed")
GUARANTEES = (
    "marginal", "smoothed", "high_probability", "selective", "simultaneous", "judge_marginal", "judge_high_probability",
    "shifted", "grouped_marginal", "grouped_smoothed", "grouped_high_probability", "grouped_selective",
)  # fmt: skip
FALLBACKS = ("abstain", "pooled")
FIGURES = ("svg", "png", "pdf")
_MOST_LETTERS = 4_000_000


def among(values: Sequence[str]) -> Callable[[str], list[str]]:
    """Those of some values that begin as what was typed does."""

    def offered(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return offered


def score_names(incomplete: str) -> list[str]:
    """The scores of the file's first pool, where JSON lines are named before; else those that demur computes."""
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    files = (word for word in typed.split() if word.endswith((".jsonl", ".jsonl.gz")))
    names = next(map(_names_in, files), None) or SCORES
    return [name for name in names if name.startswith(incomplete)]


def _names_in(place: str) -> list[str]:
    from demur.errors import DemurError
    from demur.files.inputs import lines_of
    from demur.files.strict_json import NotJson, parse

    try:
        for number, line in lines_of(Path(place), DemurError):
            record = parse(line) if len(line) < _MOST_LETTERS else None
            paths = record.get("paths") if isinstance(record, dict) else None
            if isinstance(paths, list) and paths:
                return sorted({name for path in paths if isinstance(path, dict) for name in path.get("scores") or {}})
            if number > 1:
                break
    except (DemurError, NotJson):
        pass  # what is the matter with a file is for the command to say
    return []
