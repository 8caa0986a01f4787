"""Claim: over a Ray cluster the stages of a processor cost little more than in one process, and two workers halve them.

Answers are read off the texts of 10⁵ pools and put into classes, and self-consistency is computed: by the plain
functions in one process, from one shard to the next, and by one and two workers of a cluster that is made for it. Ray
lives in an environment of its own. Start-up (the cluster, and workers that import their packages) is measured apart:
work is timed from the receipts of the first shards to the last, and put in proportion. Rounds alternate.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claims import at_least, at_most, print_report

POOLS, PATHS, BLOCK, ROUNDS = int(os.environ.get("RAY_POOLS", "100000")), 4, 1000, 1
HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".bench-peers" / "ray" / "bin" / "python"
_TEXT = "We add {a} and {b}.\nStep {j}: {a} + {b} = {c}.\nSo the answer is \\boxed{{{c}}}."


def prepare() -> None:
    if not PYTHON.exists():
        print("installing Ray …", file=sys.stderr)
        venv.create(PYTHON.parent.parent, with_pip=True)
        wanted = f"{HERE.parent}[http,parquet,ray]"
        constrained = {"PIP_CONSTRAINT": str(HERE.parent / "constraints.txt"), **os.environ}
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--editable", wanted], check=True, env=constrained)


def write_shards(folder: Path) -> None:
    """Pools with texts, in shards."""
    from demur.pools.parquet import write_parquet
    from demur.records import Path as ReasoningPath
    from demur.records import Pool, Problem

    folder.mkdir()
    for block in range(-(-POOLS // BLOCK)):
        pools = []
        for k in range(block * BLOCK, min(POOLS, (block + 1) * BLOCK)):
            paths = (_TEXT.format(a=k, b=17, c=k + 17 + j % 2, j=j) for j in range(PATHS))
            problem = Problem(f"q{k}", f"What is {k} + 17?", (str(k + 17),), extra={"task": "math"})
            pools.append(Pool(problem, tuple(ReasoningPath(None, text) for text in paths)))
        write_parquet(pools, folder / f"block-{block:06d}.parquet")


class Timer:
    """Seconds of work on all shards, from when each worker has handed in its first."""

    def __init__(self, shards: int, workers: int) -> None:
        self.shards, self.workers, self.times = shards, workers, list[float]()

    def __call__(self, _: object) -> None:
        self.times.append(time.perf_counter())

    @property
    def seconds(self) -> float:
        since = self.times[self.workers - 1]
        return (self.times[-1] - since) * self.shards / (self.shards - self.workers)


def by_ray(stage: str, folder: Path, workers: int) -> tuple[float, float]:
    """Seconds of work, and of all: with the start of the cluster and of its workers."""
    from demur.pipeline.ray.classing import class_shards
    from demur.pipeline.ray.sampling import RayOptions
    from demur.pipeline.ray.scoring import score_shards
    from demur.pools.fields import FieldChoice
    from demur.scoring.settings import ScorerSettings

    timer, began = Timer(len(list(folder.glob("*.parquet"))), workers), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
        if stage == "answers":
            class_shards(
                folder,
                Path(aside) / "out",
                FieldChoice(),
                from_texts=True,
                options=RayOptions(None, workers),
                watch=timer,
            )
        else:
            copy = Path(shutil.copytree(folder, Path(aside) / "in"))
            began = time.perf_counter()
            score_shards(copy, {"self-consistency": ScorerSettings()}, RayOptions(None, workers), watch=timer)
    return timer.seconds, time.perf_counter() - began


def plainly(stage: str, folder: Path) -> float:
    """The same by the plain functions in this process."""
    from demur.pools.answer_classes import AnswerClasses
    from demur.pools.fields import FieldChoice
    from demur.pools.parquet import read_parquet, write_parquet
    from demur.pools.reading import AnswerReader
    from demur.records import blinded
    from demur.scoring.protocol import checked
    from demur.scoring.self_consistency import SelfConsistency

    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        for path in sorted(folder.glob("*.parquet")):
            pools: list[Any] = list(read_parquet(path).pools)
            if stage == "answers":
                tally, reader = AnswerClasses(), AnswerReader(FieldChoice(), None, True)
                pools = [tally.classed(pool, reader, None) for pool in pools]
            else:
                from dataclasses import replace

                scorer = SelfConsistency()
                for at, pool in enumerate(pools):
                    scored = zip(pool.paths, checked(scorer.score(blinded(pool)), pool, scorer.name), strict=True)
                    paths = tuple(replace(one, scores={scorer.name: value}) for one, value in scored)
                    pools[at] = replace(pool, paths=paths)
            write_parquet(pools, Path(out) / path.name)
    return time.perf_counter() - began


def measured() -> None:
    seconds: dict[str, list[float]] = defaultdict(list)
    start: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shards"
        write_shards(folder)
        for _ in range(ROUNDS):
            for stage in ("answers", "self-consistency"):
                seconds[f"{stage}, one process"].append(plainly(stage, folder))
                for workers in (1, 2):
                    work, whole = by_ray(stage, folder, workers)
                    seconds[f"{stage}, {workers} workers"].append(work)
                    start.append(whole - work)
    median = {name: statistics.median(found) for name, found in seconds.items()}

    def of(ratio: Callable[[str], float]) -> dict[str, float]:
        return {stage: ratio(stage) for stage in ("answers", "self-consistency")}

    overhead = of(lambda stage: median[f"{stage}, 1 workers"] / median[f"{stage}, one process"])
    gain = of(lambda stage: median[f"{stage}, 1 workers"] / median[f"{stage}, 2 workers"])
    print_report(
        "a Ray cluster",
        [
            *(at_most(1.25, f"{name}: one worker / one process", ratio) for name, ratio in overhead.items()),
            *(at_least(1.6, f"{name}: one worker / two workers", ratio) for name, ratio in gain.items()),
        ],
        packages=["demur", "ray", "pyarrow"],
        setting={"pools": POOLS, "paths": PATHS, "pools to a shard": BLOCK, "processors": os.cpu_count()},
        wall_seconds={name: {"median": median[name], "rounds": found} for name, found in seconds.items()},
        start_seconds={"median": statistics.median(start), "rounds": start},
        load_average=os.getloadavg()[0],
    )


def main() -> None:
    prepare()
    sys.exit(subprocess.run([PYTHON, __file__, "--measure"]).returncode)


if __name__ == "__main__":
    measured() if "--measure" in sys.argv else main()
