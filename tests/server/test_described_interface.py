"""The description of the interface holds for whatever a generator makes of it, and Prometheus reads the metrics."""

from __future__ import annotations

import math
import re

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from prometheus_client.parser import text_string_to_metric_families
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from asked_over_http import chat, logged_app, post
from demur.store.service import ServiceStore
from loopback import choice, reply
from serving import adder, listening

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
FEW = settings(max_examples=25, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
PATIENCE = 120
"""Seconds that a reply may take; the generator's own ten are too few on a busy machine."""
WITH_BODIES = ["/v1/chat/completions", "/v1/decide", "/v1/feedback"]
OPERATIONS = [*WITH_BODIES, "/v1/models", "/v1/models/{name}", "/healthz"]


def anything(number, body, request):
    """Adds where it is asked to, and else says nothing that could be an answer."""
    if "messages" not in body:
        return reply()
    if re.search(r"What is \d+", body["messages"][-1]["content"]):
        return adder(number, body, request)
    return reply(*(choice("Who knows?", [-0.1]) for _ in range(body.get("n", 1))))


@pytest.fixture(scope="module")
def described(sums_policy, tmp_path_factory):
    """The address of a service, and a request that it decided."""
    from loopback import Loopback

    upstream = Loopback(behave=anything).start()
    store = ServiceStore(tmp_path_factory.mktemp("described") / "service.db", create=True)
    app = logged_app(upstream.url, sums_policy, store, seconds=5)
    app.state.access.ring.fresh = math.inf  # on a busy machine keys may not be read in time, which gets 503
    with store, listening(app) as address:
        yield address, post(address, chat()).json()["demur"]["request_id"]
    upstream.stop()


def sensible(body, request_id):
    """A body with names that are there, so that not all of them fail on those."""
    if not isinstance(body, dict):
        return body
    known = {"model": "sums", "request_id": request_id}
    filled = {name: known.get(name, value) for name, value in body.items()}
    if isinstance(filled.get("messages"), list) and filled["messages"] == body["messages"]:
        filled["messages"] = [{"role": "user", "content": "What is 4 + 1?"}]
    return filled


@pytest.mark.parametrize(
    ("route", "mode"),
    [(route, GenerationMode.POSITIVE) for route in OPERATIONS]
    + [(route, GenerationMode.NEGATIVE) for route in WITH_BODIES],
)
def test_whatever_is_sent_the_reply_is_as_described(described, route, mode):
    address, request_id = described
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operation = next(one.ok() for one in schema.get_all_operations() if one.ok().path == route)
    statuses = set()

    @FEW
    @given(case=operation.as_strategy(generation_mode=mode))
    def replies_as_described(case):
        if mode is GenerationMode.POSITIVE:
            case.body = sensible(case.body, request_id)
        response = case.call(timeout=PATIENCE)
        statuses.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    replies_as_described()
    assert max(statuses) < 500


def test_all_that_a_client_may_send_is_described(described):
    address, _ = described
    paths = requests.get(f"{address}/openapi.json", timeout=300).json()["paths"]
    for route in WITH_BODIES:
        operation = paths[route]["post"]
        assert operation["requestBody"]["required"]
        assert {"200", "400", "401", "404", "413", "415", "429", "503"} <= set(operation["responses"])
        given_ = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert given_["required"]


def test_prometheus_reads_the_metrics_and_no_client_can_add_labels(described):
    address, _ = described
    before = read(address)
    for k in range(30):
        post(address, chat(model=f'x{k}"}}\n{{evil="1'))
        post(address, chat(model=f"sums@0.{k:03}1"))
        requests.get(f"{address}/no/such/{k}", timeout=300)
        post(address, chat(f"What is {k} + 1?", **{f"field_{k}": 1}), headers={"X-Request-Id": str(k)})
    after = read(address)
    assert after.keys() - before.keys() <= {
        ("demur_refused_total", (("cause", cause), ("status", status)))
        for status, cause in (("400", "not_calibrated"), ("404", "model_not_found"), ("404", "not_found"))
    } | {key for key in after if key[0].startswith(("demur_requests", "demur_audits"))}
    assert not [key for key in after if "evil" in str(key)]
    answered = ("demur_requests_total", (("decision", "answered"), ("policy", "sums:v1")))
    assert after[answered] >= before[answered] + 15


def read(address):
    answer = requests.get(f"{address}/metrics", timeout=300)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.text))
    assert {"demur_requests", "demur_paths", "demur_request_seconds"} <= {family.name for family in families}
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
