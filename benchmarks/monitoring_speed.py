"""Claim: a monitor costs microseconds per observation, a million observations later too, where MAPIE's starts over.

MAPIE's `RiskMonitoring` and `ErrorMonitor` watch the same stream of answers, right or wrong, for a rate above a level.
It recomputes its bound over all that it has seen at every update, so the stream of single updates is short; a second
stream comes in one batch. `DriftMonitor` does another task, on keys, whose ranks among all keys before it must find;
in a batch the largest part of its time goes into eight stakes that grow one observation after another.
Cost per observation is that of the next thousand, after a thousand and after a million.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from claims import at_least, at_most, print_report
from mapie.exchangeability_testing import RiskMonitoring
from stopwatch import alternate

import demur as dm
from demur.monitoring import DriftMonitor, ErrorMonitor, OnlineThreshold
from demur.voting.key import Column

CALIBRATED, SINGLE, BATCH = 1000, 300, 10_000
FEW, MANY, NEXT = 1000, 1_000_000, 1000
ROUNDS = 5


def calibrated(rng: np.random.Generator) -> dm.Policy:
    votes = dm.vote([["a"]] * CALIBRATED, tie_break=(Column(rng.random(CALIBRATED)), "none"), ids=range(CALIBRATED))
    return dm.calibrate(votes, rng.random(CALIBRATED) < 0.6, alpha=0.1)


def keys(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack([np.ones(n), rng.random(n)])


def mapie(wrong: np.ndarray, level: float, size: int) -> None:
    monitor = RiskMonitoring(risk="accuracy", threshold=level, warn=False)
    right, answered = (~wrong).astype(int), np.ones(len(wrong), dtype=int)
    for start in range(0, len(wrong), size):
        monitor.update(right[start : start + size], answered[start : start + size])


def in_parts(monitor: ErrorMonitor | DriftMonitor, stream: np.ndarray, size: int) -> None:
    for start in range(0, len(stream), size):
        monitor.update(stream[start : start + size])


def follow(online: OnlineThreshold, stream: np.ndarray) -> None:
    """Every question decided, every label given: every third answer is wrong."""
    for key in map(tuple, stream.tolist()):
        decision = online.decide(key)
        if decision.label_wanted:
            online.update(decision.number, decision.number % 3 == 0)


def against_mapie(policy: dm.Policy, rng: np.random.Generator) -> tuple[dict[str, float], list[dict]]:
    microseconds, claims = {}, []
    level = ErrorMonitor(policy).level
    for length, size, told in ((SINGLE, 1, "one at a time"), (BATCH, BATCH, "in one batch")):
        wrong, stream = rng.random(length) < 0.09, keys(rng, length)
        calls: dict[str, Callable[[], object]] = {
            "MAPIE": lambda wrong=wrong, size=size: mapie(wrong, level, size),
            "audited errors": lambda wrong=wrong, size=size: in_parts(ErrorMonitor(policy), wrong, size),
            "drift": lambda stream=stream, size=size: in_parts(DriftMonitor(policy), stream, size),
        }
        if size == 1:
            calls["online threshold"] = lambda stream=stream: follow(OnlineThreshold(policy), stream)
        cost = {name: 1e6 * taken.median / length for name, taken in alternate(calls, rounds=3).items()}
        microseconds |= {f"{name}, {told}": each for name, each in cost.items()}
        theirs = cost.pop("MAPIE")
        claims += [at_least(50, f"MAPIE / {name}, {length} {told}, CPU", theirs / cost[name]) for name in cost]
    return microseconds, claims


def after_many(policy: dm.Policy, rng: np.random.Generator) -> tuple[dict[str, float], list[dict]]:
    calls: dict[str, Callable[[], object]] = {}
    wrong, stream = rng.random(NEXT) < 0.09, keys(rng, NEXT)
    for seen in (FEW, MANY):
        errors = ErrorMonitor(policy).update(rng.random(seen) < 0.09)
        drift = DriftMonitor(policy).update(keys(rng, seen))
        online = OnlineThreshold(policy)
        follow(online, keys(rng, seen))
        calls[f"audited errors, after {seen}"] = lambda errors=errors: errors.update(wrong)
        calls[f"drift, after {seen}"] = lambda drift=drift: drift.update(keys(rng, NEXT))
        calls[f"online threshold, after {seen}"] = lambda online=online: follow(online, stream)
    cost = {name: 1e6 * taken.median / NEXT for name, taken in alternate(calls, rounds=ROUNDS).items()}
    claims = [
        at_most(
            3,
            f"{name}: the next of {MANY} / of {FEW}, CPU",
            cost[f"{name}, after {MANY}"] / cost[f"{name}, after {FEW}"],
        )
        for name in ("audited errors", "drift", "online threshold")
    ]
    return cost, claims


def main() -> None:
    rng = np.random.default_rng(0)
    policy = calibrated(rng)
    peers, claims = against_mapie(policy, rng)
    later, more = after_many(policy, rng)
    print_report(
        "monitoring speed",
        claims + more,
        packages=["demur", "numpy", "scipy", "mapie"],
        setting={"calibrated": CALIBRATED, "single": SINGLE, "batch": BATCH, "few": FEW, "many": MANY},
        cpu_microseconds_per_observation=peers | later,
    )


if __name__ == "__main__":
    main()
