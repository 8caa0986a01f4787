"""Claim: replaying a stopping rule on pools that have all their paths costs at most five microseconds per pool.

100,000 pools of 16 paths as whole numbers: where beta:0.95 and agreement:4 in waves of 4 end each, by arrays, against
the rule path by path with the beta law of scipy, one call per look, as scripts have it; that is done on fewer pools,
and compared per pool. The majority vote on the same pools stands beside it: it costs a fraction of a replay, which
counts answers anew at every look.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from claims import at_least, at_most, print_report
from scipy.special import betainc
from stopwatch import alternate

import demur
from demur import stopping

POOLS, PATHS, WAVE, FEW = 100_000, 16, 4, 2_000
ROUNDS = 9


def one_by_one(rows: list[list[int]]) -> list[int]:
    """beta:0.95, pool by pool and look by look."""
    sizes = []
    for row in rows:
        for drawn in range(WAVE, PATHS + 1, WAVE):
            times = [paths for _, paths in Counter(code for code in row[:drawn] if code >= 0).most_common(2)]
            first, second = (*times, 0, 0)[:2]
            if drawn == PATHS or betainc(second + 1, first + 1, 0.5) >= 0.95:
                break
        sizes.append(drawn)
    return sizes


def main() -> None:
    answers = demur.simulate_pools(POOLS, n_paths=PATHS, seed=0).answers
    rows = answers[:FEW].tolist()
    beta, agreement = stopping.beta(0.95, wave=WAVE), stopping.agreement(4, wave=WAVE)
    assert beta.sizes(answers[:FEW]).tolist() == one_by_one(rows)
    calls = {
        "beta": lambda: beta.sizes(answers),
        "agreement": lambda: agreement.sizes(answers),
        "vote on whole pools": lambda: demur.vote(answers),
        "replay and vote": lambda: demur.vote(answers, stop=beta),
        "one by one": lambda: one_by_one(rows),
    }
    seconds = alternate(calls, rounds=ROUNDS)
    each = {name: 1e6 * took.median / (FEW if name == "one by one" else POOLS) for name, took in seconds.items()}
    print_report(
        "stopping speed",
        [
            at_most(5, "beta by arrays, µs of CPU per pool", each["beta"]),
            at_least(5, "one by one / beta by arrays, CPU per pool", each["one by one"] / each["beta"]),
        ],
        packages=["demur", "numpy", "scipy"],
        setting={"pools": POOLS, "paths": PATHS, "wave": WAVE, "one_by_one": FEW, "rounds": ROUNDS},
        mean_paths=float(np.mean(beta.sizes(answers))),
        cpu_seconds=seconds,
        microseconds_per_pool=each,
    )


if __name__ == "__main__":
    main()
