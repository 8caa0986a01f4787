"""Claim: saving paths costs next to nothing, and a run is read for calibration in a moment.

10,000 pools of 16 paths of 2 KB, written one pool per transaction as sampling does, and read back.
"""

from __future__ import annotations

import random
import resource
import tempfile
import time
from pathlib import Path

from claims import at_most, print_report

from demur.descriptions import Description
from demur.pools.fields import FieldChoice, read_table
from demur.records import Path as ReasoningPath
from demur.records import Problem
from demur.store import PathScore, PlacedPath, Store

POOLS, PATHS, LETTERS = 10_000, 16, 2_000
STEMS = ("reason", "number", "equal", "there", "fore", "sum")
WORDS = [f"{stem}{ending}" for stem in STEMS for ending in ("s", "", "ed")]


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=LETTERS // 7))[:LETTERS]


def facts(rng: random.Random, seed: int) -> dict[str, object]:
    told = {"extraction": "boxed", "finish_reason": "stop", "n_tokens": 300, "logprob_std": 0.1, "latency": 0.1}
    return {**told, "logprob_mean": -rng.random(), "seed": seed}


def main() -> None:
    rng = random.Random(0)
    texts = [text(rng) for _ in range(500)]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "run.db", create=True) as store:
        run = store.open_run("run", Description(), PATHS)
        run.add_problems([Problem(f"q{k}", f"question {k}", ("1",), extra={"task": "math"}) for k in range(POOLS)])
        batches = [
            [
                PlacedPath(k, j, ReasoningPath(str(rng.randint(0, 3)), rng.choice(texts), extra=facts(rng, k)))
                for j in range(PATHS)
            ]
            for k in range(POOLS)
        ]
        start, wall = time.process_time(), time.perf_counter()
        for batch in batches:
            run.save(batch)
        write, write_wall = time.process_time() - start, time.perf_counter() - wall
        run.save_scores(
            "perplexity", {}, [PathScore(p.number, p.place, p.path.extra["logprob_mean"]) for b in batches for p in b]
        )
        del batches
        start = time.process_time()
        pools = run.pools(facts=False)
        table = read_table(pools, FieldChoice(score="perplexity"))
        read = time.process_time() - start
        start = time.process_time()
        run.pools(with_texts=True)
        read_texts = time.process_time() - start
        megabytes = (Path(folder) / "run.db").stat().st_size / 1e6
    assert len(table.answers) == POOLS
    print_report(
        "store",
        [
            at_most(2.0, "CPU milliseconds to save a pool of 16 paths of 2 KB", 1e3 * write / POOLS),
            at_most(1.0, "CPU seconds to read answers and scores of 100,000 paths", read * 100_000 / (POOLS * PATHS)),
        ],
        packages=["demur", "sqlalchemy"],
        write={"cpu_seconds": write, "wall_seconds": write_wall},
        read={"cpu_seconds": read, "with_texts": read_texts},
        file_megabytes=megabytes,
        text_megabytes=POOLS * PATHS * LETTERS / 1e6,
        peak_megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main()
