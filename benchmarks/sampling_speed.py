"""Claim: sampling that survives anything costs little more than sampling at all.

The same loopback server, 100 ms per request, the same concurrency, one path per request on all sides (n = m apart):
a bare aiohttp loop, demur into a SQLite run, its-hub's self-consistency in memory, inspect-ai with epochs (durable).
Peers live in environments of their own; those that cannot be installed are left out, and said so.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claims import at_least, at_most, print_report
from loopback_model import serving
from peers import PEERS, python_of

from demur.backends import OpenAI
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem

QUESTIONS, PATHS, MILLISECONDS, CONCURRENCY, ROUNDS = 200, 16, 100, 64, 5
HERE = Path(__file__).resolve().parent
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(QUESTIONS)]


async def bare(url: str, n: int) -> None:
    """The floor: a loop that asks, parses and forgets."""
    import aiohttp

    gate = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(question: str) -> None:
            body = {"model": "m", "messages": [{"role": "user", "content": question}], "n": n, "logprobs": True}
            async with gate, session.post(f"{url}/chat/completions", json=body) as response:
                await response.json()

        await asyncio.gather(*(ask(p.question or "") for p in PROBLEMS for _ in range(PATHS // n)))


def ours(url: str, n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        backend = OpenAI(url, "m", concurrency=CONCURRENCY, largest_n=n)
        run = Pipeline(backend, n_paths=PATHS).run(PROBLEMS, Path(folder) / "run.db")
        assert run.progress.saved == QUESTIONS * PATHS, run.progress


def peer(name: str, requirement: list[str], url: str) -> float | None:
    """Seconds of a peer's own work, timed inside its process after its imports; None where it cannot be had."""
    try:
        python = python_of(name, *requirement)
    except subprocess.CalledProcessError:
        return None
    script = HERE / f"peer_{name}.py"
    arguments = [url, str(QUESTIONS), str(PATHS), str(CONCURRENCY)]
    offline = {"HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "x", "HOME": str(PEERS),
               "PATH": "/usr/bin:/bin", "OPENAI_BASE_URL": url}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, script, *arguments], capture_output=True, text=True, env=offline, cwd=folder)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    return float(json.loads(done.stdout.strip().splitlines()[-1])["seconds"])


def version_of(name: str, package: str) -> str:
    code = f"from importlib.metadata import version; print(version('{package}'))"
    return subprocess.run([PEERS / name / "bin" / "python", "-c", code], capture_output=True, text=True).stdout.strip()


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    with serving(MILLISECONDS) as url:
        rounds: dict[str, list[float]] = defaultdict(list)
        for _ in range(ROUNDS):
            rounds["bare"].append(seconds(lambda: asyncio.run(bare(url, 1))))
            rounds["demur"].append(seconds(lambda: ours(url, 1)))
            rounds["bare, n = m"].append(seconds(lambda: asyncio.run(bare(url, PATHS))))
            rounds["demur, n = m"].append(seconds(lambda: ours(url, PATHS)))
            its = peer("its", ["its-hub[lm]==1.2.0"], url)
            if its is not None:
                rounds["its"].append(its)
        inspect = peer("inspect", ["inspect-ai==0.3.285", "openai"], url)
    median = {name: statistics.median(found) for name, found in rounds.items() if found}
    claims = [at_most(1.3, "durable sampling / a bare aiohttp loop", median["demur"] / median["bare"])]
    if inspect is not None:
        claims.append(at_least(10, "inspect-ai with epochs / durable sampling", inspect / median["demur"]))
    if "its" in median:
        claims.append(at_least(1, "its-hub in memory / durable sampling", median["its"] / median["demur"]))
    print_report(
        "sampling",
        claims,
        packages=["demur", "aiohttp", "sqlalchemy"],
        peers={"its-hub": version_of("its", "its-hub"), "inspect-ai": version_of("inspect", "inspect-ai")},
        setting={"questions": QUESTIONS, "paths": PATHS, "milliseconds": MILLISECONDS, "concurrency": CONCURRENCY},
        wall_seconds={name: {"median": median[name], "rounds": found} for name, found in rounds.items() if found},
        inspect_seconds=inspect,
        ideal_seconds=QUESTIONS * PATHS * MILLISECONDS / 1000 / CONCURRENCY,
    )


if __name__ == "__main__":
    main()
