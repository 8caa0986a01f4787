"""What `make bench` calls: an environment of its own with the peers in it, every benchmark in turn, one table.

The exit code says whether the benchmarks ran, never how fast they were.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".bench-venv"
PYTHON = ENVIRONMENT / "bin" / "python"
READY = ENVIRONMENT / ".ready"
SCRIPTS = [
    "voting_speed.py",
    "frames_speed.py",
    "decide_speed.py",
    "waves_speed.py",
    "calibration_speed.py",
    "plan_speed.py",
    "label_speed.py",
    "selective_speed.py",
    "learned_speed.py",
    "cascade_speed.py",
    "answer_set_speed.py",
    "judged_speed.py",
    "choosing_speed.py",
    "shift_speed.py",
    "groups_speed.py",
    "paper_table.py",
    "monitoring_speed.py",
    "cli_start.py",
    "answer_classes.py",
    "answer_texts.py",
    "store_speed.py",
    "review_queue_speed.py",
    "embedded_speed.py",
    "sampling_speed.py",
    "ray_speed.py",
    "scoring_speed.py",
    "reward_speed.py",
    "service_speed.py",
    "study_speed.py",
    "report_speed.py",
]


def prepare() -> None:
    """Install the project and its peers, unless that was done since their versions last changed."""
    sources = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    if READY.exists() and READY.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return
    print(f"installing the project and its peers into {ENVIRONMENT.name} …", file=sys.stderr)
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run(
        [PYTHON, "-m", "pip", "install", "--quiet", "--editable", ".[bench]"],
        check=True,
        cwd=ROOT,
        env={"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), **os.environ},
    )
    READY.touch()


def run(script: str) -> dict[str, Any] | None:
    """The report of one benchmark, printed as it came; None where it failed."""
    finished = subprocess.run([PYTHON, ROOT / "benchmarks" / script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    print(finished.stdout, flush=True)
    if finished.returncode:
        print(f"{script} failed with exit code {finished.returncode}", file=sys.stderr)
        return None
    return json.loads(finished.stdout)


def show(claim: dict[str, Any]) -> tuple[str, str, str, str]:
    wanted = f"at least {claim['floor']:g}" if "floor" in claim else f"at most {claim['ceiling']:g}"
    return claim["claim"], f"{claim['measured']:.3g}", wanted, "yes" if claim["met"] else "NO"


def print_table(rows: list[tuple[str, str, str, str]]) -> None:
    table = [("claim", "measured", "floor", "met"), *rows]
    claim, measured, wanted, _ = (max(map(len, column)) for column in zip(*table, strict=True))
    for row in table:
        print(f"{row[0]:<{claim}}  {row[1]:>{measured}}  {row[2]:<{wanted}}  {row[3]}")


def main() -> int:
    prepare()
    reports = [run(script) for script in SCRIPTS]
    print_table([show(claim) for report in reports if report is not None for claim in report["claims"]])
    return int(None in reports)


if __name__ == "__main__":
    sys.exit(main())
