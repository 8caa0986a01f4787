"""Whoever is refused leaves a trace: counts by cause, and log lines of which there are few."""

from __future__ import annotations

import json
import re

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from demur.errors import StoreError
from demur.server import refusals
from demur.server.api.metrics import Metrics
from demur.server.errors import ApiError
from demur.server.logs import RequestLines
from demur.server.refusals import FIRST, Refusals
from demur.store.service import ServiceStore
from guarded import CHAT, bearer, guarded_app, question
from patience import wait_until
from serving import listening


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def keys(store):
    """Ids and secrets of a key of each role."""
    made = {role: store.keys.create(role, [role], 1) for role in ("ask", "review", "admin")}
    return {role: (key.key, secret) for role, (key, secret) in made.items()}


@pytest.fixture
def app(upstream, sums_policy, store):
    made = guarded_app(upstream.url, sums_policy, store)
    made.state.service.observers = (*made.state.service.observers, RequestLines())
    return made


@pytest.fixture
def address(app, keys, caplog):
    with caplog.at_level("INFO", "demur.server"), listening(app) as url:
        yield url


def told(caplog):
    return [record.facts for record in caplog.records if record.msg == "refused"]


def counted(address, keys):
    scraped = requests.get(f"{address}/metrics", headers=bearer(keys["admin"][1]), timeout=300).text
    families = {family.name: family for family in text_string_to_metric_families(scraped)}
    return {
        (sample.labels["status"], sample.labels["cause"]): sample.value
        for sample in families["demur_refused"].samples
        if sample.name.endswith("_total")
    }


def test_wrong_keys_leave_few_lines_and_are_all_counted(address, keys, caplog):
    for k in range(300):
        reply = requests.post(address + CHAT, json=question(), headers=bearer(f"demur-wrong-{k}"), timeout=300)
        assert reply.status_code == 401
    lines = [{name: fact for name, fact in line.items() if name != "request"} for line in told(caplog)]
    known = {"status": 401, "cause": "invalid_api_key", "route": CHAT, "from": "127.0.0.1"}
    assert lines == [known] * FIRST
    assert counted(address, keys) == {("401", "invalid_api_key"): 300.0}
    assert "demur-wrong" not in caplog.text


def test_what_had_no_line_is_told_together_at_the_end(app, keys, caplog):
    with caplog.at_level("INFO", "demur.server"):
        with listening(app) as address:
            for _ in range(FIRST + 7):
                requests.get(f"{address}/v1/models", timeout=300)
        assert told(caplog)[FIRST:] == [{"cause": "missing_api_key", "more": 7, "seconds": told(caplog)[-1]["seconds"]}]


def test_failed_logins_leave_lines(address, keys, caplog):
    for k in range(14):
        requests.post(f"{address}/login", json={"key": f"demur-no-{k}"}, timeout=300)
    lines = [(line["status"], line["cause"], line["route"]) for line in told(caplog)]
    assert lines == [(401, "invalid_api_key", "/login")] * 10 + [(429, "too_many_logins", "/login")] * 4
    assert counted(address, keys) == {("401", "invalid_api_key"): 10.0, ("429", "too_many_logins"): 4.0}


def test_each_kind_of_refusal_has_a_line_with_the_id_of_its_key(address, app, store, keys, caplog):
    key, secret = store.keys.create("small", ["ask"], 1, {"paths_per_day": 5})
    none = store.keys.create("none", ["ask"], 1, {"paths_per_day": 1})
    wait_until(lambda: requests.get(f"{address}/v1/models", headers=bearer(none[1]), timeout=300).ok)
    caplog.clear()

    def ask(secret, text="What is 4 + 1?", **beside):
        return requests.post(address + CHAT, json=question(text, **beside), headers=bearer(secret), timeout=300)

    assert ask(secret).status_code == 200
    asks, reviews = keys["ask"], keys["review"]
    refused = (
        (ask(secret, "What is 6 + 1?"), 429, "budget_spent", key.key),
        (ask(none[1]), 403, "budget_too_small", none[0].key),
        (ask(reviews[1]), 403, "role_missing", reviews[0]),
        (ask(asks[1], n=2), 400, "not_calibrated", asks[0]),
        (ask(asks[1], model="nobody-knows"), 404, "model_not_found", asks[0]),
        (ask(asks[1], messages=1), 400, "invalid_value", asks[0]),
    )
    assert [reply.status_code for reply, *_ in refused] == [status for _, status, *_ in refused]
    assert [(line["status"], line["cause"], line["key"]) for line in told(caplog)] == [one[1:] for one in refused]
    requests.get(f"{address}/no/such/page-that-i-wrote", timeout=300)
    requests.get(address + CHAT, headers=bearer(asks[1]), timeout=300)
    assert [(line["status"], line["cause"], line["route"]) for line in told(caplog)[-2:]] == [
        (404, "not_found", ""),
        (405, "method_not_allowed", CHAT),
    ]
    assert not re.search("nobody-knows|page-that-i-wrote|" + secret, caplog.text + json.dumps(told(caplog)))
    (decided,) = (record.facts for record in caplog.records if record.msg == "decided")
    assert decided["key"] == key.key


