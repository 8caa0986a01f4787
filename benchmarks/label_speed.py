"""Claim: the next question of `demur label` costs at most a tenth of a calibration, at a hundred thousand votes.

A question is: a label is noted, the next row is found, and it is told how far each alpha is. The queue is sorted once,
when labelling begins; that is shown beside, without a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur

POOLS, PATHS = 100_000, 16
ALPHAS = [0.05, 0.1]
QUESTIONS = 200
"""One question is too short to be timed alone."""
ROUNDS = 9


def votes_with(tie_break: object) -> tuple[demur.Votes, np.ndarray]:
    pools = demur.simulate_pools(POOLS, n_paths=PATHS, seed=0)
    ids = [str(row) for row in range(POOLS)]
    votes = demur.vote(pools.answers, pools.scores, tie_break=tie_break, ids=ids)
    return votes, votes.answer == pools.gold


def asking(queue: demur.LabelQueue, right: np.ndarray) -> Callable[[], None]:
    def ask() -> None:
        for _ in range(QUESTIONS):
            row = queue.next
            assert row is not None
            queue.label(row, right=bool(right[row]))
            queue.progress()

    return ask


def main() -> None:
    claims, seconds, guarantees = [], {}, [demur.Marginal(alpha) for alpha in ALPHAS]
    for name, tie_break in (("plain", None), ("jittered", demur.jitter(0))):
        votes, right = votes_with(tie_break)
        voted = demur.VotedPools.of(votes)
        calls = {
            "calibrate": lambda votes=votes, right=right: demur.calibrate(replace(votes), right, alpha=ALPHAS),
            "questions": asking(demur.LabelQueue(voted, guarantees), right),
            "queue": lambda voted=voted: demur.LabelQueue(voted, guarantees),
        }
        seconds[name] = alternate(calls, rounds=ROUNDS)
        ratio = seconds[name]["questions"].median / QUESTIONS / seconds[name]["calibrate"].median
        claims.append(at_most(0.1, f"next question / calibrate ({name}), CPU", ratio))
    print_report(
        "label speed",
        claims,
        packages=["demur", "numpy"],
        setting={"votes": POOLS, "paths": PATHS, "alphas": ALPHAS, "questions": QUESTIONS, "rounds": ROUNDS},
        cpu_seconds=seconds,
    )


if __name__ == "__main__":
    main()
