"""`demur serve` as a process of its own, for tests that kill it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from processes import Process


@dataclass
class Serving:
    """A server that runs."""

    process: Process
    address: str
    errors: Path

    @property
    def lines(self) -> list[str]:
        """What it wrote to standard error."""
        return self.errors.read_text().splitlines()


@contextmanager
def serving(policy: Path, upstream: str, store: str, folder: Path, *options: str) -> Iterator[Serving]:
    """A server on a port of its own while the block lasts."""
    errors = folder / f"errors-{time.monotonic_ns()}.txt"
    told = ["--policy", f"sums={policy}", "--base-url", upstream, "--model", "adder", "--store", store, "--port", "0"]
    with errors.open("w") as written:
        command = [sys.executable, "-m", "demur", "serve", *told, "--json", *options]
        process = Process(command, stdout=subprocess.PIPE, stderr=written, text=True)
    try:
        line = process.stdout.readline()
        assert line, errors.read_text()
        yield Serving(process, json.loads(line)["address"].removesuffix("/v1"), errors)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until_it_serves(address: str, seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            requests.get(f"{address}/healthz", timeout=1)
            return
        except requests.RequestException:
            assert time.monotonic() < until
            time.sleep(0.05)
