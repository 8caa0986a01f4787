"""A completion of a model as servers and logs write it: what was said, and its token log-probabilities.

Beneath both wings, so that a path reads the same whether it was sampled here, came in a batch or stands in a log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LOWEST = -100.0
"""A log-probability below this counts as this: servers write "impossible" in several ways."""
ROUNDING = 1e-3
"""What is further above 0 than this is no log-probability."""


def text_of(content: Any, reasoning: str = "") -> str:
    """What was said; reasoning that came apart from it stands before it in a reasoning block."""
    said = written(content)
    return f"<think>{reasoning}</think>\n{said}" if reasoning else said


def written(content: Any) -> str:
    """The text of a message's content, its parts joined."""
    if isinstance(content, list):  # a message in parts
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def logprobs_of(told: Any) -> tuple[float, ...] | None:
    """Token log-probabilities, without that of the empty token that ends a sequence; None if any is missing."""
    if not isinstance(told, dict):
        return None
    content, values, tokens = map(told.get, ("content", "token_logprobs", "tokens"))
    if isinstance(content, list):
        known = [token if isinstance(token, dict) else {} for token in content]
        entries = [(token.get("token"), token.get("logprob")) for token in known]
    elif isinstance(values, list):
        entries = list(zip(tokens if isinstance(tokens, list) else [None] * len(values), values, strict=False))
    else:
        return None
    if entries and entries[-1][0] == "":
        entries.pop()
    numbers = [value for _, value in entries if isinstance(value, (int, float)) and value == value]
    if not numbers or len(numbers) < len(entries) or max(numbers) > ROUNDING:
        return None
    # Servers write "impossible" as -9999 or as the lowest float; one such entry must not drown the rest.
    return tuple(float(min(0.0, max(number, LOWEST))) for number in numbers)


def clamped(logprob: float) -> float:
    return max(min(logprob, 0.0), LOWEST)


def mean_of(logprobs: Sequence[float]) -> float:
    return math.fsum(logprobs) / len(logprobs)


def deviation_of(logprobs: Sequence[float]) -> float:
    mean = mean_of(logprobs)
    return math.sqrt(math.fsum((logprob - mean) ** 2 for logprob in logprobs) / len(logprobs))
