"""Alarms while the service runs: quiet while nothing changes, raised by what did, told in every response."""

from __future__ import annotations

import random

import pytest
import requests

from demur.monitoring import DriftMonitor
from demur.store.service import ServiceStore
from patience import wait_until
from serving import listening
from watching import ask, ask_all, judge, later, look, monitors, watched_app


def numbers(seed, n, odd=0.5):
    """Distinct numbers to add to, odd ones with so much probability."""
    rng = random.Random(seed)
    return [2 * number + (rng.random() < odd) for number in rng.sample(range(100, 40_000), n)]


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def app(upstream, sums_policy, store):
    return watched_app(upstream.url, sums_policy, store)


def drift_alarm(address, app):
    """Questions as none that calibrated: all of them are hard."""
    ask_all(address, numbers(1, 60, odd=1.0))
    look(app)


def test_exchangeable_traffic_raises_no_alarm(app, store):
    with listening(app) as address:
        told = ask_all(address, numbers(0, 150))
        judge(store, told, "right")
        look(app)
        watched = monitors(app)
        assert watched.drift.read()[1].monitor.n == 150
        assert watched.errors[0].read()[1].monitor.n == 150
        assert app.state.service.doubts == {}
        assert "in_doubt" not in ask(address, 10)
    assert store.events.latest() == []


def test_shifted_questions_raise_the_drift_alarm(app, store):
    with listening(app) as address:
        drift_alarm(address, app)
        told = ask(address, 10)
        assert told["decision"] == "answered"
        assert told["in_doubt"]["why"].startswith("The promise is in doubt since ")
        assert "not known yet which, because no canary was asked since then." in told["in_doubt"]["why"]
        metrics = requests.get(f"{address}/metrics").text
        look(app)
    assert 'demur_alarm{kind="drift",policy="sums:v1"} 1.0' in metrics
    assert 'demur_alarm{kind="errors",policy="sums:v1"} 0.0' in metrics
    [event] = store.events.latest()
    assert event.kind == "alarm"
    assert event.words.startswith("Keys have drifted: alarm at key ")


def test_wrong_answers_in_audits_raise_the_error_alarm(app, store):
    with listening(app) as address:
        judge(store, ask_all(address, numbers(2, 60)), "wrong")
        look(app)
        told = ask(address, 10)
    assert "Errors above the promise" in told["in_doubt"]["why"]
    assert {event.facts["monitor"] for event in store.events.latest()} == {"errors 0.1 marginal"}


def test_each_operating_point_is_watched_by_its_own_audits(app, store):
    with listening(app) as address:
        judge(store, ask_all(address, numbers(3, 20), "sums@0.3"), "right")
        judge(store, ask_all(address, numbers(4, 10)), "right")
        look(app)
    strict, loose = monitors(app).errors
    assert (strict.rule.alpha, loose.rule.alpha) == (0.1, 0.3)
    assert (strict.read()[1].monitor.n, loose.read()[1].monitor.n) == (10, 20)


def test_audits_wait_for_the_labels_of_those_before(app, store):
    with listening(app) as address:
        told = [ask(address, number) for number in (200, 201, 202, 204)]
        look(app)
        errors = monitors(app).errors[0]
        assert errors.read()[1].monitor.n == 0  # 200 was answered, and nobody has said how
        store.feedback.give(told[2]["request_id"], "ann", 1, verdict="wrong", source="review")
        look(app)
        assert errors.read()[1].monitor.n == 0
        store.feedback.give(told[0]["request_id"], "ann", 1, answer="201.0", source="review")
        look(app)
        assert errors.read()[1].counts == {"abstained": 1, "right": 1, "wrong": 1, "given_up": 0}
        store.feedback.give(told[3]["request_id"], "ann", 1, verdict="unsure", source="review")
        look(app)
        assert errors.read()[1].monitor.n == 3
        look(app, 8 * 24 * 3600)
        assert errors.read()[1].counts["given_up"] == 1
        assert errors.read()[1].monitor.errors == 1


def test_a_true_answer_that_differs_makes_an_answer_wrong(app, store):
    with listening(app) as address:
        told = ask(address, 300)
        store.feedback.give(told["request_id"], "ann", 1, answer="17", source="review")
        look(app)
    assert monitors(app).errors[0].read()[1].counts["wrong"] == 1


@pytest.mark.parametrize("effect", ["abstain", "strictest"])
def test_what_an_alarm_does_is_configured(upstream, sums_policy, store, effect):
    app = watched_app(upstream.url, sums_policy, store, on_alarm=effect)
    with listening(app) as address:
        before = ask(address, 10, "sums@0.3")
        assert (before["decision"], before["alpha"]) == ("answered", 0.3)
        drift_alarm(address, app)
        after, failed = ask(address, 12, "sums@0.3"), ask(address, 13)
    assert "in_doubt" in after
    assert failed["decision"] == "abstained"
    assert "promise_in_doubt" not in failed.values()  # the policy itself would not have answered
    if effect == "abstain":
        assert (after["decision"], after["cause"], after["answer"]) == ("abstained", "promise_in_doubt", None)
        assert after["reason"].startswith("Not answered: the promise is in doubt")
    else:
        assert (after["decision"], after["alpha"], after["in_doubt"]["asked_alpha"]) == ("answered", 0.1, 0.3)


