"""Claim: promises that allow a late choice calibrate as fast as the others; the band of `Simultaneous` is kept.

The band depends on n and delta alone, and is kept for as long as the process lives. Computed anew it is stated apart,
without a claim.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur
from demur.calibration.band import band

POOLS, PATHS = 100_000, 16
ALPHA, DELTA, CHOICES = 0.05, 0.1, 31
ROUNDS = 7
BANDS = (200, 1_000, 10_000, 100_000)


def labelled_votes(pools: int, seed: int = 0) -> tuple[demur.Votes, np.ndarray]:
    simulated = demur.simulate_pools(pools, n_paths=PATHS, seed=seed)
    votes = demur.vote(simulated.answers, simulated.scores)
    return votes, votes.answer == simulated.gold


def band_anew(n: int) -> None:
    band.cache_clear()
    band(n, DELTA)


def against_marginal() -> tuple[list[dict], dict]:
    """Each calibration of 100,000 votes, in multiples of the marginal one."""
    votes, correct = labelled_votes(POOLS)
    band(POOLS, DELTA)
    kinds = {
        "marginal": demur.Marginal(ALPHA),
        "marginal, chosen from 31": demur.Marginal(ALPHA, choices=CHOICES),
        "high probability, chosen from 31": demur.HighProbability(ALPHA, DELTA, choices=CHOICES),
        "simultaneous": demur.Simultaneous(ALPHA, DELTA),
    }
    calls = {
        name: lambda kind=kind: demur.calibrate(replace(votes), correct, guarantee=kind) for name, kind in kinds.items()
    }
    seconds = alternate(calls, rounds=ROUNDS)
    base = seconds["marginal"].median
    names = [name for name in calls if name != "marginal"]
    return [at_most(10, f"{name} / marginal at 10⁵, CPU", seconds[name].median / base) for name in names], seconds


def main() -> None:
    claims, seconds = against_marginal()
    bands = alternate({f"band of {n:,}": lambda n=n: band_anew(n) for n in BANDS}, rounds=3)
    print_report(
        "choosing speed",
        claims,
        packages=["demur", "numpy", "scipy"],
        setting={"votes": POOLS, "paths": PATHS, "alpha": ALPHA, "delta": DELTA, "choices": CHOICES, "rounds": ROUNDS},
        seconds={"calibrations": seconds, "bands anew": bands},
    )


if __name__ == "__main__":
    main()
