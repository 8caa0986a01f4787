"""Paying once: one pool for identical requests at once, and one decision for one idempotency key."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
import requests
from sqlalchemy import text

from asked_over_http import Caller, who_wait
from demur.server.access.admission import Once
from demur.server.api.forms import ChatRequest
from demur.store.service import ServiceStore
from guarded import CHAT, bearer, guarded_app, question
from loopback import until, when
from patience import wait_until
from serving import adder, listening, made_app

PATHS = 5


@pytest.fixture
def store(store_place):
    with ServiceStore(store_place, create=True) as opened:
        yield opened


@pytest.fixture
def store_place(tmp_path):
    return str(tmp_path / "service.db")


@pytest.fixture
def app(upstream, sums_policy, store):
    return guarded_app(upstream.url, sums_policy, store, audit_share=1e-9)


@pytest.fixture
def address(app):
    with listening(app) as url:
        yield url


def ask(address, key=None, asked="What is 4 + 1?", secret=None, **beside):
    headers = {} if key is None else {"Idempotency-Key": key}
    headers |= {} if secret is None else bearer(secret)
    return requests.post(address + CHAT, json=question(asked, **beside), headers=headers, timeout=300)


def paths_drawn(upstream):
    return sum(body.get("n", 1) for body in upstream.requests)


@pytest.mark.parametrize("asked", ["What is 4 + 1?", "What is 5 + 1?"])
@pytest.mark.parametrize("show", ["answer", "path"])
def test_a_key_sent_again_gets_the_same_reply(upstream, sums_policy, store, asked, show):
    with listening(guarded_app(upstream.url, sums_policy, store, show=show)) as address:
        first, again = ask(address, "a", asked), ask(address, "a", asked)
        assert again.json() == first.json()
        assert again.headers["x-demur-request-id"] == first.headers["x-demur-request-id"]
        assert again.headers["x-demur-decision"] == first.headers["x-demur-decision"]
        assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
        if show == "path" and asked == "What is 4 + 1?":
            assert first.json()["choices"][0]["message"]["content"] == "So \\boxed{5}"
        assert paths_drawn(upstream) == PATHS
        other = ask(address, "b", asked)
        assert other.json()["id"] != first.json()["id"]
    assert paths_drawn(upstream) == 2 * PATHS


def test_the_official_client_gets_the_same_stream_again(upstream, address):
    def streamed():
        with openai.OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0) as client:
            made = client.chat.completions.create(
                **question(),
                stream=True,
                stream_options={"include_usage": True},
                extra_headers={"Idempotency-Key": "a"},
            )
            return [chunk.to_dict() for chunk in made]

    first = streamed()
    assert streamed() == first
    assert paths_drawn(upstream) == PATHS


def test_another_body_under_the_same_key_is_refused(address, upstream):
    assert ask(address, "a").status_code == 200
    for beside in ({"asked": "What is 6 + 1?"}, {"stream": True}, {"temperature": 1}):
        refused = ask(address, "a", **beside)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_reused")
    assert paths_drawn(upstream) == PATHS


def test_the_order_of_fields_makes_no_other_body(address):
    headers = {"Idempotency-Key": "a", "Content-Type": "application/json"}
    body = question(temperature=0.5)
    swapped = json.dumps(dict(reversed(body.items())), indent=1)
    ids = {
        requests.post(address + CHAT, data=sent, headers=headers).json()["id"] for sent in (json.dumps(body), swapped)
    }
    assert len(ids) == 1


def test_the_same_key_of_another_caller_is_another(address, store):
    one, other = (store.keys.create(name, ["ask"], 1)[1] for name in "ab")
    time.sleep(0.3)
    first, foreign = ask(address, "a", secret=one), ask(address, "a", "What is 6 + 1?", secret=other)
    assert (first.status_code, foreign.status_code) == (200, 200)
    assert first.json()["id"] != foreign.json()["id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_what_is_no_key_is_refused(address, key):
    assert ask(address, key).status_code == 400


def test_without_a_log_the_key_is_ignored_and_said_to_be(service):
    with listening(made_app(service)) as address:
        assert ask(address, "a").json()["demur"]["ignored"] == ["Idempotency-Key"]


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_many_at_once_on_two_replicas_are_one_decision(upstream, sums_policy, tmp_path, place, request):
    where = str(tmp_path / "s.db") if place == "sqlite" else request.getfixturevalue("postgres_url")
    upstream.delay = 0.3
    with ServiceStore(where, create=True) as one, ServiceStore(where) as other:
        apps = [guarded_app(upstream.url, sums_policy, store) for store in (one, other)]
        with listening(apps[0]) as first, listening(apps[1]) as second, ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(lambda k: ask((first, second)[k % 2], "a"), range(12)))
        assert {reply.status_code for reply in replies} == {200}
        assert len({reply.text for reply in replies}) == 1
        assert paths_drawn(upstream) == PATHS
        assert len(one.decisions.search()) == 1


def test_work_begun_by_a_replica_that_died_is_taken_over(app, address, store, upstream):
    """The lease of the dead one runs out; until then whoever asks again waits."""
    app.state.admission.lease = 1.0
    once = Once.of("a", ChatRequest.model_validate(question()).model_dump())
    now, begun = time.time_ns() // 1_000_000, time.monotonic()
    assert store.repeats.begin("", once.key, once.body, "req_dead", now, 0.8).whose == "mine"
    reply = ask(address, "a")
    assert reply.status_code == 200
    assert time.monotonic() - begun > 0.8
    assert reply.json()["demur"]["request_id"] != "req_dead"
    assert ask(address, "a").json() == reply.json()


def test_a_decision_that_was_kept_before_its_replica_died_is_the_reply(app, address, store, upstream):
    first = ask(address, "a")
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE demur_repeats SET state = 'begun', lease_until = 0"))
    again = ask(address, "a")
    assert again.json() == first.json()
    assert paths_drawn(upstream) == PATHS


def test_the_lease_is_renewed_while_the_work_goes_on(app, address, upstream):
    app.state.admission.lease = 3.0
    upstream.delay = 4.0
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, address, "a")
        wait_until(lambda: upstream.requests)
        again = pool.submit(ask, address, "a")
        assert first.result().json() == again.result().json()
    assert paths_drawn(upstream) == PATHS


def test_a_caller_who_goes_away_finds_the_reply_when_they_come_back(app, address, upstream):
    gone = threading.Event()
    upstream.behave = when(gone.is_set, adder)
    caller = Caller(address, question(), **{"Idempotency-Key": "a"})
    wait_until(lambda: upstream.requests)
    caller.leave()
    gone.set()
    assert ask(address, "a").status_code == 200
    assert paths_drawn(upstream) == PATHS


def test_what_was_refused_may_be_tried_again(app, address):
    app.state.service.closing = True
    assert ask(address, "a").status_code == 503
    app.state.service.closing = False
    assert ask(address, "a").status_code == 200


def test_the_key_of_a_request_that_was_refused_is_free_at_once(app, address, store):
    """And not only when the lease of who was refused is over."""
    fan_out = app.state.service.fan_out
    fan_out.most_waiting, fan_out.underway = 0, fan_out.most
    assert ask(address, "a").status_code == 429
    once = Once.of("a", ChatRequest.model_validate(question()).model_dump())
    now = time.time_ns() // 1_000_000
    assert store.repeats.begin("", once.key, once.body, "req_next", now, 0.8).whose == "mine"


def test_without_texts_a_reply_cannot_be_given_again(upstream, sums_policy, store):
    with listening(guarded_app(upstream.url, sums_policy, store, texts=False)) as address:
        first, again = ask(address, "a"), ask(address, "a")
    assert first.status_code == 200
    assert (again.status_code, again.json()["error"]["code"]) == (422, "reply_not_kept")
    assert first.json()["demur"]["request_id"] in again.json()["error"]["message"]
    assert paths_drawn(upstream) == PATHS


# Identical requests at once, without any key.


def test_identical_requests_draw_one_pool_also_where_some_are_marked_for_audit(upstream, sums_policy, store):
    """Without waves a marked request needs no more paths than any other; the pool is audited at most once."""
    app = guarded_app(upstream.url, sums_policy, store, audit_share=0.5)
    upstream.behave = when(lambda: who_wait(app.state.service) == 12, adder)
    with listening(app) as address, ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda _: ask(address), range(12)))
    assert {reply.status_code for reply in replies} == {200}
    assert paths_drawn(upstream) == PATHS
    assert sum(decision.audit for decision in store.decisions.search()) <= 1


def test_identical_requests_at_once_draw_one_pool_and_are_each_kept(app, address, upstream, store):
    upstream.behave = when(lambda: who_wait(app.state.service) == 10, adder)
    with ThreadPoolExecutor(10) as pool:
        replies = [reply.json() for reply in pool.map(lambda _: ask(address), range(10))]
    assert paths_drawn(upstream) == PATHS
    ids = {reply["demur"]["request_id"] for reply in replies}
    assert len(ids) == 10
    assert {decision.request for decision in store.decisions.search()} == ids
    assert {reply["choices"][0]["message"]["content"] for reply in replies} == {"5"}


class Watched:
    """A model that takes its time, and notices when nobody waits any more."""

    left = 0

    async def __call__(self, number, body, request):
        await until(lambda: request.transport is None or request.transport.is_closing())
        self.left += 1
        return adder(number, body, request)


@pytest.mark.parametrize("stream", [False, True])
def test_the_last_to_go_away_ends_the_drawing_and_no_one_before(address, app, upstream, store, stream):
    upstream.behave, service = (watched := Watched()), app.state.service
    callers = [Caller(address, question(stream=stream)) for _ in range(3)]
    wait_until(lambda: who_wait(service) == 3 and upstream.busy)
    for caller in callers[:2]:
        caller.leave()
    wait_until(lambda: who_wait(service) == 1)
    time.sleep(0.1)
    assert (who_wait(service), service.underway, upstream.busy, watched.left) == (1, 1, 1, 0)
    callers[2].leave()
    wait_until(lambda: watched.left and not (service.underway or service.fan_out.underway))
    assert store.decisions.search() == []


def test_one_who_stays_gets_the_reply_of_those_who_left(app, address, upstream):
    gone, service = threading.Event(), app.state.service
    upstream.behave = when(gone.is_set, adder)
    with ThreadPoolExecutor(1) as pool:
        leaving = [Caller(address, question()) for _ in range(2)]
        wait_until(lambda: who_wait(service) == 2)
        staying = pool.submit(ask, address)
        wait_until(lambda: who_wait(service) == 3)
        for caller in leaving:
            caller.leave()
        wait_until(lambda: who_wait(service) == 1)
        gone.set()
        assert staying.result().json()["choices"][0]["message"]["content"] == "5"
    assert paths_drawn(upstream) == PATHS
