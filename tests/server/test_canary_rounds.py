"""Old questions asked again: each once, at a rate that replicas share; they tell a changed model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import requests
from aiohttp import web

from demur.errors import InvalidValue, PipelineMismatch
from demur.pipeline.sources import read_pools
from demur.server.alarms.canary_questions import CanaryQuestions
from demur.store.service import ServiceStore
from loopback import Loopback, choice, error, reply
from serving import PROBLEMS, adder, adding_pipeline, listening
from watching import ask, ask_all, forgetful, later, look, monitors, rounds, watched_app


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The run that calibrated."""
    server = Loopback(behave=adder).start()
    place = tmp_path_factory.mktemp("canaries") / "run.db"
    try:
        adding_pipeline(server.url).run(PROBLEMS, place)
    finally:
        server.stop()
    return read_pools(place)


@pytest.fixture
def store(place):
    with ServiceStore(place, create=True) as opened:
        yield opened


@pytest.fixture
def watched(upstream, sums_policy, store, run):
    def made(**settings):
        return watched_app(upstream.url, sums_policy, store, canaries=CanaryQuestions.of(run, sums_policy), **settings)

    return made


def test_a_model_that_did_not_change_raises_no_alarm(watched, store):
    app = watched()
    assert rounds(app, n=70) == [1] * 60 + [0] * 10
    compared = monitors(app).compared()
    assert (compared.n, compared.alarm) == (60, False)
    look(app)
    assert app.state.service.doubts == {}


def test_a_swapped_model_raises_the_canary_alarm_and_an_event(watched, store, upstream):
    app = watched()
    with listening(app) as address:
        ask(address, 10)
        look(app)
        upstream.behave = forgetful
        rounds(app, n=60)
        ask(address, 11)
        look(app)
        told = ask(address, 12)
        metrics = requests.get(f"{address}/metrics").text
    assert "Model or server changed (canary alarm of " in told["in_doubt"]["why"]
    assert 'demur_alarm{kind="canaries",policy="sums:v1"} 1.0' in metrics
    assert 'demur_canaries_total{outcome="compared",policy="sums:v1"} 60.0' in metrics
    words = {event.kind: event.words for event in store.events.latest()}
    assert words["alarm"].startswith("The model or its server changed: alarm at question ")
    assert monitors(app).compared().alarm_at < 40


def test_another_reported_name_is_an_event(watched, store, upstream):
    def named(model):
        def behave(number, body, request):
            said = json.loads(adder(number, body, request).body)
            return web.json_response({**said, "model": model, "system_fingerprint": "fp"})

        return behave

    app = watched()
    with listening(app) as address:
        for number, model in ((10, "adder-1"), (12, "adder-1"), (14, "adder-2"), (16, "adder-1")):
            upstream.behave = named(model)
            ask(address, number)
            look(app)
        upstream.behave = named("adder-3")
        rounds(app, n=1)
        look(app)
    of_canary, event = store.events.latest()
    assert of_canary.words == "The server of sums:v1 reports another model name: 'adder-3', at first 'adder-1'."
    assert event.words == "The server of sums:v1 reports another model name: 'adder-2', at first 'adder-1'."
    assert store.decisions.search()[0].reported_model == "adder-1"
    assert store.decisions.search()[0].system_fingerprint == "fp"


def test_problems_that_ask_the_same_are_one_canary(run, sums_policy):
    twice = [replace(pool, problem=replace(pool.problem, id=f"{pool.problem.id} again")) for pool in run.pools]
    once = CanaryQuestions.of(run, sums_policy)
    found = CanaryQuestions.of(replace(run, pools=[*run.pools, *twice]), sums_policy)
    asked = [found.pools[name].problem.question for name in found.order]
    assert len(set(asked)) == len(asked) == len(once.order) == len(found.pools) == 60


def test_replicas_ask_no_question_twice_and_keep_to_one_rate(watched, store, upstream):
    one, other = watched(), watched()
    before = len(upstream.requests)
    assert rounds(one, other, n=65) == [1] * 60 + [0] * 5
    asked = [body["messages"][-1]["content"] for body in upstream.requests[before:]]
    assert len(set(asked)) == 60
    assert monitors(one).compared().n == 60
    assert {canary.state for canary in store.canaries.all(1)} == {"answered"}


def test_a_canary_that_fails_is_asked_again_when_the_others_were(watched, store, upstream):
    app = watched(seconds=5.0, late_seconds=0.001)
    upstream.behave = lambda *_: error(400, "no")
    with pytest.raises(Exception, match="400"):
        rounds(app, n=1)
    assert monitors(app).compared().n == 0
    upstream.behave = adder
    assert sum(rounds(app, n=59, start=1)) == 59
    assert {canary.state for canary in store.canaries.all(1)} == {"asked", "answered"}