def test_a_refusal_within_a_stream_is_told_too(address, app, store, keys, caplog, monkeypatch):
    def full(*_):
        raise StoreError("service.db: the disk is full")

    wait_until(lambda: requests.get(f"{address}/v1/models", headers=bearer(keys["ask"][1]), timeout=300).ok)
    monkeypatch.setattr(store.decisions, "add", full)
    monkeypatch.setattr(app.state.service.log, "_known_at", float("inf"))  # so that only the commit finds out
    monkeypatch.setattr("demur.server.api.chat._REFUSED_WITHIN", 0.0)
    reply = requests.post(address + CHAT, json=question(stream=True), headers=bearer(keys["ask"][1]), timeout=300)
    assert (reply.status_code, "store_unavailable" in reply.text) == (200, True)
    (line,) = told(caplog)
    assert (line["status"], line["cause"], line["key"]) == (503, "store_unavailable", keys["ask"][0])
    assert line["detail"] == "service.db: the disk is full"
    assert counted(address, keys) == {("503", "store_unavailable"): 1.0}


class Asked:
    """As much of a request as a line needs."""

    client, state = None, None


def test_a_refusal_is_found_in_the_lines_by_the_id_of_its_response(address, keys, caplog):
    reply = requests.get(f"{address}/v1/models", timeout=300)
    assert told(caplog)[-1]["request"] == reply.headers["x-request-id"]
    requests.get(f"{address}/v1/models", headers={"X-Request-Id": "from-a-gateway"}, timeout=300)
    assert "from-a-gateway" not in json.dumps(told(caplog))  # whoever calls may write there what they like


def test_after_a_minute_the_rest_is_one_line_and_lines_begin_anew(caplog):
    now = [0.0]
    seen = Refusals(Metrics(), clock=lambda: now[0])
    with caplog.at_level("INFO", "demur.server"):
        for k in range(FIRST + 5):
            now[0] = float(k)
            seen.saw(Asked, ApiError(429, "no", code="queue_full"), CHAT)
        seen.saw(Asked, ApiError(400, "no"), CHAT)  # another cause has lines of its own
        assert [line["cause"] for line in told(caplog)] == ["queue_full"] * FIRST + ["invalid_value"]
        now[0] = refusals._SECONDS
        seen.tell_rest()
        assert told(caplog)[-1] == {"cause": "queue_full", "more": 5, "seconds": 60}
        seen.saw(Asked, ApiError(429, "no", code="queue_full"), CHAT)
        assert told(caplog)[-1]["status"] == 429
        now[0] = 10 * refusals._SECONDS
        lines = len(told(caplog))
        seen.tell_rest()
        assert len(told(caplog)) == lines  # all of them had lines


@pytest.mark.parametrize(
    ("status", "level"), [(401, "WARNING"), (403, "WARNING"), (503, "WARNING"), (400, "INFO"), (429, "INFO")]
)
def test_who_may_not_and_what_fails_is_a_warning(caplog, status, level):
    with caplog.at_level("INFO", "demur.server"):
        Refusals(Metrics()).saw(Asked, ApiError(status, "no"), CHAT)
    assert [record.levelname for record in caplog.records] == [level]
