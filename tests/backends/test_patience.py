"""Servers that are busy, away or slow for long: what is waited for, what is not, and what is said."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from demur.backends import OpenAI, Prompt, Settings, Wanted
from demur.backends.endpoint import Endpoint
from demur.errors import BackendError, EndpointSilent
from loopback import error, obliging

CHAT = Prompt("q", messages=({"role": "user", "content": "?"},))


def sample(backend, n=2):
    async def work():
        try:
            wanted = [Wanted(k, k) for k in range(n)]
            return [path async for portion in backend.sample(CHAT, Settings(), wanted) for path in portion]
        finally:
            await backend.close()

    return asyncio.run(work())


@pytest.mark.parametrize("status", [429, 503, 529, 500])
@pytest.mark.parametrize("patience", [0.0, 300.0])
def test_a_wait_beyond_the_patience_is_said_at_once_with_the_way_out(server, status, patience):
    server.behave = lambda *_: error(status, "come later", Retry_After="3600")
    with pytest.raises(EndpointSilent, match=r"come later; it asks for a wait of 3600 s.* patience=3660"):
        sample(OpenAI(server.url, "m", patience=patience))
    assert len(server.requests) == 1


def test_a_wait_beyond_the_patience_holds_nobody_off_afterwards(server):
    server.behave = lambda n, body, r: error(429, Retry_After="3600") if n == 0 else obliging(n, body, r)
    backend = OpenAI(server.url, "m", patience=100.0)
    with pytest.raises(EndpointSilent):
        sample(backend)
    assert len(sample(backend)) == 2


@pytest.mark.parametrize("said", ["1e309", "nan", "-5", "never", "Thu, 99 Foo 2099", "Sun, 06 Nov 1994 08:49:37 GMT"])
def test_a_wait_that_cannot_be_read_or_is_over_is_none(server, said):
    server.behave = lambda n, body, r: error(429, Retry_After=said) if n < 2 else obliging(n, body, r)
    assert len(sample(OpenAI(server.url, "m", patience=30.0))) == 2


def test_waits_within_the_patience_are_kept_and_any_answer_begins_it_anew(server):
    """Every other request is put off; in all that takes longer than the patience."""
    server.behave = lambda n, body, r: error(429, Retry_After="0.4") if n % 2 == 0 else obliging(n, body, r)
    started = time.monotonic()
    assert len(sample(OpenAI(server.url, "m", patience=4.0, largest_n=1, concurrency=1), n=11)) == 11
    assert time.monotonic() - started > 4.0


@pytest.mark.parametrize(
    "bad",
    [lambda: error(429, "slow down"), lambda: error(429, "slow down", Retry_After="0.1"), lambda: error(503, "busy"),
     lambda: error(502, "no upstream"), lambda: error(504, "no upstream"), lambda: error(529, "overloaded")],
    ids=["429", "429 with a wait", "503", "502", "504", "529"],
)  # fmt: skip
def test_a_server_that_answers_nobody_for_the_patience_ends_the_work_with_its_own_words(server, bad):
    server.behave = lambda *_: bad()
    with pytest.raises(EndpointSilent, match=r"answered \d+: .*nothing came\); check that it runs, or wait longer"):
        sample(OpenAI(server.url, "m", patience=0.8))


def test_silence_is_counted_for_the_server_not_for_each_request(server):
    """Once nothing came for the patience, the next request does not wait for it again."""
    server.behave = lambda *_: error(503, "gone")
    backend = OpenAI(server.url, "m", patience=1.0)
    with pytest.raises(EndpointSilent):
        sample(backend)
    before = len(server.requests)
    with pytest.raises(EndpointSilent):
        sample(backend)
    assert len(server.requests) == before + 1
    server.behave = obliging
    assert len(sample(backend)) == 2


def test_a_question_that_breaks_the_server_alone_is_its_own_failure_and_the_next_ends_the_run(server):
    server.behave = lambda n, body, r: obliging(n, body, r) if n == 0 else error(500, "cannot do this one")
    backend = OpenAI(server.url, "m", patience=0.5)
    assert len(sample(backend)) == 2
    with pytest.raises(BackendError, match="gave up after") as caught:
        sample(backend)
    assert not isinstance(caught.value, EndpointSilent)
    asked = len(server.requests)
    with pytest.raises(EndpointSilent, match="answered 500"):
        sample(backend)
    assert len(server.requests) == asked + 1  # nothing useful came in between: no second patience


@pytest.mark.parametrize("broken", ["error", "no JSON", "no choices", "cut"])
def test_a_server_that_answers_nobody_usefully_is_given_up_on_after_one_patience(server, broken):
    def behave(number, body, request):
        if number == 0:
            return obliging(number, body, request)
        if broken == "cut":
            request.transport.abort()
        return error(500) if broken == "error" else web.Response(text="<html>" if broken == "no JSON" else "{}")

    server.behave = behave
    backend = OpenAI(server.url, "m", patience=1.0, largest_n=1)
    assert len(sample(backend, n=1)) == 1

    async def one(k):
        return [path async for portion in backend.sample(CHAT, Settings(), [Wanted(k, k)]) for path in portion]

    async def many():
        try:
            return await asyncio.gather(*(one(k) for k in range(6)), return_exceptions=True)
        finally:
            await backend.close()

    assert all(isinstance(result, EndpointSilent) for result in asyncio.run(many()))


def test_an_address_where_nothing_ever_answered_gets_no_long_patience():
    endpoint = Endpoint("http://127.0.0.1:9/v1", "JUDGE", concurrency=1)
    assert endpoint._patience < 10 < Endpoint("http://127.0.0.1:9/v1", "X", concurrency=1, patience=60.0)._patience

    async def work():
        try:
            await endpoint.post("/chat/completions", {})
        finally:
            await endpoint.close()

    with pytest.raises(EndpointSilent, match=r"nothing ever has from there\); .*judge\.patience=3600"):
        asyncio.run(work())


def test_a_server_that_was_there_gets_the_long_one(server):
    backend = OpenAI(server.url, "m")
    sample(backend)
    assert backend.endpoint._patience == 300


async def trickle(request, seconds):
    """A byte every tenth of a second."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(int(seconds * 10)):
        await response.write(b" ")
        await asyncio.sleep(0.1)
    return response


