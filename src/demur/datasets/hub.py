"""Benchmarks from the Hugging Face hub, through its `datasets` library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from demur.datasets import formats
from demur.errors import DatasetError, MissingExtra
from demur.records import Problem


@dataclass(frozen=True)
class Benchmark:
    """Where a benchmark is on the hub, and how its records read."""

    repository: str
    configuration: str | None
    split: str
    read: Callable[[formats.Record, str], Problem]


NAMES = {
    "gsm8k": Benchmark("openai/gsm8k", "main", "test", formats.gsm8k),
    "math": Benchmark("DigitalLearningGmbH/MATH-lighteval", None, "test", formats.mathematics),
    "math-hard": Benchmark("DigitalLearningGmbH/MATH-lighteval", None, "test", formats.mathematics),
    "hotpotqa": Benchmark("hotpotqa/hotpot_qa", "distractor", "validation", formats.hotpotqa),
    "mmlu": Benchmark("cais/mmlu", "all", "test", formats.multiple_choice),
    "mmlu-pro": Benchmark("TIGER-Lab/MMLU-Pro", None, "test", formats.multiple_choice),
}


def read(name: str, split: str | None = None) -> list[Problem]:
    """Every problem of a benchmark's split."""
    benchmark = NAMES[name]
    chosen = split or benchmark.split
    rows = _rows(benchmark.repository, benchmark.configuration, chosen)
    return [benchmark.read(row, f"{name}-{chosen}-{position}") for position, row in enumerate(rows)]


def _rows(repository: str, configuration: str | None, split: str) -> list[dict[str, Any]]:
    try:
        import datasets
    except ImportError:
        raise MissingExtra(
            "benchmarks come from the hub through `datasets`; install it with: pip install 'demur[hf]', "
            "or name a file in the benchmark's own format"
        ) from None
    try:
        return list(datasets.load_dataset(repository, configuration, split=split))
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DatasetError(f"{repository} ({split}) cannot be loaded: {reason}; or name a file") from None
