"""Claims: `demur decide -o` costs at most three times `demur calibrate`, and a policy of as many votes loads at once.

Pools of 8 paths are simulated, with scores, so that nearly every vote has a confidence of its own and the policy is as
large as it can be. Every command is a process of its own; its CPU seconds are those of the whole command, imports too.
Bare pools are those that `tables_speed.py` draws: without questions, they are read in a fraction of the time.

    python benchmarks/decisions_speed.py [--pools 1000000] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import scipy.special  # noqa: F401 - imported by a policy that is loaded, and no part of its cost
import tables_speed
from claims import at_most, print_report

import demur as dm

PATHS, ROUNDS = 8, 5
ENDINGS = {"JSON lines": "decided.jsonl", "Parquet": "decided.parquet"}


def seconds_of(*arguments: str | Path) -> float:
    """CPU seconds of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "demur", *map(str, arguments)], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(pools: Path, score: str, policy: Path) -> dict[str, float]:
    """CPU seconds of a calibration on pools, and of decisions on them in each kind of file."""
    seconds = {"calibrate": seconds_of("calibrate", pools, "--score", score, "-o", policy)}
    for kind, name in ENDINGS.items():
        out = policy.with_name(name)
        seconds[kind] = seconds_of("decide", pools, "--policy", policy, "-o", out)
        out.unlink()
    return seconds


def loading(policy: Path) -> float:
    """CPU seconds of loading a policy, once all is imported."""
    taken = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        dm.Policy.load(policy)
        taken.append(time.process_time() - start)
    return statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pools", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        pools, policy, tables = folder / "pools.parquet", folder / "policy.json", folder / "tables"
        seconds_of("simulate", "-n", str(given.pools), "-m", str(PATHS), "-o", pools)
        simulated = measure(pools, "simulated", policy)
        megabytes = {"policy": policy.stat().st_size / 1e6}
        megabytes["problems next to it"] = sum(file.stat().st_size for file in folder.glob("*.calibration")) / 1e6
        load = loading(policy)
        pools.unlink()
        tables_speed.PATHS = PATHS
        tables_speed.write_tables(tables, given.pools)
        bare = measure(tables, "rm", policy)
    by_pools = {"simulated": simulated, "bare": bare}
    print_report(
        "decisions on many pools, as files",
        [
            at_most(3, f"{kind_of_pools}: decide -o to {kind} / calibrate, CPU", seconds[kind] / seconds["calibrate"])
            for kind_of_pools, seconds in by_pools.items()
            for kind in ENDINGS
        ],
        packages=["demur", "numpy", "pyarrow"],
        setting={"pools": given.pools, "paths": PATHS, "rounds": ROUNDS},
        cpu_seconds=by_pools,
        policy_megabytes=megabytes,
        policy_load_cpu_seconds=load,
    )


if __name__ == "__main__":
    main()
