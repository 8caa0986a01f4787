"""`/readyz` says whether requests can be decided and kept, found out by writing and by the last calls upstream."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import pytest
import requests
from sqlalchemy import event

from asked_over_http import chat, logged_app, post, told
from demur.backends.endpoint import Endpoint, UsesEndpoint
from demur.errors import StoreError
from demur.server import last_calls
from demur.server import log as logs
from demur.store.service import ServiceStore
from loopback import choice, error, hang, reply
from patience import wait_until
from serving import adder, listening, made_app, service_of

UNKEYED = "the model of sums refuses requests: check its key, its name and its address"


@pytest.fixture(autouse=True)
def impatience(monkeypatch):
    """As in production, sooner."""
    monkeypatch.setattr(last_calls, "_EVERY", 0.05)


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True, patience=1.0) as opened:
        yield opened


def troubles(address):
    answer = requests.get(f"{address}/readyz", timeout=300)
    document = answer.json()
    assert answer.status_code == (503 if document["troubles"] else 200)
    assert document["ready"] == (not document["troubles"])
    return document["troubles"]


def paths_drawn(upstream):
    return sum(body.get("n", 1) for body in upstream.requests if "What is" in str(body))


def full(store):
    """Leave no room in a store; the function that it gives makes some."""

    def cap(connection, _):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    def freed():
        event.remove(store.engine, "connect", cap)
        store.engine.dispose()

    store.engine.dispose()
    with closing(sqlite3.connect(store.place)) as connection:
        connection.execute("VACUUM")  # pages that are free would be room
    event.listen(store.engine, "connect", cap)
    return freed


def test_on_a_full_disk_it_is_not_ready_and_no_path_is_paid_for(upstream, sums_policy, store, monkeypatch):
    monkeypatch.setattr(logs, "_KNOWN_SECONDS", 0.05)
    with listening(logged_app(upstream.url, sums_policy, store)) as address:
        assert post(address, chat()).status_code == 200
        assert troubles(address) == []
        freed, paid = full(store), paths_drawn(upstream)
        wait_until(lambda: troubles(address) == ["the store cannot be written"])
        for stream in (False, True):
            status, said = told(post(address, chat("What is 6 + 1?", stream=stream)))
            assert (status, said["code"]) == (503, "store_unavailable")
        assert paths_drawn(upstream) == paid
        freed()
        wait_until(lambda: not troubles(address))
        assert post(address, chat("What is 8 + 1?")).status_code == 200


def test_after_a_commit_that_fails_the_next_request_finds_out_first(upstream, sums_policy, store, monkeypatch):
    monkeypatch.setattr(logs, "_KNOWN_SECONDS", 600.0)  # the last commit speaks for the next

    def away(*_):
        raise StoreError("service.db: the disk is full")

    with listening(logged_app(upstream.url, sums_policy, store)) as address:
        assert post(address, chat()).status_code == 200
        for place, name in ((store.decisions, "add"), (store, "check_writing")):
            monkeypatch.setattr(place, name, away)
        assert [post(address, chat(f"What is {k} + 1?")).status_code for k in (6, 8, 10)] == [503] * 3
        assert paths_drawn(upstream) == 5 + 5


def test_what_is_written_to_find_out_leaves_nothing_and_is_large_enough(place):
    with ServiceStore(place, create=True) as store:
        written = []

        @event.listens_for(store.engine, "before_cursor_execute")
        def see(connection, cursor, statement, parameters, context, executemany):
            written.append((statement.split()[0], str(parameters)))

        store.check_writing()
        verbs = [verb for verb, _ in written if verb in ("INSERT", "DELETE")]
        assert verbs == ["INSERT", "DELETE"]
        assert max(len(parameters) for _, parameters in written) > 30_000
    with ServiceStore(place) as store, store.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT name FROM demur_meta").fetchall()
    assert not [name for (name,) in rows if name.startswith("probe")]


def test_asking_often_does_not_load_the_store(upstream, sums_policy, store, monkeypatch):
    monkeypatch.setattr(logs, "_KNOWN_SECONDS", 600.0)
    tries, real = [], store.check_writing
    monkeypatch.setattr(store, "check_writing", lambda: (tries.append(1), real()))
    with listening(logged_app(upstream.url, sums_policy, store)) as address, ThreadPoolExecutor(8) as many:
        assert list(many.map(lambda _: troubles(address), range(40))) == [[]] * 40
        assert len(tries) == 1
        for k in range(5):
            post(address, chat(f"What is {k} + 1?"))
        assert len(tries) == 1  # what was committed is proof as well


def test_a_write_that_hangs_is_tried_once_for_all(upstream, sums_policy, store, monkeypatch):
    monkeypatch.setattr("demur.server.api.health._PATIENCE", 0.05)
    tries, ended = [], []

    def stuck():
        tries.append(1)
        wait_until(lambda: ended)

    monkeypatch.setattr(store, "check_writing", stuck)
    with listening(logged_app(upstream.url, sums_policy, store)) as address:
        for _ in range(5):
            assert troubles(address) == ["the store cannot be reached"]
        assert len(tries) == 1
        ended.append(True)
        wait_until(lambda: not troubles(address))


def test_an_expired_key_is_not_ready_and_a_new_one_is_without_any_traffic(upstream, sums_policy, caplog):
    with listening(made_app(service_of(upstream.url, sums_policy))) as address:
        assert post(address, chat()).json()["demur"]["decision"] == "answered"
        assert troubles(address) == []
        upstream.behave = lambda *_: error(401, "the key sk-123 has expired")
        assert post(address, chat("What is 6 + 1?")).json()["demur"]["cause"] == "upstream_failed"
        with caplog.at_level("INFO", "demur.server"):
            assert troubles(address) == [UNKEYED]
            assert troubles(address) == [UNKEYED]
            upstream.behave = adder
            wait_until(lambda: not troubles(address))
        assert [record.getMessage() for record in caplog.records] == [f"not ready: {UNKEYED}", "ready again"]


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_key_that_expires_while_nobody_asks_is_noticed_by_the_list_of_models(
    upstream, sums_policy, monkeypatch, status
):
    monkeypatch.setattr("demur.server.api.health._FRESH", 0.0)
    with listening(made_app(service_of(upstream.url, sums_policy))) as address:
        assert troubles(address) == []
        upstream.behave = lambda *_: error(status)
        assert troubles(address) == [UNKEYED]
        upstream.behave = adder
        wait_until(lambda: not troubles(address))


def test_a_server_that_lists_its_models_to_nobody_is_ready(upstream, sums_policy, monkeypatch):
    monkeypatch.setattr("demur.server.api.health._FRESH", 0.0)
    upstream.behave = lambda number, body, request: adder(number, body, request) if body else error(403)
    with listening(made_app(service_of(upstream.url, sums_policy))) as address:
        assert troubles(address) == []
        tokens = [body for body in upstream.requests if body]
        assert [troubles(address) for _ in range(5)] == [[]] * 5
        assert [body for body in upstream.requests if body] == tokens  # for a minute that is believed


def test_a_question_that_a_model_cannot_take_does_not_make_the_service_unready(upstream, sums_policy):
    def picky(number, body, request):
        return error(400, "too long") if "What is 4" in str(body) else adder(number, body, request)

    upstream.behave = picky
    with listening(made_app(service_of(upstream.url, sums_policy))) as address:
        assert post(address, chat()).json()["demur"]["cause"] == "upstream_failed"
        assert troubles(address) == []
        tokens = [body for body in upstream.requests if body.get("max_completion_tokens", body.get("max_tokens")) == 1]
        assert len(tokens) == 1


def test_requests_that_fail_one_after_another_make_it_unready_for_a_while(upstream, sums_policy, monkeypatch):
    """A token comes, and whole pools do not."""

    def tired(number, body, request):
        return error(400, "no") if "What is" in str(body) else reply(choice("2"))

    upstream.behave = tired
    with listening(made_app(service_of(upstream.url, sums_policy))) as address:
        for k in range(last_calls.IN_A_ROW):
            assert troubles(address) == []
            post(address, chat(f"What is {k} + 1?"))
        told_ = "the last 5 requests to sums failed: the model gave no whole pool of paths"
        assert troubles(address) == [told_]
        assert troubles(address) == [told_]
        with monkeypatch.context() as later:
            later.setattr(last_calls, "_KEPT", 0.0)
            assert troubles(address) == []
        assert troubles(address) == [told_]
        upstream.behave = adder
        post(address, chat("What is 8 + 1?"))
        assert troubles(address) == []


def test_a_model_that_hangs_is_not_ready_and_nobody_waits_for_it(upstream, sums_policy, monkeypatch):
    monkeypatch.setattr("demur.server.api.health._PATIENCE", 0.2)
    with listening(made_app(service_of(upstream.url, sums_policy, seconds=0.3))) as address:
        upstream.behave = lambda number, body, request: hang(600) if body else error(404)
        assert post(address, chat()).json()["demur"]["cause"] == "too_slow"
        (words,) = troubles(address)
        assert words == "the model of sums failed, and has not answered since: the model took too long"
        monkeypatch.setattr(last_calls, "_TOKEN_SECONDS", 0.1)
        upstream.behave = adder
        assert troubles(address) == [words]  # as long as the one that hangs is not given up
        assert sum("1 + 1" in str(body) for body in upstream.requests) == 1


def test_what_was_drawn_elsewhere_or_for_another_says_nothing_of_the_model():
    calls = last_calls.LastCalls()
    question = SimpleNamespace(served=SimpleNamespace(name="sums"))
    failure = SimpleNamespace(kind="upstream_failed")
    for shared, waited, seen in ((True, 1.0, 0), (False, 0.0, 0), (False, 1.0, 1)):
        calls.saw(SimpleNamespace(question=question, failure=failure, shared=shared, waited=waited))
        assert calls._calls("sums").in_a_row == seen
    calls.saw(SimpleNamespace(question=question, failure=None, shared=False, waited=0.0))
    assert calls._calls("sums").in_a_row == 1
    calls.saw(SimpleNamespace(question=question, failure=None, shared=False, waited=1.0))
    assert calls._calls("sums").in_a_row == 0


@pytest.mark.parametrize(("status", "said"), [(401, True), (403, True), (503, True), (404, False), (200, False)])
def test_a_scorer_on_a_server_that_refuses_its_key_is_in_the_way(server, status, said):
    server.behave = lambda *_: error(status)
    scorer = UsesEndpoint()
    scorer.name, scorer.endpoint = "reward", Endpoint(server.url, "REWARD", concurrency=1)
    pipeline = SimpleNamespace(scorer=None, also=(scorer,))
    served = SimpleNamespace(name="sums", answerer=SimpleNamespace(pipeline=pipeline))

    async def work():
        try:
            return await last_calls._of_scorers(served)
        finally:
            await scorer.close()

    assert bool(asyncio.run(work())) == said
