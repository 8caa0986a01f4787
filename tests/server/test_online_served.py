"""A threshold that audits move while the service runs: raised by errors, and never below the calibrated one."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import requests

from demur.errors import InvalidValue
from demur.pipeline.audited_votes import audited_votes
from demur.pipeline.shadow_comparison import IN_DOUBT, RAISED
from demur.pipeline.waves import Waves
from demur.server.api.reply_forms import CompletionReply, DecisionReply
from demur.server.outcomes import MovedThreshold
from demur.server.service import _overruling
from demur.server.settings import ServiceSettings
from demur.store.service import ServiceStore
from serving import listening, service_of
from watching import ask, ask_all, judge, look, monitors, watched_app

STEP = 0.9
"""One error in audits, and nothing is answered any more."""
SUM = {"model": "sums", "messages": [{"role": "user", "content": "What is 4 + 1?"}]}


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def app(upstream, sums_policy, store):
    return watched_app(upstream.url, sums_policy, store, online_step=STEP)


def raise_it(app, address, store, numbers=(100,)):
    """Have answers turn out to be wrong."""
    told = [ask(address, number) for number in numbers]
    judge(store, told, "wrong")
    look(app)
    return told


def moved(app, place=0):
    return monitors(app).online[place].state()


def test_an_error_in_audits_raises_the_threshold_and_questions_without_bring_it_back(app, store):
    with listening(app) as address:
        [before] = raise_it(app, address, store)
        after = ask(address, 4)
        assert (before["decision"], after["decision"], after["cause"]) == ("answered", "abstained", "threshold_raised")
        assert after["answer"] is None
        assert after["threshold"] > after["calibrated_threshold"] == before["threshold"]
        assert after["reason"] == after["explanation"]
        assert after["reason"] == (
            "Not answered: confidence 1.000 is not above the threshold 1.000; "
            "errors found in audits have raised this threshold above the calibrated one."
        )
        assert (after["promise"], after["p_value"]) == (before["promise"], ask(address, 4)["p_value"])
        ask_all(address, range(201, 221, 2))  # the policy abstains from these itself
        look(app)
        assert moved(app).raised_key is None
        again = ask(address, 6)
    assert again["decision"] == "answered"
    assert "calibrated_threshold" not in again
    state = moved(app)
    assert (state.errors, state.furthest_behind, state.n - state.answered >= 10) == (1, 1, True)
    assert state.threshold == state.start


def test_replies_keep_their_shape_and_the_log_alone_knows_the_errors(app, store):
    with listening(app) as address:
        raise_it(app, address, store)
        key = {"Idempotency-Key": "k"}
        first, second = (requests.post(f"{address}/v1/chat/completions", json=SUM, headers=key) for _ in range(2))
        assert (first.status_code, second.headers["idempotent-replayed"]) == (200, "true")
        assert first.json() == second.json()
        reply = CompletionReply.model_validate(first.json(), strict=True)
        streamed = requests.post(f"{address}/v1/chat/completions", json={**SUM, "stream": True}).text
    assert "errors found in audits" in streamed
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.content == ServiceSettings().abstain_text
    assert reply.choices[0].message.refusal.startswith("Not answered: ")
    assert "known_errors" not in first.json()["demur"]
    kept = store.decisions.get(reply.demur.request_id)
    assert (kept.outcome, kept.document["known_errors"], kept.document["cause"]) == ("abstained", 1, "threshold_raised")


def test_pools_that_were_drawn_elsewhere_are_decided_by_it_too(app, store):
    paths = [{"text": "So \\boxed{5}", "scores": {"perplexity": 0.9}}] * 5
    body = {"model": "sums", "question": "What is 4 + 1?", "paths": paths}
    with listening(app) as address:
        before = requests.post(f"{address}/v1/decide", json=body)
        raise_it(app, address, store)
        after = requests.post(f"{address}/v1/decide", json=body)
    assert (before.status_code, after.status_code) == (200, 200), before.text
    assert before.json()["decision"] == "answered"
    assert DecisionReply.model_validate(after.json(), strict=True).cause == "threshold_raised"


def test_pools_that_were_drawn_elsewhere_are_no_audits(app, store):
    """Whoever may ask could invent them, say that they are right, and have the next threshold made of them."""
    paths = [{"text": "So \\boxed{5}", "scores": {"perplexity": 0.9}}] * 5
    with listening(app) as address:
        asked = ask(address, 4)
        body = {"model": "sums", "question": "What is 8 + 1?", "paths": paths}
        given = requests.post(f"{address}/v1/decide", json=body).json()
    kept = store.decisions.several([asked["request_id"], given["request_id"]])
    assert [kept[one["request_id"]].audit for one in (asked, given)] == [True, False]


def test_points_move_by_themselves(app, store):
    with listening(app) as address:
        raise_it(app, address, store)
        assert ask(address, 4)["decision"] == "abstained"
        assert ask(address, 4, "sums@0.3")["decision"] == "answered"
    assert (moved(app, 0).errors, moved(app, 1).errors) == (1, 0)


def test_only_keys_below_the_raised_threshold_are_overruled(upstream, sums_policy, store):
    app = watched_app(upstream.url, sums_policy, store, online_step=0.4)
    with listening(app) as address:
        raise_it(app, address, store)
        raised = moved(app).raised_key
        told = ask_all(address, range(300, 340, 2))
    decided = {store.decisions.get(one["request_id"]).vote_key > raised: one["decision"] for one in told}
    assert decided == {True: "answered", False: "abstained"}
    assert all(
        (one["decision"] == "answered") == (store.decisions.get(one["request_id"]).vote_key > raised) for one in told
    )


def test_while_it_is_raised_pools_are_drawn_whole(upstream, majority, store):
    app = watched_app(upstream.url, majority, store, online_step=0.4, waves=Waves(3, 1))
    service = app.state.service
    with listening(app) as address:
        service.is_audited = lambda _: False
        early = ask_all(address, range(300, 320))
        service.is_audited = lambda _: True
        raise_it(app, address, store)
        service.is_audited = lambda _: False
        raised = moved(app).raised_key
        whole = ask_all(address, range(400, 420))
    assert min(one["paths"]["drawn"] for one in early) == 5
    assert {one["paths"]["drawn"] for one in whole} == {8}
    calibrated = majority.point().threshold_key
    for one in whole:
        key = store.decisions.get(one["request_id"]).vote_key
        assert (one["decision"] == "answered") == (key > calibrated and key > raised)
    assert {one.get("cause") for one in whole} == {None, "threshold_raised"}


def test_identical_requests_are_each_decided_by_the_threshold_that_they_met(app, store, upstream):
    with listening(app) as address, ThreadPoolExecutor(3) as callers:
        judge(store, [ask(address, 100)], "wrong")
        upstream.delay = 0.5
        before = [callers.submit(ask, address, 4) for _ in range(2)]
        while sum(pool.waiting for pool in list(app.state.service._pools._underway.values())) < 2:
            time.sleep(0.01)
        look(app)
        after = callers.submit(ask, address, 4)
        told = [one.result() for one in (*before, after)]
    assert [one.get("cause") for one in told] == [None, None, "threshold_raised"]
    assert [store.decisions.get(one["request_id"]).document["known_errors"] for one in told] == [0, 0, 1]


def test_what_it_overrules_counts_everywhere_as_not_answered(app, store, sums_policy):
    with listening(app) as address:
        raise_it(app, address, store)
        overruled = ask(address, 104)
        look(app)
        [told] = requests.get(f"{address}/status/api").json()["policies"]
    watched = monitors(app)
    assert watched.errors[0].read()[1].counts == {"abstained": 1, "right": 0, "wrong": 1, "given_up": 0}
    assert watched.errors[0].read()[1].monitor.n == 2
    assert watched.drift.read()[1].monitor.n == 2
    point = told["points"][0]
    assert (point["audited"], point["answered"], point["wrong"]) == (2, 1, 1)
    made = store.decisions.search(audit=True)
    votes = audited_votes(made, store.feedback.latest([one.request for one in made]), sums_policy)
    assert votes.labels == {overruled["request_id"]: None, told_wrong(votes): False}
    store.feedback.give(overruled["request_id"], "ann", 1, verdict="right", source="review")
    votes = audited_votes(made, store.feedback.latest([one.request for one in made]), sums_policy)
    assert votes.labels[overruled["request_id"]] is True


def told_wrong(votes):
    [request] = [request for request, right in votes.labels.items() if right is False]
    return request


def test_an_alarm_and_a_raised_threshold_are_told_apart(upstream, sums_policy, store):
    app = watched_app(upstream.url, sums_policy, store, online_step=STEP, on_alarm="abstain")
    with listening(app) as address:
        told = ask_all(address, range(1001, 1121, 2))  # none as those that calibrated: drift
        look(app)
        stopped = ask(address, 104)
        look(app)
        before = moved(app)
        judge(store, told, "wrong")
        look(app)
        both = ask(address, 106)
    assert (stopped["cause"], both["cause"]) == ("promise_in_doubt", "threshold_raised")
    assert before.n == 61
    assert len(before.awaited) == sum(one["decision"] == "answered" for one in told)  # what was stopped is not


def test_labels_come_in_any_order_late_or_never(app, store):
    with listening(app) as address:
        told = [ask(address, number) for number in (200, 202, 204)]
        look(app)
        assert list(moved(app).awaited) == [one["request_id"] for one in told]
        store.feedback.give(told[2]["request_id"], "ann", 1, answer="17", source="review")
        store.feedback.give(told[1]["request_id"], "ann", 1, verdict="unsure", source="review")
        look(app)
        state = moved(app)
        assert (state.errors, len(state.awaited), state.furthest_behind) == (1, 2, 1)
        store.feedback.give(told[0]["request_id"], "ann", 1, verdict="wrong", source="review")
        look(app)
        assert moved(app).furthest_behind == 2  # decided when no error was known, and the second to become so
        look(app, 8 * 24 * 3600)
    state = moved(app)
    assert (state.given_up, state.awaited, state.without_label) == (1, {}, 1)


def test_an_administrator_has_it_begin_anew(app, store):
    with listening(app) as address:
        raise_it(app, address, store)
        late = ask(address, 104)
        requests.post(f"{address}/status/api/clear", json={"policy": "sums:v1"}).raise_for_status()
        after = ask(address, 106)
        assert after["decision"] == "answered"
        judge(store, [after], "wrong")
        look(app)
    state = moved(app)
    assert late["cause"] == "threshold_raised"
    assert (state.n, state.errors, state.earlier_errors, state.furthest_behind) == (1, 1, 1, 1)


def test_it_is_known_before_the_first_request_and_shared(app, store, upstream, sums_policy):
    other = watched_app(upstream.url, sums_policy, store, online_step=STEP)
    with listening(app) as address, listening(other) as beside:
        raise_it(app, address, store)
        behind = ask(beside, 104)  # has not looked since
        assert behind["decision"] == "answered"
        look(other)
        assert ask(beside, 106)["cause"] == "threshold_raised"
        judge(store, [behind], "wrong")
        look(app)
    assert moved(app).furthest_behind == 2
    assert moved(app).document() == moved(other).document()
    with listening(watched_app(upstream.url, sums_policy, store, online_step=STEP)) as address:
        assert ask(address, 108)["cause"] == "threshold_raised"


def test_it_begins_behind_the_audits_that_were_there(upstream, sums_policy, store):
    plain = watched_app(upstream.url, sums_policy, store)
    with listening(plain) as address:
        told = [ask(address, 100), ask(address, 101)]
        look(plain)
    assert "known_errors" not in store.decisions.get(told[0]["request_id"]).document
    app = watched_app(upstream.url, sums_policy, store, online_step=STEP)
    judge(store, told, "wrong")
    look(app)
    assert moved(app).n == 0


def test_the_step_that_it_began_with_stays_until_it_is_cleared(app, upstream, sums_policy, store):
    look(app)
    other = watched_app(upstream.url, sums_policy, store, online_step=0.01)
    words = "The threshold at alpha 0.1 (marginal) moves in steps of 0.9, as it began, and not of 0.01"
    with listening(other) as address:
        [told] = requests.get(f"{address}/status/api").json()["policies"]
        assert told["notes"][0].startswith(words)
        requests.post(f"{address}/status/api/clear", json={"policy": "sums:v1"}).raise_for_status()
        [told] = requests.get(f"{address}/status/api").json()["policies"]
    assert told["notes"] == []
    assert told["points"][0]["online"]["step"] == 0.01


def test_the_status_and_the_metrics_say_where_it_is(app, store):
    with listening(app) as address:
        raise_it(app, address, store)
        [told] = requests.get(f"{address}/status/api").json()["policies"]
        metrics = requests.get(f"{address}/metrics").text
    online = told["points"][0]["online"]
    assert (online["threshold"], online["raised"], online["errors"], online["awaited"]) == (1.0, True, 1, 0)
    assert online["calibrated"] < 1
    assert online["bound"] == 1.0
    assert online["sentence"].startswith("The threshold is raised: it leaves 100.0% of the calibration keys behind")
    assert told["points"][1]["online"]["sentence"].startswith("The calibrated threshold is in force.")
    assert 'demur_online_threshold{point="0.1 marginal",policy="sums:v1"} 1.0' in metrics
    assert 'demur_online_awaited{point="0.1 marginal",policy="sums:v1"} 0.0' in metrics
    assert 'demur_online_most_errors{point="0.1 marginal",policy="sums:v1"} 1.0' in metrics


def test_without_the_option_nothing_of_it_is_there(upstream, sums_policy, store):
    app = watched_app(upstream.url, sums_policy, store)
    with listening(app) as address:
        raise_it(app, address, store)
        assert ask(address, 104)["decision"] == "answered"
        [told] = requests.get(f"{address}/status/api").json()["policies"]
    assert told["points"][0]["online"] is None
    assert app.state.service.thresholds == {}


@pytest.mark.parametrize("step", [0, 1, -0.1, float("nan"), float("inf")])
def test_a_step_that_means_nothing_is_refused(step):
    with pytest.raises(InvalidValue, match=r"online_step must (lie|be a number) strictly between 0 and 1, got"):
        ServiceSettings(online_step=step)


def test_without_a_log_there_are_no_audits_to_follow(upstream, sums_policy):
    from demur.server.app import make_app

    with pytest.raises(InvalidValue, match="needs the log that they are in; leave no_log out"):
        make_app(service_of(upstream.url, sums_policy, online_step=0.01))


def test_what_is_exactly_at_a_raised_threshold_is_not_answered():
    """Answers exceed their threshold, raised or not; a pool that ended early does not say by how much."""

    def overruled(key, *, raised, whole=True, closed=False):
        decision = SimpleNamespace(abstained=False, key=key)
        drawn = SimpleNamespace(asked=SimpleNamespace(decision=decision, whole=whole))
        return _overruling(drawn, MovedThreshold(raised, 1), closed=closed)

    assert overruled((0.7, 0.2), raised=(0.7, 0.2)) == RAISED
    assert overruled((0.7, 0.2), raised=(0.7, 0.1)) is None
    assert overruled((0.7, 0.2), raised=(0.7, 0.3)) == RAISED
    assert overruled((0.9, 0.2), raised=(0.7, 0.2), whole=False) == RAISED
    assert overruled((0.7, 0.2), raised=None) is None
    assert overruled((0.9, 0.2), raised=(0.7, 0.2), closed=True) == IN_DOUBT
