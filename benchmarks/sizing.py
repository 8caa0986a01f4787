"""What each stage costs per pool of 16 paths of 2 KB: CPU time, memory, bytes on disk and on the wire.

Each stage is timed in a process of its own, and its memory is the growth of the largest resident size from a quarter of
the pools to all of them, so that what is there anyway does not count. Times of other processes (a database's, a
service's) are told apart. The model is on loopback, answers at once, and is not counted. From the costs of sampling, a
cluster is simulated. docs/sizing.md is written from this report.

    python benchmarks/sizing.py                 every stage, in a few minutes
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

from claims import print_report
from cluster import Cluster, simulate
from loopback_model import serving
from sizing_inputs import LETTERS, PATHS, TOKENS, Place, postgres, write_tables, write_texts
from sizing_stages import BARE, CONNECTIONS, MOST_ROUNDS, STAGES, WITH_TEXTS, Stage
from stopwatch import Seconds

TICK = 1 / os.sysconf("SC_CLK_TCK")
SAMPLING = "sample into PostgreSQL, one path per request"
"""The stage whose costs a cluster is simulated with."""
INPUTS = {"texts": write_texts, "tables": write_tables}
CLUSTERS = (
    Cluster(workers=1, servers=1, connections=32),
    Cluster(workers=1, servers=1, connections=512),
    Cluster(workers=1, servers=8, connections=512),
    Cluster(workers=4, servers=8, connections=512),
    Cluster(workers=4, servers=64, connections=512),
    Cluster(workers=4, servers=64, connections=8192),
    Cluster(workers=4, servers=256, connections=8192),
    Cluster(workers=16, servers=256, connections=4096),
    Cluster(workers=32, servers=512, connections=4096),
)


def measure_here(stage: Stage, place: Place, pools: int, rounds: int) -> dict[str, Any]:
    """CPU seconds of each round after a first one, and the largest resident size."""
    own, others = [], []
    with ExitStack() as stack:
        work = stage.start(place, pools, stack)
        work.call()
        for _ in range(rounds):
            before, start = seconds_of(work.others()), time.process_time()
            work.call()
            own.append(time.process_time() - start)
            others.append(seconds_of(work.others()) - before)
        has_others = bool(work.others())
    return {"own": own, "others": others if has_others else [], "resident": largest_resident()}


def seconds_of(processes: Collection[int]) -> float:
    """CPU seconds that processes have used so far, and those of their children that ended."""
    ticks = 0
    for process in processes:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile, and its parent has its time
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks * TICK


def largest_resident() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def measure(stage: Stage, place: Place) -> dict[str, Any]:
    """What a stage costs per pool, measured in a process of its own; in two where it holds all pools in memory."""
    print(f"{stage.name} …", file=sys.stderr, flush=True)
    found = _child(stage.name, stage.pools, MOST_ROUNDS, place)
    costs: dict[str, Any] = {"pools": stage.pools}
    if not stage.only_others:
        costs["cpu_milliseconds"] = _per_pool(found["own"], stage.pools)
    if found["others"]:
        costs["server_cpu_milliseconds"] = _per_pool(found["others"], stage.pools)
    if stage.holds:
        few = stage.pools // 4
        grown = found["resident"] - _child(stage.name, few, 1, place)["resident"]
        costs["resident_bytes"] = max(0, round(grown / (stage.pools - few)))
    return costs


def _per_pool(seconds: list[float], pools: int) -> Seconds:
    each = [1000 * taken / pools for taken in seconds]
    return Seconds(median(each), min(each), max(each))


def _child(task: str, pools: int, rounds: int, place: Place) -> Any:
    told = json.dumps({**asdict(place), "folder": str(place.folder)})
    command = [sys.executable, __file__, task, str(pools), str(rounds), told]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SystemExit(f"the stage {task!r} failed: {why}")
    return json.loads(done.stdout)


def wire_bytes(model: str) -> dict[str, int]:
    """The bodies of a server's answers that bring one pool."""

    def answered(n: int, *, logprobs: bool) -> int:
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "n": n, "logprobs": logprobs}
        asked = Request(f"{model}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(asked) as response:
            return len(response.read())

    return {
        "wire, one path per request": PATHS * answered(1, logprobs=True),
        "wire, all paths in one request": answered(PATHS, logprobs=True),
        "wire, no log-probabilities": answered(PATHS, logprobs=False),
    }


def simulated(costs: dict[str, Any]) -> list[dict[str, Any]]:
    """Clusters of several sizes, with the measured costs of sampling."""
    per_path = {
        "worker_seconds": costs["cpu_milliseconds"].median / 1000 / PATHS,
        "database_seconds": costs["server_cpu_milliseconds"].median / 1000 / PATHS,
    }
    rows = []
    for assumed in CLUSTERS:
        cluster = replace(assumed, **per_path)
        outcome = simulate(cluster)
        rows.append({**asdict(cluster), **asdict(outcome), "bottleneck": outcome.bottleneck})
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        model = stack.enter_context(serving(0, TOKENS))
        address, postmaster = stack.enter_context(postgres(folder / "postgres"))
        place = Place(folder, model, address, postmaster)
        kept = wire_bytes(model)
        for inputs, pools in zip(INPUTS, (WITH_TEXTS, BARE), strict=True):
            _child(inputs, pools // 4, 0, place)
            kept = _child(inputs, pools, 0, place) | kept
        stages = {stage.name: measure(stage, place) for stage in STAGES if stage.can_run}
    print_report(
        "sizing",
        [],
        packages=["demur", "numpy", "aiohttp", "sqlalchemy", "psycopg", "pyarrow"],
        setting={"paths": PATHS, "letters of a path": LETTERS, "tokens of a path": TOKENS, "connections": CONNECTIONS},
        per_pool=stages,
        bytes_per_pool={name: round(size) for name, size in kept.items()},
        left_out=[stage.name for stage in STAGES if not stage.can_run],
        simulated=simulated(stages[SAMPLING]),
    )


def as_child(task: str, pools: int, rounds: int, told: str) -> None:
    fields = json.loads(told)
    place = Place(**{**fields, "folder": Path(fields["folder"])})
    if task in INPUTS:
        print(json.dumps(INPUTS[task](place, pools)))
        return
    (stage,) = [stage for stage in STAGES if stage.name == task]
    print(json.dumps(measure_here(stage, place, pools, rounds)))


if __name__ == "__main__":
    if len(sys.argv) == 5:
        as_child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        main()
