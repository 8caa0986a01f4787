"""A pool without a readable answer is an abstention like any other, whatever breaks the ties of its policy."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import requests

import demur as dm
from asked_over_http import logged_app
from demur.errors import InvalidValue, StoreError
from demur.pipeline.recalibration import recalibration
from demur.pipeline.sources import read_pools
from demur.pipeline.waves import Waves
from demur.pools.fields import FieldChoice
from demur.pools.source import vote_pools
from demur.server.alarms.canary_questions import CanaryQuestions
from demur.store.service import ServiceStore, Spent
from guarded import CHAT, bearer, question
from loopback import choice, reply
from serving import PROBLEMS, adder, adding_pipeline, listening
from watching import ask_all, judge, look, monitors, rounds, watched_app

PATHS = 5
DAY = 86_400_000


def mute_on(number):
    """A model that gives no answer where this number is to be added to; all else as it was."""

    def behave(at, body, request):
        if f"What is {number} " in body["messages"][-1]["content"]:
            return reply(*(choice("I would rather not say.", [-0.5]) for _ in range(body.get("n", 1))))
        return adder(at, body, request)

    return behave


@pytest.fixture
def store(place):
    with ServiceStore(place, create=True) as opened:
        yield opened


@pytest.fixture
def run(upstream, tmp_path):
    """The run that calibrates; the model says nothing on one of its questions."""
    upstream.behave = mute_on(7)
    adding_pipeline(upstream.url).run(PROBLEMS, tmp_path / "paths.db")
    upstream.requests.clear()
    upstream.behave = mute_on(113)
    return read_pools(tmp_path / "paths.db", texts=True)


@pytest.fixture(params=["mean_score", "mean_score:perplexity,more_paths"])
def policy(request, run):
    """As `docs/serving.md` calibrates: ties are broken by the mean score of the winning paths."""
    recipe = run.recipe("perplexity", tie_break=request.param)
    return dm.calibrate(vote_pools(run, FieldChoice(score="perplexity"), recipe), alpha=[0.1, 0.3])


def ask(address, secret=None, asked="What is 113 + 1?", **headers):
    headers |= {} if secret is None else bearer(secret)
    return requests.post(address + CHAT, json=question(asked), headers=headers, timeout=300)


def spent_today(store, secret):
    """A test that runs over midnight finds it a day earlier."""
    key, now = store.keys.find(secret).key, time.time_ns() // 1_000_000
    today = now - now % DAY
    return max((store.spending.spent(f"{key}/day", since) for since in (today, today - DAY)), key=lambda one: one.paths)


@pytest.mark.parametrize("settings", [{}, {"waves": Waves(2, 1)}, {"texts": False}, {"online_step": 0.01}], ids=str)
def test_it_is_logged_reviewed_audited_and_paid_like_any_other(upstream, policy, store, settings):
    _, secret = store.keys.create("k", ["ask"], 1, {"paths_per_day": 48, "tokens_per_day": 10**6})
    app = watched_app(upstream.url, policy, store, **settings)
    with listening(app) as address:
        first, *others = (ask(address, secret, **{"Idempotency-Key": key}) for key in "aab")
        look(app)
    assert first.status_code == 200, first.text
    told = json.loads(first.text, parse_constant=pytest.fail)["demur"]
    assert (told["decision"], told["answer"], told["confidence"]) == ("abstained", None, 0.0)
    if settings.get("texts", True):
        assert [other.json()["demur"]["request_id"] == told["request_id"] for other in others] == [True, False]
        assert told["request_id"] in {item.request for item in store.reviews.queue()}
    kept = store.decisions.get(told["request_id"])
    assert (kept.outcome, kept.vote_key[:2], kept.audit) == ("abstained", (0.0, -math.inf), True)
    assert spent_today(store, secret).paths == 2 * PATHS == sum(body.get("n", 1) for body in upstream.requests)
    assert monitors(app).drift.read()[1].monitor.n == 1  # the same question a second time is no new one
    assert monitors(app).errors[0].read()[1].counts["abstained"] == 1


def test_the_store_holds_no_number_that_json_does_not_have(upstream, policy, store):
    with listening(watched_app(upstream.url, policy, store)) as address:
        told = ask(address).json()["demur"]
    with store.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT vote_key, document, asked FROM demur_decisions").all()
    [key, *_] = [json.loads(text, parse_constant=pytest.fail) for row in rows for text in row if text is not None]
    assert key[:2] == [0.0, None]
    assert store.decisions.get(told["request_id"]).vote_key[1] == -math.inf


def test_it_counts_in_a_recalibration(upstream, policy, store):
    app = watched_app(upstream.url, policy, store)
    with listening(app) as address:
        judge(store, ask_all(address, [113, *range(200, 260)]), "right")
    made = recalibration(store, "sums")
    assert (made.audits.audited, made.audits.questions, made.audits.failed) == (61, 61, 0)
    assert made.new.evidence.levels[0][:2].tolist() == [0.0, -math.inf]
    again = dm.Policy.of_document(json.loads(json.dumps(made.new.document(), allow_nan=False)))
    assert again.document() == made.new.document()


def test_a_shadow_decides_on_it_too(upstream, policy, store):
    app = watched_app(upstream.url, policy, store)
    models = app.state.service.models
    object.__setattr__(models, "shadows", {"sums": models.active["sums"]})
    with listening(app) as address:
        told = ask(address).json()["demur"]
    shadow = store.decisions.get(told["request_id"]).document["shadow"]
    assert (shadow["decision"], shadow["same_vote"]) == ("abstained", True)


def test_a_canary_without_an_answer_is_compared(upstream, policy, store, run):
    app = watched_app(upstream.url, policy, store, canaries=CanaryQuestions.of(run, policy))
    upstream.behave = mute_on(9)
    assert rounds(app, n=60) == [1] * 60
    assert monitors(app).compared().n == 60  # 7 has an answer now, and 9 has none


def test_a_policy_whose_ties_a_field_breaks_draws_nothing_for_requests_that_lack_it(upstream, run, store):
    with_margin = [
        replace(pool, problem=replace(pool.problem, extra={**pool.problem.extra, "margin": at / 100}))
        for at, pool in enumerate(run.pools)
    ]
    source = replace(run, pools=with_margin)
    recipe = source.recipe("perplexity", tie_break="column:margin")
    policy = dm.calibrate(vote_pools(source, FieldChoice(score="perplexity"), recipe), alpha=[0.1, 0.3])
    with listening(watched_app(upstream.url, policy, store)) as address:
        reply = ask(address)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "not_askable")
    assert "has nothing in the field 'margin'; expected a finite number" in reply.json()["error"]["message"]
    assert upstream.requests == []


@pytest.mark.parametrize("scores", [[1e300] * PATHS, [1.7e308, -1.7e308, 1.7e308, 1e308, -1e308], [-1e308] * PATHS])
def test_scores_beyond_all_measure_give_a_vote_or_an_error_and_no_infinity(upstream, run, store, scores):
    """`/v1/decide` takes any finite scores; their mean is one too."""
    recipe = run.recipe(tie_break="mean_score:perplexity")
    policy = dm.calibrate(vote_pools(run, FieldChoice(), recipe), alpha=[0.1, 0.3])
    paths = [{"answer": "14", "scores": {"perplexity": score}} for score in scores]
    body = {"model": "sums", "question": "What is 13 + 1?", "paths": paths}
    with listening(watched_app(upstream.url, policy, store)) as address:
        reply = requests.post(f"{address}/v1/decide", json=body, timeout=300)
    assert reply.status_code == 200, reply.text
    assert all(map(math.isfinite, store.decisions.get(reply.json()["request_id"]).vote_key))


# What fails after paths were drawn: they are paid, no more, and the key is free.


@pytest.fixture
def guarded(upstream, majority, tmp_path):
    """Eight paths to a pool; five settle a clear one in waves. A key that nobody gives back is held for ever."""
    upstream.behave = adder
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        app = logged_app(upstream.url, majority, store, waves=Waves(3, 1), audit_share=1e-9)
        app.state.admission.lease = 3_600.0
        secret = store.keys.create("k", ["ask"], 1, {"paths_per_day": 48, "tokens_per_day": 10**6})[1]
        with listening(app) as address:
            yield app, store, secret, address


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status"), [(StoreError("away"), 503), (InvalidValue("odd"), 503), (RuntimeError("broken"), 500)], ids=str
)
def test_a_decision_that_cannot_be_kept_is_paid_as_drawn_and_its_key_is_free(guarded, monkeypatch, error, status):
    _, store, secret, address = guarded
    with monkeypatch.context() as broken:
        broken.setattr(store.decisions, "add", failing(error))
        lost = ask(address, secret, "What is 4 + 1?", **{"Idempotency-Key": "a"})
    assert lost.status_code == status
    spent = spent_today(store, secret)
    assert (spent.paths, spent.tokens > 0) == (5, True)
    found = ask(address, secret, "What is 4 + 1?", **{"Idempotency-Key": "a"})
    assert found.json()["demur"]["decision"] == "answered"
    assert spent_today(store, secret) == Spent(10, 2 * spent.tokens)


def test_a_decision_that_is_kept_is_done_whatever_fails_afterwards(guarded, monkeypatch):
    app, store, secret, address = guarded
    with monkeypatch.context() as broken:
        broken.setattr(app.state.service, "observers", [SimpleNamespace(saw=failing(RuntimeError("broken")))])
        assert ask(address, secret, "What is 4 + 1?", **{"Idempotency-Key": "a"}).status_code == 500
    [kept] = store.decisions.search()
    again = ask(address, secret, "What is 4 + 1?", **{"Idempotency-Key": "a"})
    assert again.json()["demur"]["request_id"] == kept.request
    assert spent_today(store, secret).paths == 5


def test_a_pool_that_cannot_be_decided_is_paid_as_far_as_it_was_drawn(guarded, monkeypatch):
    _, store, secret, address = guarded
    monkeypatch.setattr("demur.pipeline.waves.read_keys", failing(InvalidValue("no answers here")))
    told = ask(address, secret, "What is 4 + 1?", **{"Idempotency-Key": "a"}).json()["demur"]
    assert (told["decision"], told["cause"]) == ("abstained", "not_decidable")
    assert store.decisions.get(told["request_id"]).outcome == "failed"
    spent = spent_today(store, secret)
    assert (spent.paths, spent.tokens > 0) == (3, True)


def test_paths_from_elsewhere_are_not_blamed_for_a_store_that_is_away(guarded, monkeypatch):
    _, store, secret, address = guarded
    monkeypatch.setattr(store.decisions, "add", failing(StoreError("away")))
    body = {"model": "sums", "question": "What is 4 + 1?", "paths": [{"answer": "5"}] * 8}
    reply = requests.post(f"{address}/v1/decide", json=body, headers=bearer(secret), timeout=300)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_unavailable")
