"""Whatever a service says is JSON, and so is what it logs, also where its policy never answers."""

from __future__ import annotations

import logging

import pytest
import requests

from asked_over_http import chat, post
from demur.errors import InfeasibleWarning
from demur.files.strict_json import parse
from demur.server import logs
from demur.server.api.written import JsonReply
from serving import PROBLEMS, adding_pipeline, listening, made_app, service_of


@pytest.fixture
def never(upstream, tmp_path):
    """The address of a service whose only policy abstains always."""
    with pytest.warns(InfeasibleWarning):
        policy = adding_pipeline(upstream.url).run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=0.001)
    assert policy.point().never_answers
    with listening(made_app(service_of(upstream.url, policy))) as url:
        yield url


def test_every_reply_of_a_service_that_never_answers_is_json(never):
    """Of both routes, of a stream and of what describes the service."""
    paths = [{"text": "So \\boxed{5}", "scores": {"perplexity": 0.1}}] * 5
    pool = {"model": "sums", "question": "What is 4 + 1?", "paths": paths}
    told = [post(never, pool, "/v1/decide").text]
    told.append(post(never, chat()).text)
    events = post(never, chat(stream=True)).text.split("\n\n")
    told += [event.removeprefix("data: ") for event in events if event and "[DONE]" not in event]
    told += [requests.get(f"{never}{route}", timeout=300).text for route in ("/v1/models", "/readyz", "/openapi.json")]
    decisions = [parse(one, finite=True) for one in told]
    assert decisions[0]["decision"] == decisions[1]["demur"]["decision"] == "abstained"


def test_a_reply_with_a_number_that_json_does_not_have_has_null_there():
    assert JsonReply({"threshold": float("inf"), "p": [float("nan")]}).body == b'{"threshold":null,"p":[null]}'


def test_a_log_line_with_such_a_number_is_json():
    record = logging.LogRecord("demur.server", logging.INFO, "", 0, "decided", (), None)
    record.facts = {"threshold": float("inf")}
    line = parse(logs._Lines().format(record), finite=True)
    assert line["threshold"] is None
