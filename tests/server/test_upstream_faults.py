"""Models that misbehave: every request ends in time, with a vote on all its paths or an abstention with its cause."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from aiohttp import web

from asked_over_http import chat, decided, logged_app, post, who_wait
from demur.errors import ScoringError, StoreUnreachable
from demur.server.errors import ApiError
from demur.server.fan_out import FanOut
from demur.store.service import ServiceStore
from loopback import choice, cut_off, drop, error, hang, reply, until, when
from patience import wait_until
from serving import adder, listening, made_app, service_of

SECONDS = 1.0


def never(number, body, request):
    return hang(600)


def late(number, body, request):
    return hang(SECONDS + 1)


def malformed(number, body, request):
    return web.Response(body=b'{"choices": [', content_type="application/json")


def nothing(number, body, request):
    return reply()


def one_too_few(number, body, request):
    """One path of a pool never comes: a request for it alone brings none."""
    return adder(number, {**body, "n": body.get("n", 1) - 1}, request) if body.get("n", 1) > 1 else reply()


def dropped(number, body, request):
    drop(request)
    return reply()


def without_logprobs(number, body, request):
    return reply(*(choice("So \\boxed{5}", None) for _ in range(body.get("n", 1))))


def several_models(number, body, request):
    """Two paths to a reply at most, each reply from another model."""
    said = json.loads(adder(number, {**body, "n": min(2, body.get("n", 1))}, request).body)
    return web.json_response(said | {"model": f"adder-{number % 2}"})


FAULTS = {
    "its replies name several models": (several_models, {"upstream_failed"}),
    "it hangs": (never, {"too_slow"}),
    "it answers after the deadline": (late, {"too_slow"}),
    "it sends what is no JSON": (malformed, {"too_slow", "upstream_failed"}),
    "it sends no paths": (nothing, {"too_slow", "upstream_failed"}),
    "it sends one path too few": (one_too_few, {"too_slow", "upstream_failed"}),
    "it drops connections": (dropped, {"too_slow", "upstream_failed"}),
    "it stops in the middle": (lambda n, b, request: cut_off(request), {"too_slow", "upstream_failed"}),
    "it fails": (lambda *_: error(500), {"too_slow", "upstream_failed"}),
    "it refuses": (lambda *_: error(401), {"upstream_failed"}),
    "it is busy for an hour": (lambda *_: error(429, Retry_After="3600"), {"upstream_failed"}),
    "it moved": (lambda *_: error(307, Location="http://127.0.0.1:9/v1"), {"upstream_failed"}),
    "it gives no log-probabilities": (without_logprobs, {"scoring_failed", "upstream_failed", "not_decidable"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_ends_in_time_and_says_what_failed(upstream, sums_policy, fault):
    behave, causes = FAULTS[fault]
    service = service_of(upstream.url, sums_policy, seconds=SECONDS if "too_slow" in causes else 30.0)
    with listening(made_app(service)) as address:
        upstream.behave = behave
        reply_ = post(address, chat()).json()
        made, message = reply_["demur"], reply_["choices"][0]["message"]
        assert (made["decision"], made["answer"], made["votes"]) == ("abstained", None, [])
        assert made["cause"] in causes
        assert message["refusal"].startswith("Not answered: ")
        assert "127.0.0.1" not in json.dumps(reply_)
        assert reply_["choices"][0]["finish_reason"] == "stop"
        upstream.behave, service.settings = adder, replace(service.settings, seconds=30.0)
        again = decided(address, "What is 8 + 1?")
        assert (again["decision"], again["paths"]) == ("answered", {"drawn": 5, "of": 5})
        wait_until(lambda: (service.underway, service.fan_out.underway, service.fan_out.waiting) == (0, 0, 0))


def test_of_a_model_that_fails_now_and_then_no_vote_has_fewer_paths(upstream, sums_policy):
    turn = iter(range(10**6))
    faults = (lambda *_: error(503), dropped, malformed, nothing)

    def unsteady(number, body, request):
        k = next(turn)
        return faults[k % 4](number, body, request) if k % 10 in (1, 4, 8) else adder(number, body, request)

    upstream.behave = unsteady
    unsteadily = made_app(service_of(upstream.url, sums_policy, seconds=30))
    with listening(unsteadily) as address, ThreadPoolExecutor(16) as many:
        made = list(many.map(lambda k: decided(address, f"What is {k} + 1?"), range(80)))
    for k, one in enumerate(made):
        if "cause" in one:
            assert (one["decision"], one["votes"]) == ("abstained", [])
        else:
            assert one["paths"] == {"drawn": 5, "of": 5}
            assert sum(vote["paths"] for vote in one["votes"]) == 5
            assert k % 2 or one["answer"] == str(k + 1)
    assert sum("cause" not in one for one in made) > 40


def test_a_wait_that_a_busy_model_asks_for_is_kept(upstream, sums_policy):
    refusals = iter([True])

    def busy_once(number, body, request):
        return error(429, Retry_After="1") if next(refusals, False) else adder(number, body, request)

    upstream.behave = busy_once
    with listening(made_app(service_of(upstream.url, sums_policy))) as address:
        started = time.monotonic()
        assert decided(address)["decision"] == "answered"
        assert time.monotonic() - started > 0.9


def test_a_pool_of_several_models_is_decided_if_asked_to(upstream, sums_policy):
    upstream.behave = several_models
    service = service_of(upstream.url, sums_policy)
    answerer = service.models.active["sums"].answerer
    answerer.pipeline = replace(answerer.pipeline, mixed_models=True)
    with listening(made_app(service)) as address:
        assert decided(address)["decision"] == "answered"


def test_what_the_model_calls_itself_is_kept(upstream, sums_policy, tmp_path):
    def renamed(number, body, request):
        document = json.loads(adder(number, body, request).body)
        return web.json_response(document | {"model": "adder-2\x1b[31m", "system_fingerprint": "fp_2"})

    upstream.behave = renamed
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        with listening(logged_app(upstream.url, sums_policy, store)) as address:
            kept = store.decisions.get(decided(address)["request_id"])
        assert kept.system_fingerprint == "fp_2"
        assert kept.reported_model.startswith("adder-2")


def test_whatever_a_scorer_fails_with_the_service_abstains(upstream, sums_policy, monkeypatch):
    service = service_of(upstream.url, sums_policy)
    scorer = service.models.active["sums"].answerer.pipeline.scorer
    with listening(made_app(service)) as address:
        for failure, cause in ((ScoringError("no"), "scoring_failed"), (ZeroDivisionError("x\n"), "not_decidable")):

            def broken(pool, failure=failure):
                raise failure

            monkeypatch.setattr(scorer, "score", broken)
            made = decided(address)
            assert (made["decision"], made["cause"]) == ("abstained", cause)


def test_identical_requests_at_once_share_one_pool_and_others_do_not(upstream, sums_policy):
    service = service_of(upstream.url, sums_policy)
    with listening(made_app(service)) as address, ThreadPoolExecutor(8) as many:
        decided(address, "What is 2 + 1?")  # what the server takes at once is known from here on
        before = len(upstream.requests)
        upstream.behave = when(lambda: who_wait(service) == 8, adder)
        texts = ["What is 4 + 1?"] * 6 + ["What is 4  + 1?"] * 2
        made = list(many.map(lambda text: decided(address, text), texts))
    assert len({one["request_id"] for one in made}) == 8
    assert len({json.dumps(one["votes"]) for one in made}) == 1
    assert len(upstream.requests) - before == 2 * before


def test_a_cap_on_paths_holds_and_a_full_queue_says_when_to_come_back(upstream, sums_policy):
    service = service_of(upstream.url, sums_policy, fan_out=10, waiting=4)
    seen, refused = [], threading.Event()
    upstream.behave = when(refused.is_set, adder)

    def ask(k):
        answer = post(address, chat(f"What is {2 * k} + 1?"))
        seen.append(service.fan_out.underway)
        if answer.status_code == 429:
            refused.set()
        return answer

    with listening(made_app(service)) as address, ThreadPoolExecutor(20) as many:
        answers = list(many.map(ask, range(20)))
    statuses = sorted(answer.status_code for answer in answers)
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 6
    assert max(seen) <= 10
    full = next(answer for answer in answers if answer.status_code == 429)
    assert full.json()["error"]["code"] == "queue_full"
    assert int(full.headers["retry-after"]) >= 1
    assert (service.fan_out.underway, service.fan_out.waiting) == (0, 0)


def test_who_leaves_the_queue_as_their_turn_comes_takes_nobody_elses():
    async def work():
        fan_out = FanOut(5, 10)
        held = fan_out.paths(5)
        await held.__aenter__()
        waiting = [asyncio.create_task(_once(fan_out)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # it hears of that only after the next line
        await held.__aexit__(None, None, None)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert results[1:] == [None, None]
        assert (fan_out.underway, fan_out.waiting) == (0, 0)

    async def _once(fan_out):
        async with fan_out.paths(5):
            await asyncio.sleep(0)

    asyncio.run(work())


def test_a_decision_that_cannot_be_kept_takes_no_other_with_it(upstream, sums_policy, tmp_path, monkeypatch):
    """Decisions of one moment are committed together; one of them has a value that no store takes."""
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        real, sizes = store.decisions.add, []
        app = logged_app(upstream.url, sums_policy, store)

        def slowly(rows, reviews=()):
            if not sizes:
                wait_until(lambda: len(rows) + len(app.state.service.log._waiting) == 8)  # others gather meanwhile
            sizes.append(len(rows))
            if any(row.question == "What is 6 + 1?" for row in rows):
                raise ValueError("a value that does not fit")
            return real(rows, reviews)

        monkeypatch.setattr(store.decisions, "add", slowly)
        with listening(app) as address, ThreadPoolExecutor(8) as many:
            answers = list(many.map(lambda k: post(address, chat(f"What is {k} + 1?")), range(0, 16, 2)))
        assert [answer.status_code for answer in answers] == [200, 200, 200, 500, 200, 200, 200, 200]
        assert max(sizes) > 1
        for answer in answers:
            if answer.status_code == 200:
                assert store.decisions.get(answer.json()["demur"]["request_id"]) is not None


def test_no_decision_is_told_that_is_not_kept(upstream, sums_policy, tmp_path, monkeypatch):
    def away(*_):
        raise StoreUnreachable("postgresql://me:secret@db went away")

    with ServiceStore(tmp_path / "service.db", create=True) as store:
        monkeypatch.setattr(store.decisions, "add", away)
        with listening(logged_app(upstream.url, sums_policy, store)) as address:
            answer = post(address, chat())
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
            assert "secret" not in answer.text
            streamed = post(address, chat(stream=True))
            assert "store_unavailable" in streamed.text
            assert "answered" not in streamed.text


def test_the_service_abstains_and_ends_when_it_is_told_to(upstream, sums_policy):
    upstream.behave = never
    service = service_of(upstream.url, sums_policy)

    async def work():
        from demur.server.api.asking import question_of
        from demur.server.api.forms import ChatRequest

        question = question_of(ChatRequest(**chat()), service.models)
        asking = asyncio.create_task(service.answer(question, "req_" + "0" * 32))
        await until(lambda: upstream.requests)
        await service.drain(0.1)
        outcome = await asyncio.wait_for(asking, 60)
        assert (outcome.decision, outcome.failure.kind) == ("abstained", "shutting_down")
        with pytest.raises(ApiError) as late_one:
            await service.answer(question, "req_" + "1" * 32)
        assert late_one.value.status == 503
        await service.models.active["sums"].answerer.close_async()

    asyncio.run(work())
