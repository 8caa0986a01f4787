"""A service that is watched, for tests: every request is audited, and looks are taken when a test says so."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from aiohttp import web

from demur.backends import OpenAI
from demur.pipeline.from_policy import pipeline_of_policy
from demur.server.app import make_app
from demur.server.log import DecisionLog
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from loopback import choice
from service_rows import decision

DAY = 24 * 3_600_000
SELDOM = 3600.0
"""Seconds between looks that nobody asked for."""


def watched_app(url, policy, store, *, canaries=None, **settings):
    """An application whose alarms are looked for by `look`."""
    told = ServiceSettings(**{"audit_share": 1.0, "watch_seconds": SELDOM, **settings})
    row = store.policies.register("sums", policy.document(), policy.fingerprint, 1)
    answerer = pipeline_of_policy(policy, OpenAI(url, "adder")).answerer(policy)
    served = Served("sums", policy, answerer, row.version, row.policy)
    service = Service(Models({"sums": served}), told, log=DecisionLog(store, texts=told.texts), audit_secret=b"k")
    again = None if canaries is None else {served.full_name: canaries}
    return make_app(service, store, canaries=again)


def later(seconds=1000):
    """A time at which all that arrived by now has its turn."""
    return time.time_ns() // 1_000_000 + int(seconds * 1000)


def look(app, seconds=1000):
    app.state.alarms.look(later(seconds))


def monitors(app):
    """The monitors of the one policy that is served."""
    alarms = app.state.alarms
    return alarms.watched(alarms.kept()[0])


def ask(address, number, model="sums"):
    body = {"model": model, "messages": [{"role": "user", "content": f"What is {number} + 1?"}]}
    return requests.post(f"{address}/v1/chat/completions", json=body, timeout=300).json()["demur"]


def ask_all(address, numbers, model="sums"):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda number: ask(address, number, model), numbers))


def judge(store, told, verdict):
    """Say of each answered request what a verdict of its number says."""
    for one in told:
        if one["decision"] == "answered":
            store.feedback.give(one["request_id"], "ann", 1, verdict=verdict, source="review")


def audited(request, at, key=(0.5,), **facts):
    """An audited decision as the log has it."""
    known = {"audit": True, "vote_key": key, "drawn": 5, "n_paths": 5, "question_digest": f"d{request}"}
    known |= {"alpha": "0.1", "guarantee": "marginal"}
    return decision(request, at, **{**known, **facts})


def forgetful(number, body, request):
    """Another model under another name: it knows nothing any more."""
    seed = body.get("seed", 0)
    said = [choice(f"So \\boxed{{{900 + (7 * seed + j) % 11}}}", [-0.5]) for j in range(body.get("n", 1))]
    return web.json_response({"choices": said, "model": "adder-2", "system_fingerprint": "fp_2"})


def rounds(*apps, n, start=0):
    """So many times a canary may be asked, by these replicas at once; how many were each time."""

    async def ask_one(app, now):
        return await app.state.alarms.canaries.ask_next(app.state.alarms.kept()[0], now)

    async def work():
        try:
            times = [1_000_000_000_000 + at * DAY // 24 for at in range(start, start + n)]
            return [sum(await asyncio.gather(*(ask_one(app, now) for app in apps))) for now in times]
        finally:
            for app in apps:
                await app.state.alarms.kept()[0].answerer.close_async()

    return asyncio.run(work())
