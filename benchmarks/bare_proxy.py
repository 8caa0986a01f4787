"""A proxy that asks for m paths and gives the most frequent boxed answer: `python bare_proxy.py PORT_FILE UPSTREAM M`.

The least that a voting service can do: it keeps nothing, checks nothing and promises nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from pathlib import Path

import aiohttp
from aiohttp import web

BOXED = re.compile(r"\\boxed\{([^}]+)\}")


async def main() -> None:
    port_file, upstream, paths = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def answer(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        asked = {"model": "m", "messages": body["messages"], "n": paths}
        async with session.post(f"{upstream}/chat/completions", json=asked) as response:
            document = await response.json()
        texts = [choice["message"]["content"] for choice in document["choices"]]
        votes = Counter(found.group(1) for text in texts if (found := BOXED.search(text)))
        message = {"role": "assistant", "content": votes.most_common(1)[0][0]}
        return web.json_response({**document, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    port_file.write_text(str(runner.addresses[0][1]))
    await asyncio.Event().wait()


asyncio.run(main())
