"""What callers say over HTTP, with keys and without: shown to reviewers, and no label."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import requests

from demur.errors import InvalidValue
from demur.pipeline.recalibration import recalibration
from demur.store.service import ServiceStore
from guarded import bearer
from reviewing import Person
from serving import listening
from watching import look, monitors, watched_app

SUMS = range(100, 140)


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@contextmanager
def served(upstream, policy, store, **settings):
    app = watched_app(upstream.url, policy, store, **settings)
    app.state.access.ring.fresh = 0.05
    with listening(app) as address:
        yield app, address


def ask(address, number, headers):
    body = {"model": "sums", "messages": [{"role": "user", "content": f"What is {number} + 1?"}]}
    reply = requests.post(f"{address}/v1/chat/completions", json=body, headers=headers, timeout=60)
    return reply.json()["demur"]


def say(address, told, headers, **said):
    body = {"request_id": told["request_id"], **said}
    reply = requests.post(f"{address}/v1/feedback", json=body, headers=headers, timeout=60)
    assert reply.status_code == 200
    return reply.json()["by"]


def counted(app):
    """Audits that the monitors of errors took with a label."""
    found = [watch.counts for watching in monitors(app).errors for watch in [monitors(app).watch(watching)]]
    return sum(counts["right"] + counts["wrong"] for counts in found)


def key(store, name, *roles):
    return bearer(store.keys.create(name, roles, 1)[1])


def test_feedback_of_keys_that_only_ask_moves_nothing(upstream, sums_policy, store):
    asks, reviews, both = (
        key(store, "app", "ask"), key(store, "ann", "review"), key(store, "trusted", "ask", "review")
    )  # fmt: skip
    with served(upstream, sums_policy, store, online_step=0.05) as (app, address):
        told = [ask(address, number, asks) for number in SUMS]
        answered = [one for one in told if one["decision"] == "answered"]
        assert len(answered) > 10
        for one in answered:
            assert say(address, one, asks, verdict="wrong") == "caller"
        look(app)
        assert counted(app) == 0
        assert all(online.state().errors == 0 for online in monitors(app).online)
        with pytest.raises(InvalidValue, match="has a label from a reviewer"):
            recalibration(store, "sums")

        for one in answered[:2]:
            assert say(address, one, reviews, verdict="right") == "reviewer"
        mine = ask(address, 500, both)
        assert say(address, mine, both, answer="501") == "reviewer"
        look(app)
        assert counted(app) > 0
        assert recalibration(store, "sums").audits.by_reviewers == 3


def test_a_key_that_reviews_later_under_the_same_name_brings_no_old_words_in(upstream, sums_policy, store):
    held, secret = store.keys.create("app", ["ask"], 1)
    with served(upstream, sums_policy, store) as (_, address):
        told = ask(address, 4, bearer(secret))
        say(address, told, bearer(secret), verdict="right")
        store.keys.revoke(held.key, 2)
        store.keys.create("app", ["ask", "review"], 3)
    with pytest.raises(InvalidValue, match="has a label from a reviewer"):
        recalibration(store, "sums")


def test_without_keys_the_page_reviews_and_feedback_does_not(upstream, sums_policy, store):
    with served(upstream, sums_policy, store) as (app, address):
        told = [ask(address, number, {}) for number in range(200, 224, 2)]
        person, request = Person(address), told[0]["request_id"]
        assert person.judge(person.claim(request=request), verdict="wrong").status_code == 200
        assert {say(address, one, {}, verdict="right") for one in told} == {"caller"}  # the last word, under one name
        labels = recalibration(store, "sums").audits.labels
        assert labels == {one["request_id"]: None for one in told} | {request: False}
        assert person.post("undo", request=request).json()["state"] == "open"
        assert person.post("undo", request=told[1]["request_id"]).status_code == 409
        look(app)
        assert counted(app) == 0


def test_a_reviewer_sees_what_callers_say_with_the_vote_and_not_before(upstream, sums_policy, store):
    with served(upstream, sums_policy, store) as (_, address):
        told, person = ask(address, 4, {}), Person(address)
        say(address, told, {}, verdict="wrong", answer="-9.25")
        item = person.claim(request=told["request_id"])
        assert item["vote"] is None
        assert "-9.25" not in str(item)
        judged = person.judge(item, verdict="right").json()
        assert judged["vote"]["callers"] == [{"verdict": "wrong", "answer": "-9.25"}]
        (done,) = person.get("queue", state="done").json()["items"]
        assert [(word["verdict"], word["by_caller"]) for word in done["said"]] == [("wrong", True), ("right", False)]
