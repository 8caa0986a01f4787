"""Claim: `demur --help` answers at once, because it imports nothing heavy."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

from claims import at_most, print_report
from stopwatch import Seconds

COMMAND = [str(Path(sys.executable).with_name("demur")), "--help"]
HEAVY = ["numpy", "scipy", "sqlalchemy", "torch"]
ROUNDS = 7


def run_once() -> float:
    """CPU seconds, user and system, of one start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def heavy_imports() -> list[str]:
    """Which of the heavy packages Python's own import log names."""
    traced = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND], check=True, capture_output=True, text=True
    ).stderr
    modules = {line.rpartition("|")[2].strip() for line in traced.splitlines() if line.startswith("import time:")}
    return [name for name in HEAVY if name in modules]


def main() -> None:
    run_once()  # the first start writes bytecode
    taken = [run_once() for _ in range(ROUNDS)]
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    seconds = Seconds(statistics.median(taken), min(taken), max(taken))
    imported = heavy_imports()
    print_report(
        "command-line start",
        [
            at_most(0.5, "demur --help, CPU seconds", seconds.median),
            at_most(0, f"demur --help, of {', '.join(HEAVY)} imported", len(imported)),
        ],
        packages=["demur", "typer", "rich"],
        setting={"rounds": ROUNDS},
        cpu_seconds={"demur --help": seconds},
        peak_bytes={"demur --help": largest if sys.platform == "darwin" else 1024 * largest},
        imported=imported,
    )


if __name__ == "__main__":
    main()
