"""Claim: over a Ray cluster the stages of a processor cost little more than in one process, and two workers halve them.

Answers are read off the texts of 10⁵ pools and put into classes, and self-consistency is computed: by the plain
functions in one process, from one shard to the next, and by one and two workers of a cluster that is made for it. Ray
lives in an environment of its own. The overhead is in CPU seconds of all processes, so that a busy machine does not
tell on it; what two workers gain can be seen only where two processors are free. Start-up (the cluster, and workers
that import their packages) is measured apart: work is measured on the second half of the shards, when all workers
are at work. Rounds alternate.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import at_least, at_most, print_report
from peers import ROOT, python_of

POOLS, PATHS, BLOCK, ROUNDS = int(os.environ.get("RAY_POOLS", "100000")), 4, 1000, 3
_TEXT = "We add {a} and {b}.\nStep {j}: {a} + {b} = {c}.\nSo the answer is \\boxed{{{c}}}."


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


@dataclass(frozen=True)
class Cost:
    """What a stage took: seconds by the clock, and of processors, in all processes that had a part in it."""

    wall: float
    cpu: float


class Meter:
    """The cost of work on all shards, by that of the second half: by then all workers are at work."""

    def __init__(self, shards: int) -> None:
        self.shards, self.seen = shards, 0
        self.marks: list[Cost] = []

    def __call__(self, _: object) -> None:
        self.seen += 1
        if self.seen in (self.shards // 2, self.shards):
            self.marks.append(Cost(time.perf_counter(), cpu_of_family()))

    @property
    def cost(self) -> Cost:
        first, last = self.marks
        share = self.shards / (self.shards - self.shards // 2)
        return Cost((last.wall - first.wall) * share, (last.cpu - first.cpu) * share)


def cpu_of_family() -> float:
    """CPU seconds so far of this process and all that descend from it: Ray's servers, and its workers."""
    parents, spent = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile
            fields = entry.joinpath("stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)], spent[int(entry.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    family, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return sum(spent.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def by_ray(stage: str, folder: Path, workers: int) -> tuple[Cost, float]:
    """The cost of the work, and the seconds of all: with the start of the cluster and of its workers."""
    from demur.pipeline.ray.classing import class_shards
    from demur.pipeline.ray.sampling import RayOptions
    from demur.pipeline.ray.scoring import score_shards
    from demur.pools.fields import FieldChoice
    from demur.scoring.settings import ScorerSettings

    timer, began = Meter(len(list(folder.glob("*.parquet")))), time.perf_counter()
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
    return timer.cost, time.perf_counter() - began


def plainly(stage: str, folder: Path) -> Cost:
    """The same by the plain functions in this process."""
    from demur.pools.answer_classes import AnswerClasses
    from demur.pools.fields import FieldChoice
    from demur.pools.parquet import read_parquet, write_parquet
    from demur.pools.reading import AnswerReader
    from demur.records import blinded
    from demur.scoring.protocol import checked
    from demur.scoring.self_consistency import SelfConsistency

    began, spent = time.perf_counter(), time.process_time()
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
    return Cost(time.perf_counter() - began, time.process_time() - spent)


def measured() -> None:
    costs: dict[str, list[Cost]] = defaultdict(list)
    start: list[float] = []
    stages = ("answers", "self-consistency")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shards"
        write_shards(folder)
        for _ in range(ROUNDS):
            for stage in stages:
                costs[f"{stage}, one process"].append(plainly(stage, folder))
                for workers in (1, 2):
                    work, whole = by_ray(stage, folder, workers)
                    costs[f"{stage}, workers: {workers}"].append(work)
                    start.append(whole - work.wall)
    wall = {name: statistics.median(one.wall for one in found) for name, found in costs.items()}
    cpu = {name: statistics.median(one.cpu for one in found) for name, found in costs.items()}
    claims = []
    for stage in stages:
        plain, one, two = (f"{stage}, {how}" for how in ("one process", "workers: 1", "workers: 2"))
        claims += [
            at_most(1.25, f"{stage}: CPU of one worker and its cluster / of one process", cpu[one] / cpu[plain]),
            at_least(1.6, f"{stage}: seconds of one worker / of two", wall[one] / wall[two]),
        ]
    print_report(
        "a Ray cluster",
        claims,
        packages=["demur", "ray", "pyarrow"],
        setting={"pools": POOLS, "paths": PATHS, "pools to a shard": BLOCK, "processors": os.cpu_count()},
        costs=costs,
        cpu_of_two_workers_to_one={
            stage: cpu[f"{stage}, workers: 2"] / cpu[f"{stage}, workers: 1"] for stage in stages
        },
        start_seconds={"median": statistics.median(start), "rounds": start},
        load_average=os.getloadavg()[0],
    )


def main() -> None:
    python = python_of("ray", "--editable", f"{ROOT}[http,parquet,ray]", pinned=True)
    sys.exit(subprocess.run([python, __file__, "--measure"]).returncode)


if __name__ == "__main__":
    measured() if "--measure" in sys.argv else main()
