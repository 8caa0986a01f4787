"""Sampling on a cluster, simulated: workers that ask model servers and save what comes in one database.

Every connection of every worker does the same, again and again: a path is drawn by a model server, which takes a random
time and a slot; the worker's core reads it; the database's cores save it. Who comes first is served first. Times of the
last two are measured; how many servers there are, their slots and their speed are assumed.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

CONNECTIONS, MODEL, WORKERS, DATABASE = "connections", "model servers", "workers", "database"
FULL = 0.9
"""What is busy for a larger share of the time than this holds the rest up."""


@dataclass(frozen=True)
class Cluster:
    """A cluster, and what a path costs each part of it."""

    workers: int
    servers: int
    connections: int = 512
    """Of each worker."""
    slots: int = 256
    """Paths that one model server draws at once."""
    path_seconds: float = 5.0
    """Mean time that a server takes for a path."""
    path_spread: float = 0.5
    """Standard deviation of the logarithm of that time."""
    worker_seconds: float = 0.003
    """Time of a worker's one core for a path."""
    database_seconds: float = 0.0005
    """Time of a database's core for a path."""
    database_cores: int = 2

    @property
    def limits(self) -> dict[str, float]:
        """Paths per second that each part allows by itself."""
        once_through = self.path_seconds + self.worker_seconds + self.database_seconds
        return {
            CONNECTIONS: self.workers * self.connections / once_through,
            MODEL: self.servers * self.slots / self.path_seconds,
            WORKERS: self.workers / self.worker_seconds if self.worker_seconds else math.inf,
            DATABASE: self.database_cores / self.database_seconds if self.database_seconds else math.inf,
        }


@dataclass(frozen=True)
class Outcome:
    """What a simulation found: paths per second, and what share of the time each part was busy."""

    paths_per_second: float
    busy: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """What holds the rest up: the busiest part, or too few connections where none is nearly always busy."""
        busiest = max(self.busy, key=lambda part: self.busy[part])
        return busiest if self.busy[busiest] > FULL else CONNECTIONS


def simulate(cluster: Cluster, *, rounds: int = 4, seed: int = 0) -> Outcome:
    """Let every connection bring about so many paths, and count those that come after the first two rounds."""
    rng = random.Random(seed)
    centre = math.log(cluster.path_seconds) - cluster.path_spread**2 / 2
    n_connections = cluster.workers * cluster.connections
    slots = [0.0] * (cluster.servers * cluster.slots)
    cores = [0.0] * cluster.database_cores
    worker_free = [0.0] * cluster.workers
    # A connection and what it does next: 0 asks the model, 1 is read by its worker, 2 is saved.
    events = [(rng.random() * cluster.path_seconds, number, 0) for number in range(n_connections)]
    heapify(events)
    warm, wanted = 2 * n_connections, rounds * n_connections
    saved, began, now = 0, 0.0, 0.0
    while saved < wanted:
        now, number, step = heappop(events)
        if step == 0:
            end = max(now, slots[0]) + rng.lognormvariate(centre, cluster.path_spread)
            heapreplace(slots, end)
        elif step == 1:
            worker = number % cluster.workers
            end = worker_free[worker] = max(now, worker_free[worker]) + cluster.worker_seconds
        else:
            end = max(now, cores[0]) + cluster.database_seconds
            heapreplace(cores, end)
            saved += 1
            began = now if saved == warm else began
        heappush(events, (end, number, (step + 1) % 3))
    rate = (wanted - warm) / (now - began)
    limits = cluster.limits
    return Outcome(rate, {part: rate / limits[part] for part in (MODEL, WORKERS, DATABASE)})
