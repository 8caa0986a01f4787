"""Claim: a cascade of two stages is calibrated on 100,000 questions for little more than two marginal policies.

Both sides see the same votes, with and without names of problems and jitter; the ratio is per stage.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur

N, PATHS, ALPHA = 100_000, 16, 0.05
ROUNDS = 7
STAGES = 2


def labelled_votes(seed: int, *, named: bool) -> tuple[demur.Votes, np.ndarray]:
    pools = demur.simulate_pools(N, n_paths=PATHS, seed=seed)
    known = {"ids": [f"q{row}" for row in range(N)], "tie_break": demur.jitter(0)} if named else {}
    votes = demur.vote(pools.answers, pools.scores, **known)
    return votes, votes.answer == pools.gold


def per_stage(*, named: bool) -> dict[str, float]:
    tables = [labelled_votes(seed, named=named) for seed in range(STAGES)]
    # A replaced object has none of the columns that votes remember once they were asked for.
    seconds = alternate(
        {
            "cascade": lambda: demur.calibrate_cascade(
                [demur.Stage(str(at), replace(votes), right) for at, (votes, right) in enumerate(tables)], alpha=ALPHA
            ),
            "marginal": lambda: demur.calibrate(replace(tables[0][0]), tables[0][1], alpha=ALPHA),
        },
        rounds=ROUNDS,
    )
    cascade, marginal = seconds["cascade"].median, seconds["marginal"].median
    return {"cascade": cascade, "marginal": marginal, "ratio_per_stage": cascade / marginal / STAGES}


def main() -> None:
    found = {"votes alone": per_stage(named=False), "named, with jitter": per_stage(named=True)}
    claims = [
        at_most(10, f"a stage of a cascade / marginal at 10⁵, {name}, CPU", times["ratio_per_stage"])
        for name, times in found.items()
    ]
    setting = {"n": N, "paths": PATHS, "alpha": ALPHA, "stages": STAGES, "rounds": ROUNDS}
    print_report("cascades", claims, packages=["demur", "numpy", "scipy"], setting=setting, seconds=found)


if __name__ == "__main__":
    main()
