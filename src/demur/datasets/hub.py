"""Benchmarks from the Hugging Face hub, through its `datasets` library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    benchmark, otherwise = NAMES[name], "or name a file in the benchmark's own format"
    chosen = split or benchmark.split
    try:
        import datasets
    except ImportError:
        raise MissingExtra("benchmarks come from the hub through `datasets`", "datasets", otherwise) from None
    try:
        rows = list(datasets.load_dataset(benchmark.repository, benchmark.configuration, split=chosen))
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DatasetError(f"{benchmark.repository} ({chosen}) cannot be loaded: {reason}; or name a file") from None
    return [benchmark.read(row, f"{name}-{chosen}-{position}") for position, row in enumerate(rows)]