def test_an_answer_that_trickles_has_a_deadline_and_is_asked_for_again(server):
    server.behave = lambda n, body, r: trickle(r, 20) if n == 0 else obliging(n, body, r)
    backend = OpenAI(server.url, "m", answer_seconds=3.0, patience=60.0)
    assert len(sample(backend)) == 2
    assert backend.retries == 1
    assert "did not end its answer within 3 s" in backend.trouble


def test_an_answer_that_always_trickles_is_given_up_on(server):
    server.behave = lambda n, body, r: trickle(r, 20)
    with pytest.raises(BackendError, match="did not end its answer within"):
        sample(OpenAI(server.url, "m", answer_seconds=0.3, patience=1.0))


def test_an_answer_may_take_longer_the_longer_its_paths_may_be(server, monkeypatch):
    given = []
    whole = Endpoint._once

    async def noted(self, address, payload, seconds):
        given.append(seconds)
        return await whole(self, address, payload, seconds)

    monkeypatch.setattr(Endpoint, "_once", noted)

    def draw(max_tokens, **options):
        backend = OpenAI(server.url, "m", **options)

        async def work():
            async for _ in backend.sample(CHAT, Settings(max_tokens=max_tokens), [Wanted(0, 0)]):
                pass
            await backend.close()

        asyncio.run(work())

    draw(1000)
    draw(32_000)
    draw(32_000, answer_seconds=7.0)
    assert given == [700, 3800, 7]
