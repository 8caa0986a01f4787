"""The definitions read literally, in exact fractions and plain loops. Slow, and obviously right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class LiteralVote:
    answer: Any
    confidence: Fraction
    tally: dict[Any, Fraction]


def literal_vote(answers: Sequence[Any], weights: Sequence[Fraction]) -> LiteralVote:
    """Theory 1.1: tallies, tie rule (paths, then largest weight, then key), null paths in the denominator."""
    tally: dict[Any, Fraction] = {}
    for answer, weight in zip(answers, weights, strict=True):
        if answer is not None:
            tally[answer] = tally.get(answer, Fraction(0)) + weight
    if not tally:
        return LiteralVote(None, Fraction(0), {})
    total = sum(weights, Fraction(0))
    top = max(tally.values())
    tied = [answer for answer in tally if tally[answer] == top]

    def merit(answer: Any) -> tuple[int, Fraction]:
        own = [w for a, w in zip(answers, weights, strict=True) if a == answer]
        return len(own), max(own)

    best = max(merit(answer) for answer in tied)
    winner = min(answer for answer in tied if merit(answer) == best)
    return LiteralVote(winner, top / total, tally)


def literal_threshold(confidence: Sequence[Fraction], wrong: Sequence[bool], alpha: Fraction) -> Fraction:
    """The paper's infimum of {λ in [0, 1] : R̂(λ) ≤ α − (1 − α)/n}, which is attained at 0, 1 or a confidence."""
    n = len(confidence)
    for candidate in sorted({Fraction(0), Fraction(1), *confidence}):
        risk = Fraction(sum(w and c > candidate for c, w in zip(confidence, wrong, strict=True)), n)
        if risk <= alpha - (1 - alpha) / n:
            return candidate
    return Fraction(1)
