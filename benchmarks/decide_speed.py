"""Claim: deciding one pool costs little, because one pool is voted on without tables, and to the same last bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from claims import at_least, print_report
from stopwatch import alternate

import demur as dm
from demur.voting import vote_again

POOLS, PATHS, ROUNDS = 400, 16, 7


def plain_loop(answers: list[Any], scores: list[float]) -> tuple[Any, float]:
    """The least that a weighted vote can do: no ties, no missing answers, no exact sums, no explanation."""
    peak = max(scores)
    tally: Counter[Any] = Counter()
    for answer, score in zip(answers, scores, strict=True):
        tally[answer] += np.exp(score - peak)
    winner, votes = tally.most_common(1)[0]
    return winner, votes / sum(tally.values())


def main() -> None:
    table = dm.simulate_pools(POOLS, n_paths=PATHS, seed=1)
    answers = [[None if code < 0 else f"n:{code}" for code in row] for row in table.answers.tolist()]
    scores = table.scores.tolist()
    ways = {
        "majority vote": dm.vote(answers),
        "weighted vote": dm.vote(answers, scores),
        "normalised, ties by mean score": dm.vote(
            answers, scores, normaliser=dm.normalisers.pool_z, tie_break=dm.mean_score()
        ),
    }
    calls: dict[str, Callable[[], object]] = {}
    for name, votes in ways.items():
        correct = np.array([answer == f"n:{gold}" for answer, gold in zip(votes.answer, table.gold, strict=True)])
        policy = dm.calibrate(votes, correct, alpha=0.1)
        decided = policy.decide_votes(votes)
        used = [None] * POOLS if name == "majority vote" else scores
        assert all(policy.decide(answers[row], used[row]) == decided[row] for row in range(POOLS))
        calls[name] = partial(alone, policy, answers, used)
        calls[f"{name}, as a table of one"] = partial(as_tables, policy, answers, used)
    calls["a plain loop"] = lambda: [plain_loop(answers[row], scores[row]) for row in range(POOLS)]
    seconds = alternate(calls, rounds=ROUNDS)
    microseconds = {name: 1e6 * taken.median / POOLS for name, taken in seconds.items()}
    print_report(
        "deciding one pool",
        [
            at_least(
                3,
                f"{name}: a table of one pool / the pool alone, CPU",
                microseconds[f"{name}, as a table of one"] / microseconds[name],
            )
            for name in ways
        ],
        packages=["demur", "numpy"],
        setting={"pools": POOLS, "paths": PATHS, "rounds": ROUNDS},
        cpu_microseconds_per_pool=microseconds,
    )


def alone(policy: dm.Policy, answers: list[Any], scores: list[Any]) -> None:
    for pool, values in zip(answers, scores, strict=True):
        policy.decide(pool, values)


def as_tables(policy: dm.Policy, answers: list[Any], scores: list[Any]) -> None:
    """The way that many pools take, with one."""
    for pool, values in zip(answers, scores, strict=True):
        votes = vote_again(policy.recipe, [pool], None if values is None else [values], upstream=policy.upstream)
        policy.decide_votes(votes)[0]


if __name__ == "__main__":
    main()
