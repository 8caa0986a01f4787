"""Every decision is kept before its caller hears of it, and what people say of it later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import requests

from demur.policy.policy import Policy
from demur.server.app import make_app
from demur.server.log import DecisionLog, contested
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from demur.store.service import ServiceStore
from serving import adding_pipeline, listening


def logged(url, policy, store, **settings):
    told = ServiceSettings(**settings)
    row = store.policies.register("sums", policy.document(), policy.fingerprint, 1)
    served = Served("sums", policy, adding_pipeline(url).answerer(policy), row.version, row.policy)
    service = Service(Models({"sums": served}), told, log=DecisionLog(store, texts=told.texts), audit_secret=b"k")
    return make_app(service, store)


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


def ask(address, question):
    body = {"model": "sums", "messages": [{"role": "user", "content": question}]}
    return requests.post(f"{address}/v1/chat/completions", json=body).json()


def test_a_policy_comes_back_from_the_store_as_it_was(sums_policy, store):
    row = store.policies.register("sums", sums_policy.document(), sums_policy.fingerprint, 1)
    again = Policy.of_document(store.policies.get(row.policy).document)
    assert again.document() == sums_policy.document()


def test_decisions_are_kept_and_abstentions_go_to_people(upstream, sums_policy, store):
    with listening(logged(upstream.url, sums_policy, store, audit_share=1e-9)) as address:
        answered, abstained = ask(address, "What is 4 + 1?"), ask(address, "What is 5 + 1?")
    first = store.decisions.get(answered["demur"]["request_id"])
    assert (first.outcome, first.answer, first.question, first.paths) == ("answered", "5", "What is 4 + 1?", ())
    second = store.decisions.get(abstained["demur"]["request_id"])
    assert (second.outcome, second.answer, len(second.paths)) == ("abstained", None, 5)
    assert [item.request for item in store.reviews.queue()] == [second.request]


def test_without_texts_nothing_that_anybody_wrote_is_kept(upstream, sums_policy, store, tmp_path):
    with listening(logged(upstream.url, sums_policy, store, texts=False, audit_share=1.0)) as address:
        ask(address, "What is 4444444444 + 1?")
    store.close()
    raw = b"".join(file.read_bytes() for file in tmp_path.glob("service.db*"))
    assert b"4444444444" not in raw
    assert b"4444444445" not in raw


def test_feedback_is_idempotent_and_kept_as_history(upstream, sums_policy, store):
    with listening(logged(upstream.url, sums_policy, store)) as address:
        request = ask(address, "What is 4 + 1?")["demur"]["request_id"]

        def say(**body):
            return requests.post(f"{address}/v1/feedback", json={"request_id": request, **body})

        assert say(verdict="right").json()["said_before"] == 0
        assert say(verdict="right").json()["said_before"] == 0
        assert say(verdict="wrong").json()["said_before"] == 1
        assert say().status_code == 400
        assert say(answer=" ").status_code == 400
        unknown = requests.post(f"{address}/v1/feedback", json={"request_id": "req_none", "verdict": "right"})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "request_not_found"
    assert [said.verdict for said in store.feedback.history(request)] == ["right", "wrong"]


def test_a_verdict_and_a_true_answer_must_not_contradict_each_other(upstream, sums_policy, store):
    with listening(logged(upstream.url, sums_policy, store)) as address:
        request = ask(address, "What is 4 + 1?")["demur"]["request_id"]

        def say(**body):
            return requests.post(f"{address}/v1/feedback", json={"request_id": request, **body})

        assert say(verdict="right", answer="6").json()["error"]["code"] == "contradiction"
        assert say(verdict="wrong", answer="5.0").json()["error"]["code"] == "contradiction"
        assert say(verdict="right", answer="5.0").status_code == 200
    assert [said.verdict for said in store.feedback.history(request)] == ["right"]


@pytest.mark.parametrize(
    ("shares", "close"),
    [({}, 1.0), ({"a": 1.0}, 0.0), ({"a": 0.5, "b": 0.5}, 1.0), ({"b": 0.3, "a": 0.6, "c": 0.1}, 0.7)],
)
def test_votes_are_contested_by_how_close_the_first_two_answers_are(shares, close):
    outcome = SimpleNamespace(asked=SimpleNamespace(decision=SimpleNamespace(shares=shares)))
    assert contested(outcome) == pytest.approx(close)
    assert contested(SimpleNamespace(asked=None)) == 1.0
