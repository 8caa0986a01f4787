"""What replies, metrics and log lines say of the time that a request took: all that its caller waited for."""

from __future__ import annotations

import time

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from asked_over_http import post
from demur.server.logs import RequestLines
from demur.store.service import ServiceStore
from guarded import CHAT, bearer, guarded_app, question
from serving import listening

SLOW = 0.3
"""Seconds that the store takes for the one call that is slow."""


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


def slowed(monkeypatch, family, name):
    real = getattr(family, name)

    def slowly(*given, **named):
        time.sleep(SLOW)
        return real(*given, **named)

    monkeypatch.setattr(family, name, slowly)


def total(text, name):
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return sum(sample.value for sample in families[name].samples if sample.name == f"{name}_sum")


@pytest.mark.parametrize("route", [CHAT, "/v1/decide"])
def test_the_commit_is_part_of_every_time_that_is_told(upstream, sums_policy, store, monkeypatch, caplog, route):
    body = question()
    if route != CHAT:
        paths = [{"answer": "5", "scores": {sums_policy.score: -0.1}}] * 5
        body = {"model": "sums", "question": "What is 4 + 1?", "paths": paths}
    app = guarded_app(upstream.url, sums_policy, store)
    app.state.service.observers = (*app.state.service.observers, RequestLines())
    with listening(app) as address:
        post(address, body, route)
        slowed(monkeypatch, store.decisions, "add")
        before = requests.get(f"{address}/metrics", timeout=300).text
        with caplog.at_level("INFO", "demur.server"):
            reply = post(address, body, route)
        after = requests.get(f"{address}/metrics", timeout=300).text
    assert float(reply.headers["x-demur-overhead-ms"]) >= 1000 * SLOW
    for name in ("demur_request_seconds", "demur_overhead_seconds"):
        assert total(after, name) - total(before, name) >= SLOW, name
    assert caplog.records[-1].facts["milliseconds"] >= 1000 * SLOW


@pytest.mark.parametrize(("family", "name"), [("spending", "spend"), ("repeats", "begin"), ("repeats", "finish")])
def test_waiting_for_a_budget_or_an_idempotency_key_is_overhead(
    upstream, sums_policy, store, monkeypatch, family, name
):
    secret = store.keys.create("k", ["ask"], 1, {"paths_per_day": 1000})[1]
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        slowed(monkeypatch, getattr(store, family), name)
        headers = {**bearer(secret), "Idempotency-Key": "once"}
        reply = requests.post(address + CHAT, json=question(), headers=headers, timeout=300)
    assert reply.status_code == 200
    assert float(reply.headers["x-demur-overhead-ms"]) >= 1000 * SLOW
