"""The short way to the chat route gives what the router gives."""

from __future__ import annotations

import pytest
import requests

from demur.server.api.direct import Direct
from serving import listening, made_app

ASKED = '"messages": [{"role": "user", "content": "What is 4 + 1?"}]'
BODIES = {
    "an answer": f'{{"model": "sums", {ASKED}}}',
    "no JSON": "{",
    "another model": f'{{"model": "x", {ASKED}}}',
    "tools": f'{{"model": "sums", "tools": [1], {ASKED}}}',
    "a wrong field": '{"model": "sums", "messages": 3}',
}
_OWN = {"x-demur-request-id", "x-request-id", "x-demur-overhead-ms", "content-length"}


@pytest.fixture
def routed(service):
    """The address of the same service without the short way."""
    app = made_app(service)
    app.user_middleware = [part for part in app.user_middleware if part.cls is not Direct]
    with listening(app) as url:
        yield url


def told(address, method, body):
    """Status, headers and body, but for what is the request's own."""
    sent = {"Content-Type": "application/json"}
    response = requests.request(method, f"{address}/v1/chat/completions", data=body, headers=sent, timeout=300)
    document = response.json()
    for own in ("id", "created"):
        document.pop(own, None)
    document.get("demur", {}).pop("request_id", None)
    kept = {name.lower(): value for name, value in response.headers.items() if name.lower() not in _OWN}
    return response.status_code, {name: value for name, value in kept.items() if name != "date"}, document


@pytest.mark.parametrize("kind", BODIES)
def test_what_is_posted_gets_the_same(address, routed, kind):
    assert told(address, "POST", BODIES[kind]) == told(routed, "POST", BODIES[kind])


def test_another_method_is_left_to_the_router(address, routed):
    assert told(address, "GET", "") == told(routed, "GET", "")
    assert told(address, "GET", "")[0] == 405
