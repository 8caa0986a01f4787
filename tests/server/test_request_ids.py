"""Every response has an `x-request-id`: the caller's own if it is plain, else ours."""

from __future__ import annotations

import pytest
import requests

from asked_over_http import CHAT, chat, post

PLAIN = ["a", "7f3c", "req-1.2_3:4", "A" * 128, "0af7651916cd43dd8448eb211c80319c"]
NOT_PLAIN = ["", "A" * 129, "two words", "a\tb", "<b>", "é", '"', "a;b", "-a", "a,b", "\\", "a/b"]


def test_without_one_of_the_callers_it_is_the_id_of_the_decision(address):
    reply = post(address, chat())
    assert reply.headers["x-request-id"] == reply.headers["x-demur-request-id"] == reply.json()["demur"]["request_id"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("brought", PLAIN)
def test_a_plain_one_comes_back_next_to_our_own(address, brought, stream):
    reply = post(address, chat(stream=stream), headers={"X-Request-Id": brought})
    assert reply.headers["x-request-id"] == brought
    assert reply.headers["x-demur-request-id"].startswith("req_")


@pytest.mark.parametrize("brought", NOT_PLAIN)
def test_another_does_not_come_back(address, brought):
    reply = post(address, chat(), headers={"X-Request-Id": brought.encode()})
    assert reply.headers["x-request-id"] == reply.headers["x-demur-request-id"]


@pytest.mark.parametrize(
    ("method", "route"), [("GET", "/healthz"), ("GET", "/no/such"), ("GET", CHAT), ("POST", CHAT), ("GET", "/login")]
)
def test_every_response_has_one_of_its_own(address, method, route):
    ids = [requests.request(method, address + route, timeout=300).headers["x-request-id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert all(one.startswith("req_") for one in ids)


def test_a_failure_that_nobody_expected_has_one_too(service, address, monkeypatch):
    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr(type(service.models), "find", broken)
    reply = post(address, chat())
    assert (reply.status_code, reply.headers["x-request-id"][:4]) == (500, "req_")
