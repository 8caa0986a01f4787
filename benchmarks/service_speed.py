"""The service against proxies that vote: its-hub's, a bare one of forty lines, and (recorded, not run) optillm.

All ask the same loopback model for m paths in one request and give one answer; one driver sends the same requests to
each in turn, one at a time for the added latency and many at once for the throughput, in alternating rounds.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from claims import at_least, at_most, print_report
from loopback_model import serving

from demur.backends import OpenAI
from demur.backends.protocol import Settings
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem

PATHS, ALONE, TOGETHER, CONCURRENCY, ROUNDS = 16, 150, 600, 32, 5
HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".bench-peers"
OPTILLM = {"version": "0.4.0", "latency_ms": 36.0, "requests_per_second": 26.0}
"""A recorded run of its majority voting (k = 16, the same loopback model and driver); its environment has 7 GB."""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def process(command: list[str], url: str, **environment: str) -> Iterator[str]:
    """A server in a process of its own, up and answering on `url`."""
    offline = {"HOME": str(PEERS), "PATH": os.environ["PATH"], "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environment}
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(command, env=offline, stdout=said, stderr=said)
        try:
            until = time.monotonic() + 120
            while True:
                try:
                    socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 1).close()
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() > until:
                        said.seek(0)
                        raise RuntimeError(said.read().decode()[-2000:]) from None
                    time.sleep(0.1)
            yield url
        finally:
            server.terminate()
            server.wait()


@contextmanager
def bare(upstream: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        server = subprocess.Popen([sys.executable, HERE / "bare_proxy.py", port_file, upstream, str(PATHS)])
        try:
            while not port_file.exists() or not port_file.read_text():
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port_file.read_text()}"
        finally:
            server.terminate()
            server.wait()


@contextmanager
def its_hub(upstream: str) -> Iterator[str]:
    python = PEERS / "its-iaas" / "bin" / "python"
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "its-hub[iaas]==1.2.0"], check=True)
    port = free_port()
    command = [str(python.parent / "its-iaas"), "--port", str(port), "--host", "127.0.0.1"]
    with process(command, f"http://127.0.0.1:{port}", OPENAI_API_KEY="x") as url:
        asyncio.run(_configure(url, upstream))
        yield url


async def _configure(url: str, upstream: str) -> None:
    told = {"provider": "openai", "endpoint": upstream, "api_key": "x", "model": "m", "alg": "self-consistency",
            "regex_patterns": [r"\\boxed\{([^}]+)\}"], "budget": PATHS}  # fmt: skip
    async with aiohttp.ClientSession() as session, session.post(f"{url}/configure", json=told) as response:
        if response.status != 200:
            raise RuntimeError(await response.text())


@contextmanager
def ours(upstream: str, policy: Path, *, log: bool, folder: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "demur", "serve", "--policy", f"m={policy}", "--base-url", upstream, "--port",
               str(port), *(["--store", str(folder / "service.db")] if log else ["--no-log"])]  # fmt: skip
    with process(command, f"http://127.0.0.1:{port}") as url:
        yield url


def made_policy(upstream: str, folder: Path) -> Path:
    """A majority vote of m paths, calibrated on the same model."""
    problems = [Problem(f"q{k}", f"What is {k} + 1?", ("0",), extra={"task": "math"}) for k in range(100)]
    pipeline = Pipeline(OpenAI(upstream, "m"), n_paths=PATHS, score=None, settings=Settings(logprobs=False))
    pipeline.run(problems, folder / "run.db").calibrate(alpha=0.1).save(folder / "policy.json")
    return folder / "policy.json"


async def drive(url: str, requests: int, at_once: int, first: int) -> tuple[float, float]:
    """Median milliseconds of a request, and requests per second."""
    took: list[float] = []
    gate = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(number: int) -> None:
            question = f"What is {number} + 1?"
            body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": question}], "budget": PATHS}
            async with gate:
                started = time.perf_counter()
                async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                    document = await response.json()
                took.append(time.perf_counter() - started)
                assert response.status == 200, document
                assert document["choices"][0]["message"]["content"], document

        start = time.perf_counter()
        await asyncio.gather(*(ask(first + k) for k in range(requests)))
        return statistics.median(took) * 1000, requests / (time.perf_counter() - start)


async def upstream_alone(url: str) -> float:
    """Median milliseconds of the model itself."""
    took = []
    async with aiohttp.ClientSession() as session:
        for _ in range(ALONE):
            started = time.perf_counter()
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "n": PATHS}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                await response.read()
            took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000


def main() -> None:
    peers = "--without-peers" not in sys.argv
    with ExitStack() as open_, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = open_.enter_context(serving(0))
        policy = made_policy(model, folder)
        services = {
            "bare": open_.enter_context(bare(model)),
            "demur": open_.enter_context(ours(model, policy, log=False, folder=folder)),
            "demur, log on": open_.enter_context(ours(model, policy, log=True, folder=folder)),
        }
        if peers:
            services["its-hub"] = open_.enter_context(its_hub(model))
        latency: dict[str, list[float]] = defaultdict(list)
        rate: dict[str, list[float]] = defaultdict(list)
        first = 1000
        for url in services.values():  # everybody warm
            asyncio.run(drive(url, 64, 8, first := first + 64))
        for _ in range(ROUNDS):
            itself = asyncio.run(upstream_alone(model))
            for name, url in services.items():
                took, _ = asyncio.run(drive(url, ALONE, 1, first := first + ALONE))
                latency[name].append(took - itself)
                rate[name].append(asyncio.run(drive(url, TOGETHER, CONCURRENCY, first := first + TOGETHER))[1])
    added = {name: statistics.median(found) for name, found in latency.items()}
    per_second = {name: statistics.median(found) for name, found in rate.items()}
    claims = [
        at_most(2.5, "added latency, log off / a bare proxy", added["demur"] / added["bare"]),
        at_most(2.5, "a bare proxy's throughput / ours, log off", per_second["bare"] / per_second["demur"]),
        at_most(4, "added latency, log on / a bare proxy", added["demur, log on"] / added["bare"]),
        at_most(4, "a bare proxy's throughput / ours, log on", per_second["bare"] / per_second["demur, log on"]),
        at_least(10, "optillm's recorded added latency / ours, log off", OPTILLM["latency_ms"] / added["demur"]),
        at_least(10, "throughput, log off / optillm's recorded", per_second["demur"] / OPTILLM["requests_per_second"]),
    ]
    if peers:
        claims += [
            at_least(4, "its-hub's added latency / ours, log off", added["its-hub"] / added["demur"]),
            at_least(4, "throughput, log off / its-hub's", per_second["demur"] / per_second["its-hub"]),
            at_least(1, "its-hub's added latency / ours, log on", added["its-hub"] / added["demur, log on"]),
            at_least(1, "throughput, log on / its-hub's", per_second["demur, log on"] / per_second["its-hub"]),
        ]
    print_report(
        "service",
        claims,
        packages=["demur", "fastapi", "uvicorn", "aiohttp"],
        setting={"paths": PATHS, "alone": ALONE, "together": TOGETHER, "concurrency": CONCURRENCY, "rounds": ROUNDS},
        peers={"its-hub": "1.2.0", "optillm": OPTILLM},
        added_milliseconds=dict(latency),
        requests_per_second=dict(rate),
    )


if __name__ == "__main__":
    main()