def test_no_audit_counts_in_error_rates_while_an_alarm_forbids_answers(upstream, sums_policy, store):
    app = watched_app(upstream.url, sums_policy, store, on_alarm="abstain")
    with listening(app) as address:
        judge(store, ask_all(address, numbers(1, 60, odd=1.0)), "right")
        look(app)
        overruled, abstained = ask(address, 90_010), ask(address, 90_015)
        look(app)
    assert overruled["cause"] == "promise_in_doubt"
    assert overruled["explanation"] == overruled["reason"]  # and not why the policy would have answered
    assert overruled["in_doubt"]["nothing_is_answered"]
    assert "cause" not in abstained
    watch = monitors(app).errors[0].read()[1]
    assert (watch.monitor.n, watch.turn) == (60, 62)  # abstentions without the answers beside them would be a choice
    assert monitors(app).drift.read()[1].monitor.n == 62


def test_an_administrator_clears_doubts_and_monitors_begin_anew(app, store):
    with listening(app) as address:
        drift_alarm(address, app)
        cleared = requests.post(f"{address}/status/api/clear", json={"policy": "sums:v1", "note": "new form"})
        assert cleared.json() == {"policy": "sums:v1", "in_doubt": False}
        assert "in_doubt" not in ask(address, 90_010)
        unknown = requests.post(f"{address}/status/api/clear", json={"policy": "sums:v9"})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "policy_not_found")
        look(app)
        assert monitors(app).drift.read()[1].monitor.n == 1
        ask_all(address, numbers(5, 60, odd=1.0))
        look(app)
        assert "in_doubt" in ask(address, 12)
    kinds = [event.kind for event in store.events.latest()]
    assert sorted(kinds) == ["alarm", "alarm", "cleared"]
    [event] = store.events.latest(kind="cleared")
    assert event.facts["who"] == "anybody"
    assert event.facts["note"] == "new form"


def test_what_was_asked_before_doubts_are_cleared_counts_for_no_monitor(app, store):
    """Also if no monitor had looked at it yet."""
    with listening(app) as address:
        judge(store, ask_all(address, numbers(1, 20)), "wrong")
        assert requests.post(f"{address}/status/api/clear", json={"policy": "sums:v1"}, timeout=300).ok
        look(app)
        watched = monitors(app)
        assert [watching.read()[1].monitor.n for watching in (watched.drift, *watched.errors)] == [0, 0, 0]
        ask_all(address, numbers(2, 7))
        look(app, seconds=2000)
        assert watched.drift.read()[1].monitor.n == 7


def test_a_restarted_service_knows_what_is_in_doubt_and_goes_on(upstream, sums_policy, store):
    first = watched_app(upstream.url, sums_policy, store)
    with listening(first) as address:
        ask_all(address, numbers(6, 25, odd=1.0))
        look(first)
    with listening(watched_app(upstream.url, sums_policy, store)) as address:
        ask_all(address, numbers(7, 25, odd=1.0))
    last = watched_app(upstream.url, sums_policy, store)
    look(last)
    keys = [
        made.vote_key for made in sorted(store.decisions.search(limit=100), key=lambda made: (made.at, made.request))
    ]
    whole = DriftMonitor(sums_policy, delta=0.01).update(keys)
    assert monitors(last).drift.read()[1].monitor.document() == whole.document()
    again = watched_app(upstream.url, sums_policy, store)
    with listening(again) as address:
        assert "in_doubt" in ask(address, 10)


def test_alarms_are_looked_for_without_anybody_asking(upstream, sums_policy, store, monkeypatch):
    monkeypatch.setattr("demur.server.alarms.alarms.milliseconds", later)
    app = watched_app(upstream.url, sums_policy, store, watch_seconds=0.05)
    with listening(app) as address:
        ask_all(address, numbers(8, 60, odd=1.0))
        wait_until(lambda: "in_doubt" in ask(address, 10))


def test_the_status_says_all_of_it(app, store):
    with listening(app) as address:
        judge(store, ask_all(address, numbers(9, 40)), "right")
        ask(address, 5000)
        look(app)
        [told] = requests.get(f"{address}/status/api").json()["policies"]
    day = told["periods"][0]
    assert (day["requests"], day["answered"] + day["abstained"], day["failed"]) == (41, 41, 0)
    point = told["points"][0]
    assert (point["audited"], point["awaited"], point["wrong"]) == (41, 1, 0)
    assert point["accuracy"] == 1.0
    assert point["accuracy_limits"][0] < point["accuracy_limits"][1] == 1.0
    assert told["diagnosis"] == "No alarm: nothing speaks against the promise."
    assert told["versions"] == [{"version": 1, "state": "active", "at": "1970-01-01T00:00:00+00:00"}]
    assert told["canaries"] is None
