"""At start, what is there is compared with what was calibrated."""

from __future__ import annotations

import asyncio

import pytest

from demur.errors import LogprobsMissing, PipelineMismatch
from demur.server.live import check_live
from loopback import choice, error, reply
from serving import service_of


def test_a_model_that_is_there_gives_no_note(upstream, sums_policy):
    upstream.behave = lambda number, body, request: reply(choice("2"))
    assert asyncio.run(check_live(service_of(upstream.url, sums_policy).models)) == []
    assert (len(upstream.requests), upstream.requests[0]["max_completion_tokens"]) == (1, 1)


def test_a_server_that_does_not_know_the_model_is_a_mismatch(upstream, sums_policy):
    upstream.behave = lambda number, body, request: error(404, "The model `adder` does not exist.")
    with pytest.raises(PipelineMismatch, match=r"sums: sampling\.model is 'adder' in the policy; .*does not exist"):
        asyncio.run(check_live(service_of(upstream.url, sums_policy).models))


def test_a_score_of_log_probabilities_needs_them(upstream, sums_policy):
    upstream.behave = lambda number, body, request: reply(choice("2", None))
    with pytest.raises(LogprobsMissing, match="the score of sums is made of log-probabilities"):
        asyncio.run(check_live(service_of(upstream.url, sums_policy).models))


def test_a_model_that_is_not_there_yet_is_waited_for(sums_policy):
    [note] = asyncio.run(check_live(service_of("http://127.0.0.1:9/v1", sums_policy).models))
    assert note.startswith("sums: the endpoint http://127.0.0.1:9/v1 cannot be reached")
