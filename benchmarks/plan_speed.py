"""Claim: a plan from a pilot costs at most twice a calibration on it.

A plan counts the votes as a calibration does; the law of yields is exact and costs the same for a thousand votes as for
a million: one incomplete beta function per rank and stretch, of which there are at most about 500. Beside a calibration
on 2,000 votes that is dear, and with a second law for the price of a high probability it may cost more than is claimed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
from claims import at_most, print_report
from stopwatch import Call, alternate

import demur as dm

SIZES, PATHS, ROUNDS = (200, 2_000, 100_000), 16, 9
ALPHA, DELTA = 0.05, 0.1


def calls_of(n: int) -> dict[str, Call]:
    pools = dm.simulate_pools(n, n_paths=PATHS, seed=0)
    ways = {
        "plain": dm.vote(pools.answers, pools.scores),
        "ties by mean score": dm.vote(pools.answers, pools.scores, tie_break=dm.mean_score()),
    }
    promises = {"marginal": dm.Marginal(ALPHA), "high probability": dm.HighProbability(ALPHA, DELTA)}
    calls: dict[str, Call] = {}
    for way, votes in ways.items():
        correct = pools.is_right(votes.answer)
        for name, promise in promises.items():
            for verb in (dm.calibrate, dm.plan):
                calls[f"{verb.__name__}, {n} votes, {way}, {name}"] = partial(once, verb, votes, correct, promise)
    return calls


def once(verb, votes: dm.Votes, correct: np.ndarray, promise) -> object:  # type: ignore[no-untyped-def]
    # A replaced object has none of the columns that votes remember once they were asked for.
    return verb(replace(votes), correct, guarantee=promise)


def children() -> float:
    """CPU seconds of the processes that were started and have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verbs(folder: Path) -> dict[str, float]:
    """CPU seconds of each verb on one file of 1300 pools, the median of five, taken in turn."""
    file = folder / "pools.jsonl"
    demur = [sys.executable, "-m", "demur"]
    subprocess.run([*demur, "simulate", "-o", file, "-n", "1300"], check=True, stdout=subprocess.DEVNULL)
    taken: dict[str, list[float]] = {"calibrate": [], "plan": []}
    for _ in range(5):
        for verb, seconds in taken.items():
            start = children()
            subprocess.run([*demur, verb, file, "--score", "simulated"], check=True, stdout=subprocess.DEVNULL)
            seconds.append(children() - start)
    return {verb: float(np.median(seconds)) for verb, seconds in taken.items()}


def main() -> None:
    calls = {name: call for n in SIZES for name, call in calls_of(n).items()}
    seconds = alternate(calls, rounds=ROUNDS, clock=time.process_time)
    ratios = {
        name.removeprefix("plan, "): seconds[name].median / seconds[name.replace("plan", "calibrate", 1)].median
        for name in seconds
        if name.startswith("plan, ")
    }
    with tempfile.TemporaryDirectory() as folder:
        whole = verbs(Path(folder))
    claims = [at_most(2, f"plan / calibrate, {name}, CPU", ratio) for name, ratio in ratios.items()]
    claims.append(at_most(2, "the verb plan / the verb calibrate, 1300 pools, CPU", whole["plan"] / whole["calibrate"]))
    print_report(
        "plan speed",
        claims,
        packages=["demur", "numpy", "scipy"],
        setting={"paths": PATHS, "alpha": ALPHA, "delta": DELTA, "rounds": ROUNDS},
        cpu_seconds=seconds,
        ratios=ratios,
        verbs=whole,
    )


if __name__ == "__main__":
    main()
