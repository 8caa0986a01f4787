"""Claim: calibrating with answer sets costs at most ten times a marginal calibration on as many votes.

A share of the votes is kept from the threshold, and where right answers stand in those pools is found for all at once.
Where problems have names, the draw goes by digests of them, as it does for held-out problems: beside it, no claim.
"""

from __future__ import annotations

from dataclasses import replace

from claims import at_most, print_report
from stopwatch import alternate

import demur as dm

POOLS, PATHS, ROUNDS = 100_000, 16, 9
ALPHA, SETS = 0.05, dm.AnswerSets(0.1)


def main() -> None:
    pools = dm.simulate_pools(POOLS, n_paths=PATHS, seed=0)
    votes = dm.vote(pools.answers, pools.scores)
    named = dm.vote(pools.answers, pools.scores, ids=range(POOLS))
    right = pools.is_right(votes.answer)

    # A replaced object has none of the columns that votes remember once they were asked for.
    def with_sets(some: dm.Votes) -> dm.Policy:
        return dm.calibrate(dm.VotedPools.of(replace(some), gold=pools.gold), alpha=ALPHA, answer_sets=SETS)

    calls = {
        "marginal": lambda: dm.calibrate(replace(votes), right, alpha=ALPHA),
        "marginal with sets": lambda: with_sets(votes),
        "named, half held out": lambda: dm.calibrate(replace(named), right, alpha=ALPHA, hold_out=0.5),
        "named, with sets": lambda: with_sets(named),
    }
    seconds = alternate(calls, rounds=ROUNDS)
    ratio = seconds["marginal with sets"].median / seconds["marginal"].median
    print_report(
        "answer set speed",
        [at_most(10, "marginal with sets / marginal, CPU", ratio)],
        packages=["demur", "numpy"],
        setting={"votes": POOLS, "paths": PATHS, "alpha": ALPHA, "share": SETS.share, "rounds": ROUNDS},
        cpu_seconds=seconds,
        found={"abstained questions that calibrate sets": calls["marginal with sets"]().sets[0].n},
    )


if __name__ == "__main__":
    main()
