"""The service against proxies that vote: its-hub's, a bare one of forty lines, and (recorded, not run) optillm.

All ask the same loopback model for m paths in one request and give one answer; one driver sends the same requests to
each in turn, one at a time for the added latency and many at once for the throughput, in alternating rounds. Ratios are
taken round by round. The processor time of each server is told beside them: it moves least where a machine is shared.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from claims import at_least, at_most, print_report
from loopback_model import serving
from peers import PEERS, python_of

from demur.backends import OpenAI
from demur.backends.protocol import Settings
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem

PATHS, ALONE, TOGETHER, CONCURRENCY, ROUNDS = 16, 60, 300, 32, 12
HERE = Path(__file__).resolve().parent
OPTILLM = {"version": "0.4.0", "latency_ms": 36.0, "requests_per_second": 26.0}
"""A recorded run of its majority voting (k = 16, the same loopback model and driver); its environment has 7 GB."""


@dataclass(frozen=True)
class Server:
    """A server in a process of its own."""

    url: str
    pid: int


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def process(command: list[str], url: str, **environment: str) -> Iterator[Server]:
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
            yield Server(url, server.pid)
        finally:
            server.terminate()
            server.wait()


@contextmanager
def bare(upstream: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        server = subprocess.Popen([sys.executable, HERE / "bare_proxy.py", port_file, upstream, str(PATHS)])
        try:
            while not port_file.exists() or not port_file.read_text():
                time.sleep(0.05)
            yield Server(f"http://127.0.0.1:{port_file.read_text()}", server.pid)
        finally:
            server.terminate()
            server.wait()


@contextmanager
def its_hub(upstream: str) -> Iterator[Server]:
    python = python_of("its-iaas", "its-hub[iaas]==1.2.0")
    port = free_port()
    command = [str(python.parent / "its-iaas"), "--port", str(port), "--host", "127.0.0.1"]
    with process(command, f"http://127.0.0.1:{port}", OPENAI_API_KEY="x") as server:
        asyncio.run(_configure(server.url, upstream))
        yield server


async def _configure(url: str, upstream: str) -> None:
    told = {"provider": "openai", "endpoint": upstream, "api_key": "x", "model": "m", "alg": "self-consistency",
            "regex_patterns": [r"\\boxed\{([^}]+)\}"], "budget": PATHS}  # fmt: skip
    async with aiohttp.ClientSession() as session, session.post(f"{url}/configure", json=told) as response:
        if response.status != 200:
            raise RuntimeError(await response.text())


@contextmanager
def ours(upstream: str, policy: Path, *flags: str, log: bool, folder: Path) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "demur", "serve", "--policy", f"m={policy}", "--base-url", upstream, "--port",
               str(port), *(["--store", str(folder / "service.db")] if log else ["--no-log"]), *flags]  # fmt: skip
    with process(command, f"http://127.0.0.1:{port}") as server:
        yield server


def made_policy(upstream: str, folder: Path) -> Path:
    """A majority vote of m paths, calibrated on the same model."""
    problems = [Problem(f"q{k}", f"What is {k} + 1?", ("0",), extra={"task": "math"}) for k in range(100)]
    pipeline = Pipeline(OpenAI(upstream, "m"), n_paths=PATHS, score=None, settings=Settings(logprobs=False))
    pipeline.run(problems, folder / "run.db").calibrate(alpha=0.1).save(folder / "policy.json")
    return folder / "policy.json"


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask(session: aiohttp.ClientSession, url: str, number: int) -> float:
    """Seconds that one question takes; each is asked once, so that nothing is shared or remembered."""
    question = f"What is {number} + 1?"
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": question}], "budget": PATHS}
    body |= {"n": PATHS} if url.endswith("/v1") else {}
    started = time.perf_counter()
    async with session.post(f"{url.removesuffix('/v1')}/v1/chat/completions", json=body) as response:
        document = await response.json()
    assert response.status == 200, document
    assert document["choices"][0]["message"]["content"], document
    return time.perf_counter() - started


async def one_by_one(urls: dict[str, str], numbers: Iterator[int]) -> dict[str, float]:
    """Median milliseconds of a request to each, asked in turn, so that a busy moment of the machine meets all."""
    took: dict[str, list[float]] = defaultdict(list)
    async with aiohttp.ClientSession() as session:
        for _ in range(ALONE):
            for name, url in urls.items():
                took[name].append(await ask(session, url, next(numbers)))
    return {name: median(times) * 1000 for name, times in took.items()}


async def together(url: str, requests: int, numbers: Iterator[int]) -> float:
    """Requests per second, many at once."""
    gate = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def in_turn() -> None:
            async with gate:
                await ask(session, url, next(numbers))

        start = time.perf_counter()
        await asyncio.gather(*(in_turn() for _ in range(requests)))
        return requests / (time.perf_counter() - start)


def median_ratio(above: list[float], below: list[float]) -> float:
    """Of numbers that were measured in the same rounds."""
    return median(a / b for a, b in zip(above, below, strict=True))


def main() -> None:
    peers = "--without-peers" not in sys.argv
    added: dict[str, list[float]] = defaultdict(list)
    rate: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
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
        urls = {name: server.url for name, server in services.items()}
        numbers = itertools.count(1000)
        for url in urls.values():  # everybody warm
            asyncio.run(together(url, 100, numbers))
        for _ in range(ROUNDS):
            alone = asyncio.run(one_by_one({"model": model, **urls}, numbers))
            for name, server in services.items():
                added[name].append(alone[name] - alone["model"])
                before = cpu_seconds(server.pid)
                rate[name].append(asyncio.run(together(server.url, TOGETHER, numbers)))
                cpu[name].append((cpu_seconds(server.pid) - before) / TOGETHER * 1000)
    latency = {name: median_ratio(added[name], added["bare"]) for name in added}
    slower = {name: median_ratio(rate["bare"], rate[name]) for name in rate}
    work = {name: median_ratio(cpu[name], cpu["bare"]) for name in cpu}
    claims = [
        at_most(2.5, "added latency, log off / a bare proxy's", latency["demur"]),
        at_most(2.5, "a bare proxy's throughput / ours, log off", slower["demur"]),
        at_most(4, "added latency, log on / a bare proxy's", latency["demur, log on"]),
        at_most(4, "a bare proxy's throughput / ours, log on", slower["demur, log on"]),
        at_least(
            10, "optillm's recorded added latency / ours, log off", OPTILLM["latency_ms"] / median(added["demur"])
        ),
        at_least(
            10, "throughput, log off / optillm's recorded", median(rate["demur"]) / OPTILLM["requests_per_second"]
        ),
    ]
    if peers:
        claims += [
            at_least(4, "its-hub's added latency / ours, log off", median_ratio(added["its-hub"], added["demur"])),
            at_least(4, "throughput, log off / its-hub's", median_ratio(rate["demur"], rate["its-hub"])),
            at_least(
                1, "its-hub's added latency / ours, log on", median_ratio(added["its-hub"], added["demur, log on"])
            ),
            at_least(1, "throughput, log on / its-hub's", median_ratio(rate["demur, log on"], rate["its-hub"])),
        ]
    print_report(
        "service",
        claims,
        packages=["demur", "fastapi", "uvicorn", "aiohttp"],
        setting={"paths": PATHS, "alone": ALONE, "together": TOGETHER, "concurrency": CONCURRENCY, "rounds": ROUNDS},
        peers={"its-hub": "1.2.0", "optillm": OPTILLM},
        load=list(os.getloadavg()),
        processor_time_to_bare=work,
        processor_milliseconds=dict(cpu),
        added_milliseconds=dict(added),
        requests_per_second=dict(rate),
    )


if __name__ == "__main__":
    main()