def test_a_clock_that_is_set_back_does_not_stop_canaries(watched):
    app = watched()
    assert rounds(app, n=2, start=1000) == [1, 1]
    assert rounds(app, n=2, start=0) == [1, 1]


def test_the_order_knows_nothing_of_the_old_pools(run, sums_policy):
    questions = CanaryQuestions.of(run, sums_policy)
    assert sorted(questions.order) == sorted(problem.id for problem in PROBLEMS)
    assert list(questions.order) != [problem.id for problem in PROBLEMS]
    assert questions.order == CanaryQuestions.of(run, sums_policy).order


def test_a_run_of_another_pipeline_is_refused(sums_policy, tmp_path):
    def shy(number, body, request):
        return reply(*(choice("So \\boxed{1}", [-0.1]) for _ in range(body.get("n", 1))))

    server = Loopback(behave=shy).start()
    try:
        adding_pipeline(server.url, 3).run(PROBLEMS[:5], tmp_path / "other.db")
    finally:
        server.stop()
    with pytest.raises((PipelineMismatch, InvalidValue)):
        CanaryQuestions.of(read_pools(tmp_path / "other.db"), sums_policy)


def test_the_status_counts_canaries(watched):
    app = watched()
    rounds(app, n=7)
    with listening(app) as address:
        [told] = requests.get(f"{address}/status/api").json()["policies"]
    assert told["canaries"] == {"asked": 7, "left": 53}
    assert told["compared"].startswith("No sign of a changed model in 7 questions asked again")


# What canaries say of a drift alarm.


def drift_alarm(app, address):
    """Questions as none that calibrated: all of them are hard."""
    ask_all(address, range(101, 221, 2))
    look(app)
    assert "in_doubt" in ask(address, 10)


def hours_until_now():
    """When canaries are asked that come after all that was asked until now, in rounds."""
    return (later() - 1_000_000_000_000) // 3_600_000 + 1


def why(app, address):
    look(app)
    told = ask(address, 12)["in_doubt"]["why"]
    [status] = requests.get(f"{address}/status/api").json()["policies"]
    assert status["diagnosis"] == told
    return told


def test_canaries_from_before_the_change_do_not_speak_for_the_model(watched):
    """However many were quiet, and however late: they show the model as it was."""
    app = watched()
    rounds(app, n=44)
    with listening(app) as address:
        drift_alarm(app, address)
        told = why(app, address)
        watch = monitors(app).drift.read()[1]
        begun = watch.monitor.change_from
        assert watch.changed == sorted(made.at for made in app.state.alarms.store.decisions.search())[begun - 1]
    assert "not known yet which, because no canary was asked since then." in told
    assert ", probably from " in told


def test_canaries_asked_since_the_change_speak_for_the_model_once_they_are_enough(watched):
    app = watched()
    rounds(app, n=20)
    with listening(app) as address:
        drift_alarm(app, address)
    rounds(app, n=5, start=hours_until_now())
    with listening(app) as address:
        few = why(app, address)
    rounds(app, n=35, start=hours_until_now() + 5)
    with listening(app) as address:
        enough = why(app, address)
    assert "not known yet which; of 5 canaries asked since then, the keys of " in few
    assert "Questions changed (drift alarm of " in enough
    assert "of 40 canaries asked since then" in enough


def test_a_model_that_changed_behind_the_same_name_is_never_cleared_by_canaries_from_before(watched, upstream):
    app = watched()
    rounds(app, n=44)
    upstream.behave = forgetful
    with listening(app) as address:
        drift_alarm(app, address)
        assert "not known yet which, because no canary was asked since then." in why(app, address)
    rounds(app, n=16, start=hours_until_now())
    with listening(app) as address:
        told = why(app, address)
    assert "not known yet which; of 16 canaries asked since then" in told or "Model or server changed" in told


def test_clearing_an_alarm_forgets_when_the_change_began_and_which_canaries_were_asked(watched):
    app = watched()
    with listening(app) as address:
        drift_alarm(app, address)
    rounds(app, n=20, start=hours_until_now())
    with listening(app) as address:
        assert "of 20 canaries asked since then" in why(app, address)
        requests.post(f"{address}/status/api/clear", json={"policy": "sums:v1"})
        ask_all(address, range(1001, 1121, 2))
        told = why(app, address)
    assert "because no canary was asked since then." in told
    assert monitors(app).drift.read()[1].asked
