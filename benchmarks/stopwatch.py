"""Seconds of rival calls in alternating rounds, and the memory that one call adds at its peak."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Seconds:
    """What one call took, over rounds."""

    median: float
    min: float
    max: float


def alternate(calls: Mapping[str, Call], *, rounds: int, clock: Clock = time.process_time) -> dict[str, Seconds]:
    """Warm every call up once, then time them in turn, so that a noisy neighbour disturbs all of them alike.

    The default clock counts the CPU seconds of this process, in all its threads.
    """
    for call in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(_time(call, clock))
    return {name: Seconds(statistics.median(each), min(each), max(each)) for name, each in taken.items()}


def _time(call: Call, clock: Clock) -> float:
    # As in timeit: a collection of garbage that an earlier call left behind is not this call's time.
    gc.collect()
    gc.disable()
    try:
        start = clock()
        call()
        return clock() - start
    finally:
        gc.enable()


def peak_bytes(call: Call) -> int:
    """The most memory that a call holds beyond what was there before, its result included. Slow: never timed."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
