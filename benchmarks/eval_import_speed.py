"""Claim: a log of inspect is imported faster than inspect reads it, in memory that does not grow with it.

inspect-ai evaluates questions on a loopback model; its own samples, events and all, make logs of 2,000, 20,000 and
100,000 samples, packed as it packs them. demur imports a log into a new SQLite run; inspect reads it by `read_eval_log`
(with all fields, and without those that a path does not need) and by `read_eval_log_samples`, in alternating rounds,
each in a process of its own, CPU seconds after the imports. inspect reads the smallest log, for the largest would take
it minutes; demur reads all, and costs are compared per sample. inspect lives in an environment of its own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from claims import at_least, at_most, print_report
from loopback_model import serving
from peers import PEERS, python_of

SMALL, MIDDLE, LARGE, ROUNDS = 2_000, 20_000, 100_000, 3
HERE = Path(__file__).resolve().parent
WAYS = ("read_eval_log", "read_eval_log, lean", "read_eval_log_samples")


def imported(log: str, folder: str) -> dict[str, Any]:
    """What importing a log costs, in this process."""
    from demur.pipeline.log_import import import_log

    start = time.process_time()
    done = import_log(Path(log), f"{folder}/run.db", "run")
    spent, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"samples": done.new_paths, "cpu_seconds": spent, "peak_megabytes": peak}


def child(*command: str | Path) -> dict[str, Any]:
    offline = {**os.environ, "HOME": str(PEERS)}
    done = subprocess.run(command, capture_output=True, text=True, env=offline)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    printed: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "{}")
    return printed


def ours(log: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return child(sys.executable, __file__, str(log), folder)


def main() -> None:
    inspect = python_of("inspect", "inspect-ai==0.3.285", "openai")
    rounds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    script = HERE / "peer_inspect_logs.py"
    with tempfile.TemporaryDirectory() as folder:
        with serving(0) as url:
            made = [inspect, script, "make", url, folder, *map(str, (SMALL, MIDDLE, LARGE))]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        logs = small, middle, large = [Path(folder) / f"{size}.eval" for size in (SMALL, MIDDLE, LARGE)]
        sizes = {path.name: path.stat().st_size / 1e6 for path in logs}
        for _ in range(ROUNDS):
            rounds["demur"].append(ours(small))
            for way in WAYS:
                rounds[way].append(child(inspect, script, "read", small, way))
        rounds["demur, middle"].append(ours(middle))
        rounds["demur, large"].append(ours(large))
    wanted = defaultdict(lambda: SMALL, {"demur, middle": MIDDLE, "demur, large": LARGE})
    for name, told in rounds.items():
        assert {one["samples"] for one in told} == {wanted[name]}, (name, told)
    median = {name: statistics.median(one["cpu_seconds"] for one in told) for name, told in rounds.items()}
    cost = {name: seconds / wanted[name] for name, seconds in median.items()}
    peak = {name: max(one["peak_megabytes"] for one in told) for name, told in rounds.items()}
    fastest = min(WAYS, key=lambda way: cost[way])
    faster = cost[fastest] / cost["demur, large"]
    version = "from importlib.metadata import version; print(version('inspect-ai'))"
    print_report(
        "import of inspect logs",
        [
            at_least(5, "inspect's fastest reading / an import of 100,000 samples", faster),
            at_most(1.5, "peak memory of 100,000 samples / of 20,000", peak["demur, large"] / peak["demur, middle"]),
        ],
        packages=["demur", "sqlalchemy", "zstandard"],
        peers={"inspect-ai": subprocess.run([inspect, "-c", version], capture_output=True, text=True).stdout.strip()},
        fastest=fastest,
        log_megabytes=sizes,
        cpu_microseconds_per_sample={name: 1e6 * seconds for name, seconds in cost.items()},
        rounds={name: [one["cpu_seconds"] for one in told] for name, told in rounds.items()},
        peak_megabytes=peak,
    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(imported(*sys.argv[1:])))
    else:
        main()
