"""Claim: a promise per group costs at most ten times the calibration of the promise for all questions together.

100,000 votes in 20 groups: of one group each, with a second group that overlaps, and with the threshold of all beside.
Groups are coded when votes are held, as answers are; what is compared is the calibration.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur

POOLS, PATHS, GROUPS = 100_000, 16, 20
ALPHA = 0.05
ROUNDS = 15


def labelled_votes() -> tuple[demur.Votes, demur.Votes, np.ndarray]:
    """Votes with one group each, the same with a second one for some, and labels."""
    pools = demur.simulate_pools(POOLS, n_paths=PATHS, seed=0)
    rng = np.random.default_rng(0)
    names = [f"group {group}" for group in rng.integers(GROUPS, size=POOLS)]
    both = [(name, "another") if more else name for name, more in zip(names, rng.random(POOLS) < 0.2, strict=True)]
    votes = [demur.vote(pools.answers, pools.scores, groups=groups) for groups in (names, both)]
    return *votes, votes[0].answer == pools.gold


def main() -> None:
    votes, overlapping, correct = labelled_votes()
    marginal, per_group = demur.Marginal(ALPHA), demur.Grouped(demur.Marginal(ALPHA))
    pooled = demur.Grouped(marginal, fallback="pooled")
    # A replaced object has none of the columns that votes remember once they were asked for.
    calls = {
        "marginal": lambda: demur.calibrate(replace(votes), correct, guarantee=marginal),
        "grouped": lambda: demur.calibrate(replace(votes), correct, guarantee=per_group),
        "grouped, overlapping": lambda: demur.calibrate(replace(overlapping), correct, guarantee=per_group),
        "grouped, pooled fallback": lambda: demur.calibrate(replace(votes), correct, guarantee=pooled),
    }
    seconds = alternate(calls, rounds=ROUNDS)
    claims = [
        at_most(10, f"{name} / marginal, CPU", took.median / seconds["marginal"].median)
        for name, took in seconds.items()
        if name != "marginal"
    ]
    print_report(
        "groups speed",
        claims,
        packages=["demur", "numpy", "scipy"],
        setting={"votes": POOLS, "paths": PATHS, "groups": GROUPS, "alpha": ALPHA, "rounds": ROUNDS},
        cpu_seconds=seconds,
    )


if __name__ == "__main__":
    main()
