"""A model server on loopback that takes a fixed time to answer: `python loopback_model.py PORT_FILE MILLISECONDS`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from aiohttp import web


def main() -> None:
    port_file, delay = Path(sys.argv[1]), float(sys.argv[2]) / 1000

    async def answer(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        await asyncio.sleep(delay)
        logprobs = {"content": [{"token": "x", "logprob": -0.1, "bytes": None, "top_logprobs": []} for _ in range(20)]}
        choices = [
            {
                "index": k, "finish_reason": "stop", "logprobs": logprobs,
                "message": {"role": "assistant", "content": f"Step by step, it is \\boxed{{{k % 3}}}."},
            }
            for k in range(body.get("n") or 1)
        ]  # fmt: skip
        usage = {"prompt_tokens": 20, "completion_tokens": 20 * len(choices), "total_tokens": 20 + 20 * len(choices)}
        return web.json_response({
            "id": "x", "object": "chat.completion", "created": 1, "model": body.get("model", "m"), "choices": choices,
            "usage": usage,
        })  # fmt: skip

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        port_file.write_text(str(runner.addresses[0][1]))
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
