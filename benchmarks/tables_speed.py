"""Claims: votes and a calibration of pools in Parquet cost little more than the mathematics on arrays, a fraction of
JSON lines, and as much per pool at ten million as at a hundred thousand.

Pools of 16 answers and scores with gold, ids and question digests are drawn in chunks and written as a folder of
Parquet files, as JSON lines and as arrays. Every measurement is a process of its own: CPU seconds behind the imports,
and the largest resident size beyond what it was there. Arrays come with ids, which jitter is drawn from as in files; a
vote without names has no jitter to draw and to sort by, and stands beside it without a claim. So does Polars' group-by
majority on the same files: it finds the commonest answer, and neither weighs, labels nor calibrates.

    python benchmarks/tables_speed.py [--largest 10000000] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.fs
import pyarrow.parquet
from claims import at_least, at_most, print_report

PATHS, WORDS, CHUNK, FILE = 16, 1000, 8192, 1_000_000
COMPARED, ROUNDS = 100_000, 3
GIBIBYTE = 1 << 30
KINDS = ("arrays", "arrays without names", "parquet", "json lines", "polars")


def draw(start: int, pools: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of answers, scores that favour right ones, and gold."""
    rng = np.random.default_rng((0, start))
    skill, gold = rng.beta(2, 1.5, size=(pools, 1)), rng.integers(WORDS, size=(pools, 1))
    right = rng.random((pools, PATHS)) < skill
    codes = np.where(right, gold, (gold + 1 + rng.integers(5, size=(pools, PATHS))) % WORDS)
    return codes, rng.standard_normal((pools, PATHS)) + right, gold[:, 0]


def write_tables(folder: Path, pools: int) -> None:
    """A folder of Parquet files, in the form that demur writes."""
    folder.mkdir(parents=True)
    texts = [(name, pyarrow.string()) for name in ("id", "gold", "question_digest", "problem_extra", "path_extra")]
    numbers = [("path", pyarrow.int32()), ("answer", pyarrow.string()), ("score.rm", pyarrow.float64())]
    schema, words = pyarrow.schema(texts + numbers), pyarrow.array(map(str, range(WORDS)))
    for first in range(0, pools, FILE):
        target = folder / f"part-{first // FILE:03}.parquet"
        with pyarrow.parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            for start in range(first, min(first + FILE, pools), CHUNK):
                size = min(CHUNK, first + FILE - start, pools - start)
                codes, scores, gold = draw(start, size)
                rows, nothing = (
                    np.repeat(np.arange(size), PATHS),
                    pyarrow.array(["{}"]).take(np.zeros(size * PATHS, int)),
                )
                ids = pyarrow.array(f"q{row:08}" for row in range(start, start + size))
                digests = pyarrow.array(
                    f"{row * 0x9E3779B97F4A7C15 % 2**64:016x}" for row in range(start, start + size)
                )
                golds = pyarrow.array(f'["{code}"]' for code in gold.tolist())
                said = [ids.take(rows), golds.take(rows), digests.take(rows), nothing, nothing]
                places = pyarrow.array(np.tile(np.arange(PATHS, dtype=np.int32), size))
                columns = [*said, places, words.take(codes.ravel()), pyarrow.array(scores.ravel())]
                writer.write_table(pyarrow.table(columns, schema=schema))


def write_lines(target: Path, pools: int) -> None:
    """The same pools as JSON lines."""
    with target.open("w", encoding="utf-8") as stream:
        for start in range(0, pools, CHUNK):
            size = min(CHUNK, pools - start)
            for row, codes, scores, gold in zip(range(start, start + size), *draw(start, size), strict=True):
                pairs = zip(codes.tolist(), scores.tolist(), strict=True)
                paths = [{"answer": str(code), "scores": {"rm": score}} for code, score in pairs]
                print(json.dumps({"id": f"q{row:08}", "gold": str(gold), "paths": paths}), file=stream)


