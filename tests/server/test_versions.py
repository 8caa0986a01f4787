"""Versions of a policy: swapped under load without losing a request, decided beside, addressable for ever."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
import requests

from demur.errors import PipelineMismatch, PolicyFileError, StoreError
from demur.pipeline.recalibration import recalibration
from demur.pipeline.shadow_comparison import IN_DOUBT, decided_twice, shadow_comparison
from demur.policy.signed_documents import document_of, policy_of
from demur.server.app import make_app
from demur.server.log import DecisionLog
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from demur.server.versions.versions import Versions
from demur.store.service import ServiceStore
from service_rows import decision
from serving import adding_pipeline, listening

KEY = "k" * 40


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


def versioned(url, policy, store, *, aliases=None, key=None, **settings):
    """An application that follows the store, and its service."""
    told = ServiceSettings(**{"audit_share": 1.0, **settings})
    versions = Versions(store, {"sums": adding_pipeline(url)}, key=key)
    versions.enter("sums", policy, 1)
    service = Service(versions.models(aliases or {}), told, log=DecisionLog(store, texts=told.texts), audit_secret=b"k")
    return make_app(service, store, chores=[partial(versions.follow, service, 0.05)]), service


def ask(address, question, model="sums"):
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    return requests.post(f"{address}/v1/chat/completions", json=body, timeout=300)


def policy_in(reply):
    return reply.json()["demur"]["policy"]


def traffic(address, store, n=60):
    """Audited requests with their verdicts: the adding model is right on even numbers."""
    for k in range(n):
        request = ask(address, f"What is {k} + 1?").json()["demur"]["request_id"]
        store.feedback.give(request, "ann", 5, verdict="right" if k % 2 == 0 else "wrong", source="review")


def proposed(store, *, shadow=False, key=None, **how):
    new = recalibration(store, "sums", **how).new
    return store.policies.propose("sums", document_of(new, key), new.fingerprint, 2, shadow=shadow)


def until(what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_a_new_version_answers_within_moments_and_the_old_stays_addressable(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store)
    with listening(app) as address:
        traffic(address, store)
        proposed(store)
        assert until(lambda: policy_in(ask(address, "What is 4 + 1?")) == "sums:v2")
        assert policy_in(ask(address, "What is 4 + 1?", "sums:v1")) == "sums:v1"
        assert policy_in(ask(address, "What is 4 + 1?", "sums:v1@0.3")) == "sums:v1"
        listed = {model["id"] for model in requests.get(f"{address}/v1/models").json()["data"]}
        assert {"sums", "sums:v1"} <= listed
        store.policies.activate(1)
        assert until(lambda: policy_in(ask(address, "What is 4 + 1?")) == "sums:v1")


def test_two_hundred_requests_in_flight_survive_swaps(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store, fan_out=2_000)
    with listening(app) as address:
        traffic(address, store)
        newer = proposed(store).policy
        upstream.delay = 0.3
        with ThreadPoolExecutor(200) as pool:
            asked = [pool.submit(ask, address, f"What is {1000 + k} + 1?") for k in range(200)]
            for turn in range(6):
                store.policies.activate((1, newer)[turn % 2])
                time.sleep(0.15)
            replies = [one.result() for one in asked]
        upstream.delay = 0.0
    assert [reply.status_code for reply in replies] == [200] * 200
    versions = {policy_in(reply) for reply in replies}
    assert versions <= {"sums:v1", "sums:v2"}
    numbers = {"sums:v1": 1, "sums:v2": newer}
    for reply in replies:
        told = reply.json()["demur"]
        assert told["paths"]["drawn"] == 5
        assert store.decisions.get(told["request_id"]).policy == numbers[told["policy"]]


def test_a_shadow_decides_beside_the_old_and_the_caller_hears_nothing_of_it(upstream, sums_policy, store):
    app, service = versioned(upstream.url, sums_policy, store)
    with listening(app) as address:
        traffic(address, store)
        assert ask(address, "What is 4 + 1?", "sums:v2").status_code == 404
        proposed(store, shadow=True)
        assert until(lambda: service.models.shadows)
        assert ask(address, "What is 4 + 1?", "sums:v2").status_code == 404
        replies = [ask(address, f"What is {k} + 1?").json() for k in range(100, 110)]
    kept = [store.decisions.get(reply["demur"]["request_id"]).document for reply in replies]
    assert {reply["demur"]["policy"] for reply in replies} == {"sums:v1"}
    assert all("shadow" not in reply["demur"] for reply in replies)
    assert all(told["shadow"]["policy"] == "sums:v2" and told["shadow"]["same_vote"] for told in kept)
    assert {told["shadow"]["decision"] for told in kept} == {"answered", "abstained"}
    store.feedback.give(replies[0]["demur"]["request_id"], "ann", 9, verdict="right", source="review")
    found = shadow_comparison(store, "sums")
    answered = sum(reply["demur"]["decision"] == "answered" for reply in replies)
    assert (found.audited.requests, found.audited.old_answered) == (10, answered)
    assert found.audited.new_answered == sum(told["shadow"]["decision"] == "answered" for told in kept)
    assert (found.audited.old_wrong, found.audited.old_unlabelled) == (0, answered - 1)
    assert found.newest.requests == 10
    store.policies.retire(found.shadow.policy)
    assert shadow_comparison(store, "sums") is None


def test_an_alarm_that_forbids_answers_does_not_make_the_old_version_look_careful():
    def made(outcome, shadow, cause=None):
        told = {"shadow": {"version": 2, "decision": shadow, "same_vote": True}, "cause": cause}
        return decision("r", 1, outcome=outcome, document=told)

    overruled = [made("abstained", new, IN_DOUBT) for new in ("answered", "abstained")]
    found = decided_twice([*overruled, made("answered", "answered"), made("abstained", "answered")], 2, {"r": False})
    assert (found.requests, found.both, found.only_old, found.only_new) == (4, 2, 1, 1)
    assert (found.old_wrong, found.new_wrong) == (3, 3)


def test_a_version_that_lacks_an_alias_is_not_served_and_that_is_an_event(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store, aliases={"gpt": "sums@0.3"})
    with listening(app) as address:
        traffic(address, store)
        proposed(store, alphas=[0.1])
        assert until(lambda: store.events.latest(kind="version_not_served"))
        assert policy_in(ask(address, "What is 4 + 1?", "gpt")) == "sums:v1"
        assert policy_in(ask(address, "What is 4 + 1?")) == "sums:v1"
    assert len(store.events.latest(kind="version_not_served")) == 1


def test_a_policy_of_another_pipeline_is_not_swapped_in(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store)
    document = sums_policy.document()
    document["pipeline"]["sampling"]["model"] = "another"
    with listening(app) as address:
        store.policies.propose("sums", document, "sha256:other", 3)
        assert until(lambda: store.events.latest(kind="version_not_served"))
        assert policy_in(ask(address, "What is 4 + 1?")) == "sums:v1"
    with pytest.raises((PipelineMismatch, PolicyFileError)):
        versioned(upstream.url, sums_policy, store)


def test_a_file_that_is_older_than_the_active_version_brings_nothing_back(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store)
    with listening(app) as address:
        traffic(address, store)
    proposed(store)
    _, service = versioned(upstream.url, sums_policy, store)
    assert service.models.active["sums"].full_name == "sums:v2"
    assert [one.full_name for one in service.models.earlier] == ["sums:v1"]


def test_with_a_key_only_versions_that_were_signed_are_served(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store, key=KEY)
    with listening(app) as address:
        traffic(address, store)
        proposed(store, alphas=[0.1, 0.3])
        assert until(lambda: store.events.latest(kind="version_not_served"))
        assert policy_in(ask(address, "What is 4 + 1?")) == "sums:v1"
        store.policies.activate(1)
        proposed(store, alphas=[0.1, 0.3], key=KEY)
        assert until(lambda: policy_in(ask(address, "What is 4 + 1?")) == "sums:v3")


def test_a_document_in_the_store_is_signed_like_a_file(sums_policy):
    signed = document_of(sums_policy, KEY)
    assert policy_of(signed, "it", KEY).document() == sums_policy.document()
    for broken in ({**signed, "signature": "hmac-sha256:00"}, sums_policy.document()):
        with pytest.raises(PolicyFileError):
            policy_of(broken, "it", KEY)


def test_a_version_that_cannot_be_served_does_not_hold_up_those_of_other_policies(upstream, sums_policy, store):
    pipeline = adding_pipeline(upstream.url)
    versions = Versions(store, {"sums": pipeline, "others": pipeline})
    for name in ("sums", "others"):
        versions.enter(name, sums_policy, 1)
    before = versions.models({})
    bad, good = sums_policy.document(), policy_at(sums_policy)
    bad["pipeline"]["sampling"]["model"] = "another"
    store.policies.propose("sums", bad, "sha256:other", 3)
    store.policies.propose("others", good.document(), good.fingerprint, 3)
    after = versions.models({}, before.active)
    assert {served.full_name for served in after.active.values()} == {"sums:v1", "others:v2"}
    assert "version 2 of sums is not served" in versions.refused[0]


def policy_at(policy):
    """The same policy at its strictest alpha alone."""
    return replace(policy, points=policy.points[:1])


def test_versions_are_followed_again_once_the_store_is_back(upstream, sums_policy, store):
    app, _ = versioned(upstream.url, sums_policy, store)
    states = store.policies.states

    def gone():
        raise StoreError("the store is away")

    with listening(app) as address:
        traffic(address, store)
        store.policies.states = gone
        proposed(store)
        time.sleep(0.3)
        assert policy_in(ask(address, "What is 4 + 1?")) == "sums:v1"
        store.policies.states = states
        assert until(lambda: policy_in(ask(address, "What is 4 + 1?")) == "sums:v2")
