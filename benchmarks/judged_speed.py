"""Claim: calibrating on labels by a judge of which people checked a part costs at most ten marginal calibrations.

100,000 votes, a tenth of them checked. The region of `JudgeHighProbability` depends on the numbers of votes, alpha and
delta alone and is kept; the time to make it is stated apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur
from demur.evidence.region import region

VOTES, CHECKED, PATHS = 100_000, 10_000, 16
ALPHA, DELTA, ROUNDS = 0.05, 0.1, 7


def main() -> None:
    simulated = demur.simulate_pools(VOTES, n_paths=PATHS, seed=0)
    votes = demur.vote(simulated.answers, simulated.scores)
    right, rng = votes.answer == simulated.gold, np.random.default_rng(0)
    judged = (right ^ (rng.random(VOTES) < 0.05)) & votes.has_answer
    drawn = np.zeros(VOTES, dtype=np.bool_)
    drawn[rng.permutation(VOTES)[:CHECKED]] = True
    checks = demur.Checks(drawn, right & drawn, drawn)

    def calibrated(guarantee: object, checked: demur.Checks | None = None) -> demur.Policy:
        # A replaced object has none of the columns that votes remember once they were asked for.
        return demur.calibrate(replace(votes), judged, guarantee=guarantee, checked=checked)

    def region_anew() -> object:
        region.cache_clear()
        return region(VOTES, CHECKED, ALPHA, DELTA)

    seconds = alternate({"region, made anew": region_anew}, rounds=1)
    calls = {
        "marginal": lambda: calibrated(demur.Marginal(ALPHA)),
        "checked votes alone": lambda: calibrated(demur.Marginal(ALPHA), checks),
        "judge, marginal": lambda: calibrated(demur.JudgeMarginal(ALPHA), checks),
        "judge, high probability": lambda: calibrated(demur.JudgeHighProbability(ALPHA, DELTA), checks),
    }
    seconds |= alternate(calls, rounds=ROUNDS)
    base = seconds["marginal"].median
    names = [name for name in calls if name != "marginal"]
    print_report(
        "labels by a judge",
        [at_most(10, f"{name} / marginal at 10⁵, CPU", seconds[name].median / base) for name in names],
        packages=["demur", "numpy", "scipy"],
        setting={"votes": VOTES, "checked": CHECKED, "alpha": ALPHA, "delta": DELTA, "rounds": ROUNDS},
        seconds=seconds,
    )


if __name__ == "__main__":
    main()