def measure(kind: str, folder: Path, pools: int) -> dict[str, Any]:
    """CPU seconds and bytes of one kind, in this process."""
    import scipy.special  # noqa: F401 - imported by a calibration, and no part of its cost

    import demur as dm

    if kind == "polars":
        import polars
    starts = range(0, pools if kind.startswith("arrays") else 0, CHUNK)
    drawn = [np.concatenate(parts) for parts in zip(*(draw(at, min(CHUNK, pools - at)) for at in starts), strict=True)]
    ids = [f"q{row:08}" for row in range(pools)] if kind == "arrays" else None
    few = [{"id": row, "gold": "1", "answer": "1", "score.rm": row} for row in range(50)]
    dm.calibrate(dm.vote_pools(dm.read_pools(few), dm.FieldChoice(score="rm")), alpha=0.1)  # imports what is lazy
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if kind == "polars":
        answers = polars.scan_parquet(folder / "tables" / "*.parquet").group_by("id", "answer").len()
        found = answers.sort("len", descending=True).group_by("id").first().collect().height
    elif drawn:
        codes, scores, gold = drawn
        votes = dm.vote(codes, scores, ids=ids)
        found = dm.calibrate(votes, votes.answer == gold, alpha=0.05).n
    else:
        source = dm.read_pools(folder / ("tables" if kind == "parquet" else "pools.jsonl"))
        found = dm.calibrate(dm.vote_pools(source, dm.FieldChoice(score="rm")), alpha=0.05).n
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert found == pools, found
    return {"cpu_us": seconds / pools * 1e6, "bytes": (peak - before) * 1024 / pools, "resident": peak * 1024}


def in_a_process(kind: str, folder: Path, pools: int) -> dict[str, Any]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    command = [sys.executable, __file__, "--measure", kind, "--folder", str(folder), "--largest", str(pools)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ, **threads})
    return json.loads(done.stdout)


def compare(folder: Path) -> dict[str, dict[str, float]]:
    """Medians of every kind, which take turns."""
    write_tables(folder / "tables", COMPARED)
    write_lines(folder / "pools.jsonl", COMPARED)
    rounds = [{kind: in_a_process(kind, folder, COMPARED) for kind in KINDS} for _ in range(ROUNDS)]
    names = ("cpu_us", "bytes")
    medians = {
        kind: {name: statistics.median(taken[kind][name] for taken in rounds) for name in names} for kind in KINDS
    }
    for kind in KINDS:
        times = [taken[kind]["cpu_us"] for taken in rounds]
        medians[kind] |= {"cpu_us_min": min(times), "cpu_us_max": max(times)}
    return medians


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", choices=KINDS)
    given = parser.parse_args()
    if given.measure is not None:
        print(json.dumps(measure(given.measure, given.folder, given.largest)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        compared = compare(folder)
        by_size: dict[str, dict[str, float]] = {}
        for pools in (size for size in (100_000, 1_000_000, 10_000_000) if size <= given.largest):
            place = folder / str(pools)
            write_tables(place / "tables", pools)
            by_size[str(pools)] = in_a_process("parquet", place, pools)
            shutil.rmtree(place)
    table, arrays, lines = (compared[kind] for kind in ("parquet", "arrays", "json lines"))
    smallest, largest = by_size["100000"], by_size[max(by_size, key=int)]
    many = max(map(int, by_size))
    print_report(
        "pools in Parquet, read in place",
        [
            at_least(15, "JSON lines / Parquet, CPU", lines["cpu_us"] / table["cpu_us"]),
            at_least(10, "JSON lines / Parquet, memory", lines["bytes"] / table["bytes"]),
            at_most(6, "Parquet / arrays, CPU", table["cpu_us"] / arrays["cpu_us"]),
            at_most(1.3, f"{many:,} / 100,000 pools, CPU per pool", largest["cpu_us"] / smallest["cpu_us"]),
            at_most(8, f"{many:,} pools, resident GiB", largest["resident"] / GIBIBYTE),
        ],
        packages=["demur", "numpy", "pyarrow", "polars"],
        setting={"paths": PATHS, "compared": COMPARED, "rounds": ROUNDS, "threads": 1},
        per_pool=compared,
        by_size=by_size,
    )


if __name__ == "__main__":
    main()
