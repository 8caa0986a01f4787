"""Budgets and limits: what a key may spend holds exactly, under load and over replicas; what is too much is refused."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
import requests
import uvicorn

from asked_over_http import Caller
from demur.event_loop import run
from demur.server import running
from demur.server.access import connections
from demur.server.access.budgets import Budgets
from demur.server.access.limits import Limits
from demur.server.errors import ApiError
from demur.store.service import ServiceStore
from guarded import CHAT, bearer, guarded_app, question
from loopback import error, hang, when
from patience import wait_until
from serving import adder, listening, made_app

PATHS = 5
"""A request takes so many."""
DAY = 86_400_000


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


def key_of(store, **limits):
    return store.keys.create("k", ["ask"], 1, limits)[1]


def ask(address, secret, k=4, **beside):
    body = question(f"What is {k} + 1?", **beside)
    return requests.post(address + CHAT, json=body, headers=bearer(secret), timeout=300)


def spent_today(store, secret):
    """What was spent today; a test that runs over midnight finds it a day earlier."""
    key, now = store.keys.find(secret).key, time.time_ns() // 1_000_000
    today = now - now % DAY
    return next(
        (spent for since in (today, today - DAY) if (spent := store.spending.spent(f"{key}/day", since)).paths), None
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_budget_holds_exactly_under_fifty_requests_at_once(upstream, sums_policy, tmp_path, replicas):
    """Ten whole pools fit into the budget: ten of fifty requests are answered, whoever asks which replica."""
    place = tmp_path / "service.db"
    upstream.delay = 0.05
    with ServiceStore(place, create=True) as one, ServiceStore(place) as other:
        secret = key_of(one, paths_per_day=10 * PATHS + PATHS - 1)
        with ExitStack() as stack:
            apps = [guarded_app(upstream.url, sums_policy, store) for store in (one, other)[:replicas]]
            addresses = [stack.enter_context(listening(app)) for app in apps]
            pool = stack.enter_context(ThreadPoolExecutor(50))
            replies = list(pool.map(lambda k: ask(addresses[k % replicas], secret, 2 * k), range(50)))
        statuses = [reply.status_code for reply in replies]
        assert sorted(statuses) == [200] * 10 + [429] * 40
        assert sum(body.get("n", 1) for body in upstream.requests) == 10 * PATHS
        assert spent_today(one, secret).paths == 10 * PATHS
        refused = next(reply for reply in replies if reply.status_code == 429)
        assert refused.json()["error"]["code"] == "budget_spent"
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert 1 <= int(refused.headers["retry-after"]) <= DAY // 1000 + 1


def test_tokens_are_counted_when_they_are_known(upstream, sums_policy, store):
    secret = key_of(store, tokens_per_day=20)
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        reply = ask(address, secret)
        cost = reply.json()["usage"]["total_tokens"]
        assert spent_today(store, secret).tokens == cost > 0
        answered = 1
        while (reply := ask(address, secret, 2 * answered)).status_code == 200:
            answered += 1
        assert answered == -(-20 // cost)  # let in while less than 20 are spent
        assert "tokens in a day" in reply.json()["error"]["message"]


def test_who_hangs_up_pays_the_most_tokens_that_the_paths_may_have(upstream, sums_policy, store):
    secret = key_of(store, tokens_per_day=10_000)
    most = PATHS * sums_policy.upstream.sampling["max_tokens"]
    upstream.behave = lambda *_: hang(60)
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        caller = Caller(address, question("What is 4 + 1?"), **bearer(secret))
        wait_until(lambda: upstream.requests)
        caller.leave()
        wait_until(lambda: (spent := spent_today(store, secret)) is not None and spent.tokens >= most)
        spent = spent_today(store, secret)
    assert (spent.paths, spent.tokens) == (PATHS, most)


def test_a_refused_stream_has_the_status_of_any_other(upstream, sums_policy, store):
    secret = key_of(store, paths_per_day=PATHS)
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        assert ask(address, secret, stream=True).status_code == 200
        assert ask(address, secret, stream=True).status_code == 429


def test_a_pool_shared_with_another_request_is_paid_once(upstream, sums_policy, store):
    secret = key_of(store, paths_per_day=1_000)
    upstream.delay = 0.3
    app = guarded_app(upstream.url, sums_policy, store, audit_share=1e-9)
    with listening(app) as address, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: ask(address, secret), range(8)))
    assert {reply.status_code for reply in replies} == {200}
    assert sum(body.get("n", 1) for body in upstream.requests) == PATHS
    assert len({reply.json()["demur"]["request_id"] for reply in replies}) == 8
    assert store.decisions.tally().answered == 8
    spent = spent_today(store, secret)
    assert (spent.paths, spent.tokens) == (PATHS, replies[0].json()["usage"]["total_tokens"])


def test_what_is_refused_further_on_costs_nothing(upstream, sums_policy, store):
    secret = key_of(store, paths_per_day=1_000)
    app = guarded_app(upstream.url, sums_policy, store)
    with listening(app) as address:
        ask(address, secret)
        app.state.service.closing = True
        assert ask(address, secret, 6).status_code == 503
    assert spent_today(store, secret).paths == PATHS


def test_a_request_that_fails_upstream_is_paid(upstream, sums_policy, store):
    secret = key_of(store, paths_per_day=1_000)
    upstream.behave = lambda *_: error(400)
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        assert ask(address, secret).json()["demur"]["cause"] == "upstream_failed"
    assert spent_today(store, secret).paths == PATHS


def test_a_budget_smaller_than_a_request_says_so(upstream, sums_policy, store):
    secret = key_of(store, paths_per_minute=1_000, paths_per_day=PATHS - 1)
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        refused = ask(address, secret)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "budget_too_small")


async def spend(budgets, limits, paths, drawn=None, tokens=0):
    async with budgets.reserved("k", limits, paths) as bill:
        bill.paths, bill.tokens = paths if drawn is None else drawn, tokens


def test_windows_are_minutes_and_days_and_midnight_begins_both(store):
    """Both windows begin at the same moment here, and are not taken for one another."""
    now = [20_000 * DAY]
    budgets, limits = Budgets(store, clock=lambda: now[0]), Limits(paths_per_minute=10, paths_per_day=25)
    run(spend(budgets, limits, 10))
    with pytest.raises(ApiError) as caught:
        run(spend(budgets, limits, 1))
    assert caught.value.headers["Retry-After"] == "60"
    now[0] += 60_000
    run(spend(budgets, limits, 10))
    now[0] += 60_000
    run(spend(budgets, limits, 5, drawn=3))
    with pytest.raises(ApiError) as caught:
        run(spend(budgets, limits, 3))
    assert int(caught.value.headers["Retry-After"]) == (DAY - 120_000) // 1000
    # What the day refused was given back to the minute.
    assert store.spending.spent("k/minute", now[0]).paths == 3
    now[0] += DAY
    run(spend(budgets, limits, 10))


def test_windows_long_over_are_forgotten(store):
    now = [20_000 * DAY]
    budgets, limits = Budgets(store, clock=lambda: now[0]), Limits(paths_per_day=10)
    run(spend(budgets, limits, 10))
    now[0] += 4 * DAY
    run(spend(budgets, limits, 1))
    assert store.spending.spent("k/day", 20_000 * DAY).paths == 0


def test_a_clock_set_back_finds_what_was_spent(store):
    now = [20_000 * DAY + 5]
    budgets, limits = Budgets(store, clock=lambda: now[0]), Limits(paths_per_day=10)
    run(spend(budgets, limits, 10))
    now[0] += DAY
    run(spend(budgets, limits, 10))
    now[0] -= DAY
    with pytest.raises(ApiError):
        run(spend(budgets, limits, 1))


def test_requests_at_once_are_limited_for_each_key(upstream, sums_policy, store):
    secret, free = key_of(store, at_once=2), store.keys.create("free", ["ask"], 1)[1]
    refused = []
    upstream.behave = when(lambda: len(refused) == 3, adder)

    def ask_for_one(k):
        reply = ask(address, secret, 2 * k)
        if reply.status_code == 429:
            refused.append(k)
        return reply

    with listening(guarded_app(upstream.url, sums_policy, store)) as address, ThreadPoolExecutor(10) as pool:
        limited = pool.map(ask_for_one, range(5))
        unlimited = pool.map(lambda k: ask(address, free, 100 + 2 * k), range(5))
        statuses = sorted(reply.status_code for reply in limited)
        assert {reply.status_code for reply in unlimited} == {200}
        assert statuses == [200, 200, 429, 429, 429]
        assert ask(address, secret).status_code == 200


def test_a_limit_of_another_version_is_not_passed_over(upstream, sums_policy, store):
    secret = key_of(store, moons_per_year=1)
    with listening(guarded_app(upstream.url, sums_policy, store)) as address:
        assert ask(address, secret).status_code == 503
    assert upstream.requests == []


# Bodies.


@pytest.fixture
def address(upstream, sums_policy, store):
    app = guarded_app(upstream.url, sums_policy, store, most_bytes=20_000, most_characters=1_000)
    with listening(app) as url:
        yield url


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(address, chunked):
    body = b'{"model": "' + b"x" * 30_000
    sent = iter([body[:15_000], body[15_000:]]) if chunked else body
    refused = requests.post(address + CHAT, data=sent, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")


def test_a_body_that_is_too_deep_is_refused(address):
    deep = '{"model": "sums", "messages": ' + "[" * 9_000 + "]" * 9_000 + "}"
    refused = requests.post(address + CHAT, data=deep, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "not_json")


@pytest.mark.parametrize(
    "body", [question("What is 4 + 1? " + "x" * 1_000), question(demur={"passages": ["x" * 600, "y" * 600]})]
)
def test_a_question_that_is_too_long_is_refused(address, upstream, body):
    refused = requests.post(address + CHAT, json=body)
    assert refused.status_code == 400
    if "demur" not in body:
        assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert upstream.requests == []


def connected(address):
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=300)


def test_a_body_that_dawdles_is_given_up(upstream, sums_policy, store):
    app = guarded_app(upstream.url, sums_policy, store, body_seconds=0.5)
    with listening(app) as address, connected(address) as slow:
        slow.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n{".encode()
        )
        said = slow.recv(65536)
        assert b" 408 " in said.splitlines()[0]
        while slow.recv(65536):
            pass  # until it is closed


@pytest.mark.parametrize(
    "sent", [b"", b"GET /v1/mod", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"POST /nowhere HTTP/1.1\r\n"
             b"Host: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"]
)  # fmt: skip
def test_a_head_that_dawdles_is_given_up(service, sent, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.4)
    config = running.configured(made_app(service), host="127.0.0.1", port=0, grace=1)
    assert config.http is connections.PunctualConnection
    with running_server(config) as address, connected(address) as slow:
        slow.sendall(sent)
        for _ in range(100):
            try:
                if slow.recv(65536) == b"":
                    break
                slow.sendall(b"x")
            except TimeoutError:
                pytest.fail("nothing came of it")
            except OSError:
                break
        else:
            pytest.fail("it was never closed")
        assert requests.get(f"{address}/healthz").status_code == 200


_TRAILED = (
    f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    "2\r\n{}\r\n0\r\n"
).encode()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 200_000,
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
        _TRAILED + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n",
    ],
    ids=["address", "header", "headers", "trailer"],
)
def test_a_head_that_is_too_long_is_refused(service, sent):
    config = running.configured(made_app(service), host="127.0.0.1", port=0, grace=1)
    with running_server(config) as address, connected(address) as babbling:
        with suppress(OSError):  # it is closed while this is still being sent
            babbling.sendall(sent)
        said = b""
        with suppress(OSError):
            while got := babbling.recv(65536):
                said += got
        assert not said or said.startswith(b"HTTP/1.1 400 ")
        assert requests.get(f"{address}/healthz").status_code == 200


def test_what_follows_a_body_is_no_header(service):
    config = running.configured(made_app(service), host="127.0.0.1", port=0, grace=1)
    with running_server(config) as address, connected(address) as sly:
        head, _, rest = _TRAILED.partition(b"Content-Type: application/json\r\n")
        sly.sendall(head + rest + b"Content-Type: text/html\r\n\r\n")
        assert sly.recv(65536).startswith(b"HTTP/1.1 400 ")  # 415 were it one


def test_a_body_of_two_lengths_is_refused(service):
    config = running.configured(made_app(service), host="127.0.0.1", port=0, grace=1)
    with running_server(config) as address, connected(address) as sly:
        sly.sendall(_TRAILED.replace(b"Transfer", b"Content-Length: 2\r\nTransfer") + b"\r\n")
        assert sly.recv(65536).startswith(b"HTTP/1.1 400 ")


@contextmanager
def running_server(config):
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(300)


def test_a_slow_model_does_not_count_as_a_slow_connection(service, upstream, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)
    upstream.behave, upstream.delay = adder, 1.6
    config = running.configured(made_app(service), host="127.0.0.1", port=0, grace=1)
    with running_server(config) as address:
        assert requests.post(address + CHAT, json=question()).status_code == 200
