"""Claim: a vote with confidence and tie rule costs a few passes over memory, and far less than a plain loop.

Strings are measured twice, because the number of distinct answers in the whole table matters to us and not to the
loop: once all pools choose among the same few, once every pool has answers of its own, as different questions do.
Telling strings apart costs both sides a look at each of them, so for those the claim is only "no slower".
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp
from typing import Any

import numpy as np
from claims import Claim, at_least, at_most, print_report
from stopwatch import Seconds, alternate, peak_bytes

import demur

POOLS, PATHS = 1_000_000, 16
LOOP_POOLS = 20_000  # the loop runs on this many of them, and its time is scaled by rows
SHARED_STRING_POOLS = 200_000
OWN_STRING_POOLS = 20_000
ANSWERS = 20
ROUNDS = 7

Pools = list[list[Any]]
Weights = Iterable[list[float]]


def draw_answers(rng: np.random.Generator) -> np.ndarray:
    """Codes of pools that half agree; a few are negative, which is no answer."""
    favourite = rng.integers(ANSWERS, size=(POOLS, 1))
    other = rng.integers(ANSWERS, size=(POOLS, PATHS))
    answers = np.where(rng.random((POOLS, PATHS)) < 0.5, favourite, other)
    answers[rng.random((POOLS, PATHS)) < 0.02] = -1
    return answers


def as_lists(answers: np.ndarray) -> Pools:
    return [[None if code < 0 else code for code in row] for row in answers.tolist()]


def as_shared_strings(answers: np.ndarray) -> Pools:
    """The same few strings in all pools, every one an object of its own, as extraction from a text would give."""
    return [[None if code < 0 else f"answer {code}" for code in row] for row in answers.tolist()]


def as_own_strings(answers: np.ndarray) -> Pools:
    """No string in two pools."""
    return [
        [None if code < 0 else f"question {number} answer {code}" for code in row]
        for number, row in enumerate(answers.tolist())
    ]


def weighted_majority(answers: Pools, weights: Weights) -> list[tuple[Any, float]]:
    """What people write by hand: tallies in a dict, floats added as they come, ties to whoever came first."""
    votes = []
    for row, row_weights in zip(answers, weights, strict=True):
        tally: dict[Any, float] = {}
        total = 0.0
        for answer, weight in zip(row, row_weights, strict=True):
            total += weight
            if answer is not None:
                tally[answer] = tally.get(answer, 0.0) + weight
        winner = max(tally, key=tally.get, default=None)
        votes.append((winner, tally.get(winner, 0.0) / total))
    return votes


def exponential_majority(answers: Pools, scores: Weights) -> list[tuple[Any, float]]:
    return weighted_majority(answers, ([exp(score) for score in row] for row in scores))


def time_codes(answers: np.ndarray, scores: np.ndarray) -> dict[str, Seconds]:
    clipped = np.maximum(answers, 0)
    buffer = np.empty_like(scores)
    some, some_scores = as_lists(answers[:LOOP_POOLS]), scores[:LOOP_POOLS].tolist()
    ones = np.ones((LOOP_POOLS, PATHS)).tolist()
    return alternate(
        {
            "bincount": lambda: np.bincount(clipped.ravel(), weights=scores.ravel()),
            "vote, uniform": lambda: demur.vote(answers),
            "exp": lambda: np.exp(scores),
            # Without the first touch of new memory, which is the larger and noisier part of the line above.
            "exp into a buffer": lambda: np.exp(scores, out=buffer),
            "vote, exponential": lambda: demur.vote(answers, scores),
            "loop, weights 1": lambda: weighted_majority(some, ones),
            "loop, exponential": lambda: exponential_majority(some, some_scores),
        },
        rounds=ROUNDS,
    )


def time_strings(strings: Pools, scores: np.ndarray) -> dict[str, Seconds]:
    ones, score_lists = np.ones_like(scores).tolist(), scores.tolist()
    return alternate(
        {
            "vote, uniform": lambda: demur.vote(strings),
            "loop, weights 1": lambda: weighted_majority(strings, ones),
            "vote, exponential": lambda: demur.vote(strings, scores),
            "loop, exponential": lambda: exponential_majority(strings, score_lists),
        },
        rounds=ROUNDS,
    )


def string_claims(kind: str, floor: float, seconds: dict[str, Seconds]) -> list[Claim]:
    return [
        at_least(
            floor,
            f"uniform vote on {kind} strings / loop, speed",
            seconds["loop, weights 1"].median / seconds["vote, uniform"].median,
        ),
        at_least(
            floor,
            f"exponential vote on {kind} strings / loop, speed",
            seconds["loop, exponential"].median / seconds["vote, exponential"].median,
        ),
    ]


def main() -> None:
    rng = np.random.default_rng(0)
    answers = draw_answers(rng)
    scores = rng.standard_normal((POOLS, PATHS))

    codes = time_codes(answers, scores)
    shared = time_strings(as_shared_strings(answers[:SHARED_STRING_POOLS]), scores[:SHARED_STRING_POOLS])
    own = time_strings(as_own_strings(answers[:OWN_STRING_POOLS]), scores[:OWN_STRING_POOLS])
    peak_uniform = peak_bytes(lambda: demur.vote(answers))
    peak_exponential = peak_bytes(lambda: demur.vote(answers, scores))

    uniform, exponential = codes["vote, uniform"].median, codes["vote, exponential"].median
    loop_scale = POOLS / LOOP_POOLS
    input_uniform, input_exponential = answers.nbytes, answers.nbytes + scores.nbytes
    print_report(
        "voting speed",
        [
            at_least(0.3, "uniform vote / weighted bincount, speed", codes["bincount"].median / uniform),
            at_least(0.2, "exponential vote / exp, speed", codes["exp"].median / exponential),
            at_least(
                0.2, "exponential vote / exp into a buffer, speed", codes["exp into a buffer"].median / exponential
            ),
            at_least(12, "uniform vote / loop, speed", loop_scale * codes["loop, weights 1"].median / uniform),
            at_least(
                12, "exponential vote / loop, speed", loop_scale * codes["loop, exponential"].median / exponential
            ),
            at_most(3, "uniform vote / input, memory", peak_uniform / input_uniform),
            at_most(3, "exponential vote / input, memory", peak_exponential / input_exponential),
            *string_claims("shared", 2, shared),
            *string_claims("own", 1, own),
        ],
        packages=["demur", "numpy"],
        setting={
            "pools": POOLS,
            "paths": PATHS,
            "pools of the loop": LOOP_POOLS,
            "pools of shared strings": SHARED_STRING_POOLS,
            "pools of own strings": OWN_STRING_POOLS,
            "rounds": ROUNDS,
        },
        cpu_seconds={"codes": codes, "shared strings": shared, "own strings": own},
        bytes={
            "input, uniform": input_uniform,
            "peak, uniform": peak_uniform,
            "input, exponential": input_exponential,
            "peak, exponential": peak_exponential,
        },
    )


if __name__ == "__main__":
    main()
