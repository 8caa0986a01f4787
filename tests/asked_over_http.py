"""Asking a service over HTTP, for tests, and a service with a log."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import requests

from demur.backends import OpenAI
from demur.pipeline.from_policy import pipeline_of_policy
from demur.server.app import make_app
from demur.server.log import DecisionLog
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings

CHAT = "/v1/chat/completions"
IGNORED = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "presence_penalty",
    "frequency_penalty", "logit_bias", "user", "metadata", "store", "service_tier", "reasoning_effort", "verbosity",
    "prediction", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "parallel_tool_calls",
)  # fmt: skip
"""Fields of the API that change nothing: paths are drawn as the policy was calibrated."""


def chat(text="What is 4 + 1?", model="sums", **beside):
    """The body of a request."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **beside}


def post(address, body, route=CHAT, **options):
    return requests.post(f"{address}{route}", json=body, timeout=300, **options)


def decided(address, text="What is 4 + 1?", **beside):
    """The object `demur` of a reply."""
    answer = post(address, chat(text, **beside))
    assert answer.status_code == 200, answer.text
    return answer.json()["demur"]


class Caller:
    """Asks at once, and goes away when it is told to, not when a time is up."""

    def __init__(self, address, body, **headers):
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
        self._connection.request("POST", CHAT, json.dumps(body), {"Content-Type": "application/json", **headers})

    def leave(self):
        self._connection.close()


def who_wait(service):
    """How many callers wait for pools that are being drawn."""
    return sum(pool.waiting for pool in list(service._pools._underway.values()))


def told(answer):
    """Status and error of a reply, which must have OpenAI's shape."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert "\n" not in error["message"]
    return answer.status_code, error


def logged_service(url, policy, store, *, backend=None, **settings):
    """A service that keeps its decisions in a store."""
    how = ServiceSettings(**settings)
    row = store.policies.register("sums", policy.document(), policy.fingerprint, 1)
    backend = backend or OpenAI(url, "adder")
    served = Served("sums", policy, pipeline_of_policy(policy, backend).answerer(policy), row.version, row.policy)
    log = DecisionLog(store, texts=how.texts)
    return Service(Models({"sums": served}), how, log=log, audit_secret=b"k")


def logged_app(url, policy, store, **settings):
    return make_app(logged_service(url, policy, store, **settings), store)
