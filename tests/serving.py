"""A service for tests: a policy calibrated on the loopback model, served by uvicorn on a port of its own."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from demur.backends import OpenAI
from demur.pipeline.from_policy import pipeline_of_policy
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from demur.server.app import make_app
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from loopback import choice, error, reply

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(60)]


def adder(number, body, request):
    """Right on even numbers; scattered on odd ones."""
    if "messages" not in body:  # another route, such as the list of models
        return error(404)
    found = re.search(r"What is (\d+)", body["messages"][-1]["content"])
    if found is None:  # no sum, such as the one token that is asked for at start
        return reply(choice("2"))
    k = int(found.group(1))
    seed = body.get("seed", 0)
    said = [k + 1 if k % 2 == 0 else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"So \\boxed{{{answer}}}", [-0.1 - (seed + j) % 7 / 10]) for j, answer in enumerate(said)))


def adding_pipeline(url: str, n_paths: int = 5) -> Pipeline:
    return Pipeline(OpenAI(url, "adder"), n_paths=n_paths)


def service_of(url: str, policy, *, name: str = "sums", aliases=None, log=None, **settings) -> Service:
    served = Served(name, policy, pipeline_of_policy(policy, OpenAI(url, "adder")).answerer(policy))
    return Service(Models({name: served}, aliases=aliases or {}), ServiceSettings(**settings), log=log)


@contextmanager
def listening(app) -> Iterator[str]:
    """The address of an application while the block lasts."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    assert server.started
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(300)


def made_app(service: Service):
    return make_app(service)
