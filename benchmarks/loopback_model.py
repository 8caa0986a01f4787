"""A model server on loopback that takes a fixed time to answer, with paths of so many tokens:

python loopback_model.py PORT_FILE MILLISECONDS TOKENS
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web


@contextmanager
def serving(milliseconds: int, tokens: int = 20) -> Iterator[str]:
    """The address of such a server in a process of its own, as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        server = subprocess.Popen([sys.executable, __file__, port_file, str(milliseconds), str(tokens)])
        try:
            while not port_file.exists() or not port_file.read_text():
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port_file.read_text()}/v1"
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    port_file, delay, tokens = Path(sys.argv[1]), float(sys.argv[2]) / 1000, int(sys.argv[3])
    logprobs = {"content": [{"token": "x", "logprob": -0.1, "bytes": None, "top_logprobs": []} for _ in range(tokens)]}
    steps = "Step by step, " + "which brings us further, " * ((tokens - 20) // 4)

    asked: Counter[int] = Counter()

    async def answer(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        asked.update(range(body.get("seed", 0), body.get("seed", 0) + (body.get("n") or 1)))
        await asyncio.sleep(delay)
        choices = [
            {
                "index": k, "finish_reason": "stop", "logprobs": logprobs if body.get("logprobs") else None,
                "message": {"role": "assistant", "content": f"{steps}it is \\boxed{{{k % 3}}}."},
            }
            for k in range(body.get("n") or 1)
        ]  # fmt: skip
        drawn = tokens * len(choices)
        usage = {"prompt_tokens": 20, "completion_tokens": drawn, "total_tokens": 20 + drawn}
        return web.json_response({
            "id": "x", "object": "chat.completion", "created": 1, "model": body.get("model", "m"), "choices": choices,
            "usage": usage,
        })  # fmt: skip

    async def how_often(_: web.Request) -> web.Response:
        """How often each seed was asked for."""
        return web.json_response(asked)

    async def verdict(request: web.Request) -> web.Response:
        """A judge's one token, with the likeliest twenty."""
        await request.read()
        await asyncio.sleep(delay)
        top = [
            {"token": token, "logprob": -0.5 - k, "bytes": None} for k, token in enumerate(["Y", "N", *"ABCDEFGHIJ"])
        ]
        content = [{"token": "Y", "logprob": -0.5, "bytes": None, "top_logprobs": top}]
        said = {"index": 0, "finish_reason": "length", "logprobs": {"content": content}, "message": {"content": "Y"}}
        return web.json_response({"id": "x", "object": "chat.completion", "choices": [said]})

    async def chat(request: web.Request) -> web.Response:
        return await (verdict if b'"top_logprobs": 20' in await request.read() else answer)(request)

    async def reward(request: web.Request) -> web.Response:
        """vLLM's /classify, one conversation at a time: this server shows no template."""
        await request.read()
        await asyncio.sleep(delay)
        return web.json_response({"object": "list", "data": [{"index": 0, "probs": [-2.5], "num_classes": 1}]})

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", chat)
        app.router.add_post("/classify", reward)
        app.router.add_get("/asked", how_often)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        port_file.write_text(str(runner.addresses[0][1]))
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
