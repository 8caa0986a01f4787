"""Nobody waits while a stranger's long text is read or compared."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from asked_over_http import CHAT, chat, decided, logged_app, post
from demur.pipeline.answerer import Answerer
from demur.pipeline.fitted import Fitted
from demur.pipeline.spoken_labels import SpokenLabels
from demur.store.service import ServiceStore
from patience import wait_until
from serving import adder, listening

LONG = "word " * 1000
DECIDE = {"model": "sums", "question": "What is 4 + 1?"}
SCORES = {"perplexity": 0.5}


@pytest.fixture
def address(upstream, sums_policy, tmp_path):
    with (
        ServiceStore(tmp_path / "log.db", create=True) as store,
        listening(logged_app(upstream.url, sums_policy, store)) as url,
    ):
        yield url


@pytest.fixture
def slow(monkeypatch):
    """Has a method wait until it is let go on; gives what says that it waits, and what lets it go on."""
    reached, go_on = threading.Event(), threading.Event()

    def made(kind, name):
        usual = getattr(kind, name)

        def waiting(*given, **named):
            reached.set()
            assert go_on.wait(300)
            return usual(*given, **named)

        monkeypatch.setattr(kind, name, waiting)
        return reached, go_on

    yield made
    go_on.set()


def long_texts(address, upstream):
    path = {"text": f"{LONG} \\boxed{{5}}", "scores": SCORES}
    return "/v1/decide", {**DECIDE, "paths": [path] * 5}


def long_answers(address, upstream):
    return "/v1/decide", {**DECIDE, "paths": [{"answer": LONG, "scores": SCORES}] * 5}


def long_paths(address, upstream):
    upstream.behave = lambda number, body, request: _longer(adder(number, body, request))
    return CHAT, chat()


def a_long_true_answer(address, upstream):
    return "/v1/feedback", {"request_id": decided(address)["request_id"], "answer": LONG}


def _longer(answer):
    answer.text = answer.text.replace("So ", LONG)
    return answer


@pytest.mark.parametrize(
    ("asked", "kind", "method"),
    [
        (long_texts, Fitted, "read"),
        (long_answers, Answerer, "decide"),
        (long_paths, Fitted, "read"),
        (a_long_true_answer, SpokenLabels, "agrees"),
    ],
)
def test_others_are_answered_while_a_long_text_is_read(address, upstream, slow, asked, kind, method):
    route, body = asked(address, upstream)
    reached, go_on = slow(kind, method)
    with ThreadPoolExecutor(1) as asking:
        reply = asking.submit(post, address, body, route)
        wait_until(lambda: reached.is_set() or reply.done())
        assert reached.is_set(), reply.result().text
        try:
            assert requests.get(f"{address}/healthz", timeout=30).status_code == 200
            assert not reply.done()
        finally:
            go_on.set()
        assert reply.result(300).status_code == 200, reply.result().text
