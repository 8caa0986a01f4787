"""A service whose policy has a stopping rule: it draws by it, and decides on paths that it would have drawn."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from asked_over_http import logged_app
from demur import stopping
from demur.backends import OpenAI
from demur.backends.protocol import Settings
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.sources import read_pools
from demur.pipeline.waves import Waves
from demur.server.alarms.canary_questions import CanaryQuestions
from demur.store.service import ServiceStore
from serving import PROBLEMS, listening, made_app, service_of


@pytest.fixture
def stopped(upstream, tmp_path):
    """A policy of pools of four or eight paths."""
    rule = stopping.beta(0.95, wave=4)
    how = {"n_paths": 8, "score": None, "settings": Settings(logprobs=False), "stop": rule}
    pipeline = Pipeline(OpenAI(upstream.url, "adder"), **how)
    policy = pipeline.run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=0.3)
    upstream.requests.clear()
    return policy


def posted(address, route, body):
    request = Request(f"{address}{route}", json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urlopen(request) as reply:
            return reply.status, json.load(reply)
    except HTTPError as error:
        return error.code, json.load(error)


def asked(address, question):
    body = {"model": "sums", "messages": [{"role": "user", "content": question}]}
    return posted(address, "/v1/chat/completions", body)[1]["demur"]


@pytest.mark.parametrize("waves", [None, Waves(1, 1)], ids=str)
def test_questions_are_asked_by_the_rule_whatever_waves_the_service_has(upstream, stopped, waves):
    with listening(made_app(service_of(upstream.url, stopped, waves=waves))) as address:
        clear, scattered = (asked(address, f"What is {k} + 1?") for k in (14, 17))
    assert (clear["decision"], clear["answer"], clear["paths"]["drawn"]) == ("answered", "15", 4)
    assert (scattered["decision"], scattered["paths"]["drawn"]) == ("abstained", 8)
    assert "certain_early" not in clear or clear["certain_early"] is None


def test_paths_sampled_elsewhere_are_taken_where_the_rule_would_have_ended_them(upstream, stopped):
    def decide(answers):
        body = {"model": "sums", "question": "What is 90 + 1?", "paths": [{"answer": answer} for answer in answers]}
        return posted(address, "/v1/decide", body)

    with listening(made_app(service_of(upstream.url, stopped))) as address:
        assert decide(["91"] * 4)[0] == 200
        for answers in (["91"] * 8, ["91", "92", "91", "92"], ["91"] * 3):
            status, reply = decide(answers)
            assert (status, reply["error"]["code"]) == (400, "not_calibrated"), reply


def test_audits_that_the_rule_ended_early_are_exported_with_the_others(upstream, stopped, tmp_path):
    """Without them the contested questions would stand for all."""
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        app = logged_app(upstream.url, stopped, store, audit_share=1.0)
        with listening(app) as address:
            drawn = sorted(asked(address, f"What is {k} + 1?")["paths"]["drawn"] for k in range(10, 18))
            with urlopen(f"{address}/review/api/labelled?policy=1") as reply:
                lines = [json.loads(line) for line in reply.read().decode().splitlines()]
    assert {4, 8} <= set(drawn)
    assert sorted(len(line["paths"]) for line in lines if "paths" in line) == drawn


def test_questions_of_the_run_are_asked_again_whatever_their_size(stopped, tmp_path):
    assert len(CanaryQuestions.of(read_pools(tmp_path / "run.db"), stopped).pools) == 60
