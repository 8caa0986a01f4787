"""A real HTTP server on loopback that speaks the OpenAI API, and misbehaves when told to."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Behaviour = Callable[[int, dict[str, Any], web.Request], Any]


def choice(
    text: str, logprobs: list[float] | None = (-0.1, -0.2), *, chat: bool = True, **extra: Any
) -> dict[str, Any]:
    """One choice as servers send it."""
    content = None if logprobs is None else {"content": [{"token": "x", "logprob": value} for value in logprobs]}
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return {"index": 0, "finish_reason": "stop", "logprobs": content, **said, **extra}


def reply(*choices: dict[str, Any]) -> web.Response:
    return web.json_response({"choices": list(choices), "usage": {"completion_tokens": 3}})


def error(status: int, message: str = "no", **headers: str) -> web.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response({"error": {"message": message}}, status=status, headers=names)


def obliging(number: int, body: dict[str, Any], request: web.Request) -> web.Response:
    """Does all that is asked: n choices, each saying which seed made it."""
    chat = "messages" in body
    first = body.get("seed", 0)
    return reply(*(choice(f"The answer is {(first + k) % 7}.", chat=chat) for k in range(body.get("n", 1))))


@dataclass
class Loopback:
    """The server; `behave` may be replaced at any time."""

    behave: Behaviour = obliging
    delay: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        number = len(self.requests)
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            answer = self.behave(number, body, request)
            return await answer if asyncio.iscoroutine(answer) else answer
        finally:
            self.busy -= 1

    def start(self) -> Loopback:
        started = threading.Event()
        self._loop = asyncio.new_event_loop()

        async def serve() -> None:
            app = web.Application(client_max_size=2**28)
            app.router.add_route("*", "/{route:.*}", self._handle)
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
            self.port = self._runner.addresses[0][1]
            started.set()

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(serve())
            self._loop.run_forever()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert started.wait(300)
        return self

    def stop(self) -> None:
        """Go away; `start` comes back on the same port."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(300)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()

    async def _end(self) -> None:
        """Let go of all, also of what waits to answer those who went away."""
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def drop(request: web.Request) -> None:
    """Close the connection in the middle."""
    assert request.transport is not None
    request.transport.abort()


async def hang(seconds: float) -> web.Response:
    await asyncio.sleep(seconds)
    return reply(choice("late"))


async def cut_off(request: web.Request) -> web.StreamResponse:
    """Promise more bytes than are sent."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [{"mess')
    drop(request)
    return response


@dataclass
class Doled:
    """Answers so many requests; those that come beyond that wait until `answered` is raised, or for a minute.

    With it a test says how far a sampler is, however quick the machine: no moment has to be met.
    """

    answered: float
    behave: Behaviour = obliging

    async def __call__(self, number: int, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        await self.turn(number)
        answer = self.behave(number, body, request)
        return await answer if asyncio.iscoroutine(answer) else answer

    async def turn(self, number: int) -> None:
        await until(lambda: number < self.answered)


def when(ready: Callable[[], Any], behave: Behaviour = obliging) -> Behaviour:
    """Answers nobody until something is so, or a minute is over, and everybody from then on."""
    answers = threading.Event()

    async def answer(number: int, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        await until(lambda: answers.is_set() or ready())
        answers.set()
        return behave(number, body, request)

    return answer


async def until(what: Callable[[], Any], seconds: float = 300) -> None:
    """Wait for something to be so; what then is not so is for the test to find out."""
    for _ in range(round(seconds / 0.01)):
        if what():
            return
        await asyncio.sleep(0.01)


def sometimes(share: float, bad: Behaviour, seed: int = 0) -> Behaviour:
    """Misbehave on a share of the requests."""
    rng = random.Random(seed)
    return lambda n, body, request: (bad if rng.random() < share else obliging)(n, body, request)
