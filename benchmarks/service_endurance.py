"""Ten thousand requests to a service whose model fails three times in ten: what it keeps of memory and open files.

A third of the requests is streamed, a tenth names a model that is not there; the model's server answers 500, drops the
connection or sends what is no JSON, a tenth of the times each. Memory and open files are read after a first thousand
requests and after ten thousand more.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from claims import at_most, print_report
from service_speed import PATHS, made_policy, ours

FIRST, REQUESTS, AT_ONCE = 1_000, 10_000, 64
FAULTS = {0: "500", 1: "dropped", 2: "no JSON"}
"""By the last digit of a request's number: three in ten fail."""


@contextmanager
def failing_model() -> Iterator[tuple[str, threading.Event]]:
    """The address of a model's server in a thread of its own, which fails once its event is set."""
    numbers, failing, ready, address = itertools.count(), threading.Event(), threading.Event(), list[str]()
    loop = asyncio.new_event_loop()

    async def answer(request: web.Request) -> web.Response:
        body, number = json.loads(await request.read()), next(numbers)
        fault = FAULTS.get(number % 10) if failing.is_set() else None
        if fault == "500":
            return web.json_response({"error": {"message": "out of order"}}, status=500)
        if fault == "dropped" and request.transport is not None:
            request.transport.close()
        choices = [
            {"index": k, "finish_reason": "stop", "message": {"role": "assistant", "content": f"\\boxed{{{k % 3}}}"}}
            for k in range(body.get("n") or 1)
        ]
        text = json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": choices})
        return web.Response(text=text[:40] if fault == "no JSON" else text, content_type="application/json")

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        address.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        ready.set()

    thread = threading.Thread(target=lambda: (loop.create_task(serve()), loop.run_forever()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield address[0], failing
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def drive(url: str, numbers: range) -> Counter[str]:
    """How many requests ended how."""
    gate, ended = asyncio.Semaphore(AT_ONCE), Counter[str]()

    async def ask(session: aiohttp.ClientSession, number: int) -> None:
        body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": f"What is {number} + 1?"}]}
        body |= {"stream": True} if number % 3 == 0 else {}
        body |= {"model": f"unknown-{number}"} if number % 10 == 9 else {}
        async with gate, session.post(f"{url}/v1/chat/completions", json=body) as response:
            await response.read()
            ended[str(response.status)] += 1

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(ask(session, number) for number in numbers))
    return ended


def used(pid: int) -> tuple[float, int]:
    """Resident MiB and open files of a process."""
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(resident.split()[1]) / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def main() -> None:
    with failing_model() as (model, failing), tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        policy = made_policy(model, folder)
        with ours(model, policy, "--fan-out", str(AT_ONCE * PATHS), log=True, folder=folder) as server:
            failing.set()
            asyncio.run(drive(server.url, range(FIRST)))
            memory, files = used(server.pid)
            ended = asyncio.run(drive(server.url, range(FIRST, FIRST + REQUESTS)))
            later_memory, later_files = used(server.pid)
    print_report(
        "endurance of the service",
        [
            at_most(1.15, "resident memory after / before ten thousand requests", later_memory / memory),
            at_most(8, "open files more than before", later_files - files),
            at_most(0, "requests that ended neither decided nor refused", REQUESTS - ended["200"] - ended["404"]),
        ],
        packages=["demur", "fastapi", "uvicorn", "aiohttp"],
        setting={"paths": PATHS, "requests": REQUESTS, "at once": AT_ONCE, "faults": FAULTS},
        ended=dict(ended),
        mebibytes=[memory, later_memory],
        open_files=[files, later_files],
    )


if __name__ == "__main__":
    main()
