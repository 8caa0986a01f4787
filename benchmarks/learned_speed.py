"""Claim: votes ranked by a learned key calibrate as fast as others, and the key costs no more than a few votes.

The fit on 200 labelled pools is stated apart, without a claim.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur as dm
from demur.voting.features import feature_names

POOLS, PATHS, TUNE, ROUNDS = 100_000, 16, 200, 7
ALPHA = 0.05


def main() -> None:
    rng = np.random.default_rng(0)
    right = rng.random((POOLS, PATHS)) < rng.normal(0.5, 0.25, (POOLS, 1))
    answers = np.where(right, 0, rng.integers(1, 6, (POOLS, PATHS)))
    sources = [f"source {path}" for path in range(PATHS)]
    ids = [str(row) for row in range(POOLS)]
    known = {"columns": {"length": rng.integers(1, 500, (POOLS, PATHS)).astype(float)}, "origins": [sources] * POOLS}
    votes = dm.vote(answers, ids=ids, **known)
    correct = votes.answer == 0
    names = feature_names(["length"], scores=False)
    key = dm.Learned(0.1, dict.fromkeys(names, 0.1), "origin", dict.fromkeys(sources, 0.3))
    learned = dm.vote(answers, ids=ids, confidence=key, **known)
    counted = votes.counted(key.needs, key.origin)
    tune = dm.VotedPools.of(votes, correct).take(np.arange(TUNE))

    def calibrate(made: dm.Votes) -> object:
        return dm.calibrate(replace(made), correct, guarantee=dm.Marginal(ALPHA))

    seconds = alternate(
        {
            "vote with jitter": partial(dm.vote, answers, ids=ids),
            "learned key": partial(key.of, counted),
            "calibrate, share": partial(calibrate, votes),
            "calibrate, learned key": partial(calibrate, learned),
            f"fit on {TUNE} pools": partial(dm.fit_learned, tune),
        },
        rounds=ROUNDS,
    )
    cost = seconds["learned key"].median / seconds["vote with jitter"].median
    ratio = seconds["calibrate, learned key"].median / seconds["calibrate, share"].median
    print_report(
        "learned key speed",
        [
            at_most(5, f"features and learned key / vote with jitter, {POOLS} pools, CPU", cost),
            at_most(10, f"calibrate by a learned key / by the share, {POOLS} votes, CPU", ratio),
        ],
        packages=["demur", "numpy"],
        setting={"pools": POOLS, "paths": PATHS, "features": len(names), "sources": PATHS, "rounds": ROUNDS},
        cpu_seconds=seconds,
    )


if __name__ == "__main__":
    main()
