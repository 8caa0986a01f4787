"""Several endpoints of one model: spread by weight, one that dies set aside and asked again, strangers refused."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from demur.backends import Interchangeable, OpenAI, Settings
from demur.backends.interchangeable import weighted_address
from demur.backends.protocol import Wanted
from demur.errors import BackendError, EndpointRefused, EndpointSilent, InvalidValue
from demur.foreign_code import FromFile
from demur.pipeline.config import Config, read_config
from demur.prompts import Prompt
from loopback import Loopback, error, obliging, until, when

PROMPT = Prompt("q", ({"role": "user", "content": "What is 1 + 1?"},))
DEAD = "http://127.0.0.1:9/v1"


@pytest.fixture
def servers():
    running = []

    def start(n=2):
        running.extend(Loopback().start() for _ in range(n))
        return running

    yield start
    for server in running:
        server.stop()


def calls_itself(model=None, fingerprint=None, models=None, prompt_tokens=None):
    """A server that says something of itself."""

    def behave(number, body, request):
        if request.path.endswith("/models"):
            return web.json_response({"data": [{"id": name} for name in models]}) if models else error(404)
        answer = json.loads(obliging(number, body, request).body)
        answer |= {"model": model} if model else {}
        answer |= {"system_fingerprint": fingerprint} if fingerprint else {}
        answer["usage"] |= {"prompt_tokens": prompt_tokens} if prompt_tokens else {}
        return web.json_response(answer)

    return behave


def spread(urls, weights=None, patience=None, **options):
    return Interchangeable(
        [OpenAI(url, "m", patience=0.3, **options) for url in urls], weights, patience=patience, pause=0.2
    )


def asked_for_paths(server):
    return [body for body in server.requests if body.get("max_completion_tokens", 1) > 1]


def held_up(server, most, ready, behave=obliging):
    """A server that gives so many problems their paths, and the others when something is so; it answers all else."""
    held = when(ready, behave)

    def answer(number, body, request):
        drawing = asked_for_paths(server)
        return (held if body in drawing and len(drawing) > most else behave)(number, body, request)

    return answer


async def draw(backend, problems=40, at_once=8, m=2, settings=None):
    """The paths of some problems, so many at once; what failed as errors."""
    gate = asyncio.Semaphore(at_once)

    async def one(k):
        wanted = [Wanted(j, 100 * k + j) for j in range(m)]
        async with gate:
            return [
                path async for portion in backend.sample(PROMPT, settings or Settings(), wanted) for path in portion
            ]

    try:
        return await asyncio.gather(*(one(k) for k in range(problems)), return_exceptions=True)
    finally:
        await backend.close()


def whole(drawn, m=2):
    return all(isinstance(paths, list) and sorted(path.path for path in paths) == list(range(m)) for paths in drawn)


@pytest.mark.parametrize("at_once", [1, 20])
@pytest.mark.parametrize(("weights", "counts"), [(None, [10, 10]), ([3, 1], [15, 5]), ([1, 4], [4, 16])])
def test_work_is_spread_by_weight(servers, weights, counts, at_once):
    """One after the other, and all while none has come back: what is quicker by chance must not get more here."""
    one, other = servers()
    one.delay = other.delay = 0.0 if at_once == 1 else 1.0
    drawn = asyncio.run(draw(spread([one.url, other.url], weights), problems=20, at_once=at_once))
    assert whole(drawn)
    assert [len(asked_for_paths(server)) for server in (one, other)] == counts


def test_a_slow_server_gets_less(servers):
    quick, slow = servers()
    slow.behave = held_up(slow, 0, lambda: len(asked_for_paths(quick)) >= 60)
    asyncio.run(draw(spread([quick.url, slow.url]), problems=80, at_once=8))
    assert len(asked_for_paths(quick)) > 2 * len(asked_for_paths(slow))


async def draw_until(what, backend):
    """What is drawn until something is so: who was set aside is tried again with what comes next."""
    drawn = []
    for _ in range(1000):
        if what():
            break
        drawn += await draw(backend, problems=4)
        await asyncio.sleep(0.02)
    return drawn


def test_one_that_dies_in_the_middle_loses_no_request_and_is_asked_again_when_back(servers):
    one, other = servers()
    backend = spread([one.url, other.url])
    one.behave = held_up(one, 12, lambda: False)  # it dies with work in its hands

    async def work():
        drawing = asyncio.create_task(draw(backend, problems=60, at_once=6))
        await until(lambda: len(asked_for_paths(one)) > 12)
        await asyncio.to_thread(one.stop)
        drawn = await drawing
        before, one.behave = len(one.requests), obliging
        await asyncio.to_thread(one.start)
        return drawn + await draw_until(lambda: any("is back" in event for event in backend.events), backend), before

    drawn, before = asyncio.run(work())
    assert whole(drawn)
    assert len(one.requests) > before
    assert [event for event in backend.events if "is set aside" in event]
    assert [event for event in backend.events if "is back" in event]


def test_one_that_is_dead_at_the_start_is_set_aside_and_said(servers):
    (alive,) = servers(1)
    backend = spread([alive.url, DEAD])
    assert whole(asyncio.run(draw(backend)))
    assert backend.events[0].startswith(f"{DEAD} is set aside: the endpoint {DEAD} cannot be reached")


def test_one_that_was_away_and_comes_back_as_another_model_is_never_used(servers):
    one, late = servers()
    one.behave, late.behave = calls_itself("m"), calls_itself("stranger")
    late.stop()
    backend = spread([one.url, late.url])

    async def work():
        drawn = await draw(backend, problems=12, at_once=4)
        await asyncio.to_thread(late.start)
        return drawn + await draw_until(lambda: any("any more" in event for event in backend.events), backend)

    assert whole(asyncio.run(work()))
    assert asked_for_paths(late) == []
    assert any("is not asked any more: model: 'm' at the others, 'stranger'" in event for event in backend.events)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"model": "a"}, {"model": "b"}, "model: 'a' at"),
        ({"fingerprint": "f1"}, {"fingerprint": "f2"}, "system fingerprint: 'f1' at"),
        ({"models": ["m"]}, {"models": ["n", "o"]}, "listed among its models: 'yes' at"),
        ({"prompt_tokens": 7}, {"prompt_tokens": 9}, "tokens of the same prompt: '7' at"),
    ],
)
def test_endpoints_that_differ_are_refused_before_anything_is_drawn(servers, one, other, told):
    first, second = servers()
    first.behave, second.behave = calls_itself(**one), calls_itself(**other)
    drawn = asyncio.run(draw(spread([first.url, second.url]), problems=1))
    assert isinstance(drawn[0], EndpointRefused)
    assert f"the endpoints do not serve the same model: {told}" in str(drawn[0])
    assert second.url in str(drawn[0])
    assert asked_for_paths(first) == asked_for_paths(second) == []


def test_what_one_says_and_the_other_does_not_is_no_difference(servers):
    first, second = servers()
    first.behave = calls_itself("a", "f", ["m"], 7)
    assert whole(asyncio.run(draw(spread([first.url, second.url]))))


def test_a_model_that_changes_in_the_middle_is_not_stored_and_a_fingerprint_is_an_event(servers):
    first, second = servers()
    first.behave = calls_itself("m", "f1")
    steady, changed = calls_itself("m", "f1"), calls_itself("m", "f2")
    stranger = calls_itself("n")
    second.behave = lambda n, body, r: (steady if n < 8 else changed if n < 16 else stranger)(n, body, r)
    backend = spread([first.url, second.url])
    drawn = asyncio.run(draw(backend, problems=120))
    assert whole(drawn)
    assert all(path.receipt is None or path.receipt.model == "m" for paths in drawn for path in paths)
    assert any("its system fingerprint is 'f2', and 'f1' was first seen" in event for event in backend.events)
    assert any("is not asked any more: it answers as 'n', not as 'm'" in event for event in backend.events)


def test_when_all_are_dead_it_ends_in_one_line_that_names_each():
    backend = spread([DEAD, "http://127.0.0.1:19/v1"], patience=0.2)
    (error,) = asyncio.run(draw(backend, problems=1))
    assert isinstance(error, EndpointSilent)
    assert "none of the endpoints answers: http://127.0.0.1:9/v1: " in str(error)
    assert "http://127.0.0.1:19/v1: " in str(error)
    assert "patience=3600" in str(error)


def test_a_question_that_each_refuses_fails_alone(servers):
    first, second = servers()

    def behave(number, body, request):
        return error(400, "too long") if body.get("seed", 0) >= 500 else obliging(number, body, request)

    first.behave = second.behave = behave
    drawn = asyncio.run(draw(spread([first.url, second.url]), problems=7))
    assert whole(drawn[:5])
    assert all(type(failed) is BackendError and "too long" in str(failed) for failed in drawn[5:])


def test_a_key_in_an_address_reaches_no_event_and_no_message():
    backend = spread(["http://user:hunter22@127.0.0.1:9/v1?api_key=hunter22", "http://127.0.0.1:19/v1"], patience=0.1)
    (error,) = asyncio.run(draw(backend, problems=1))
    assert "hunter22" not in " ".join([str(error), *backend.events, backend.trouble, backend.told])


@pytest.mark.parametrize(
    ("text", "weight", "address"),
    [
        ("http://a/v1", 1.0, "http://a/v1"),
        ("2:http://a/v1", 2.0, "http://a/v1"),
        ("0.5:https://a:8000/v1", 0.5, "https://a:8000/v1"),
        ("http://a/v1?x=2:http://b", 1.0, "http://a/v1?x=2:http://b"),
        ("http://2:http@a/v1", 1.0, "http://2:http@a/v1"),
    ],
)
def test_a_weight_stands_before_the_address(text, weight, address):
    assert weighted_address(text) == (weight, address)


@pytest.mark.parametrize(
    "text", ["0:http://a/v1", "-1:http://a/v1", "x:http://a/v1", "nan:http://a/v1", ":http://a/v1"]
)
def test_a_weight_that_is_none_is_refused(text):
    with pytest.raises(InvalidValue, match="the weight of an endpoint is a number above 0"):
        weighted_address(text)


def test_a_configuration_may_name_several_and_none_of_them_gets_a_key_unasked(tmp_path):
    file = tmp_path / "demur.toml"
    file.write_text('[model]\nmodel = "m"\nbase_url = ["http://a/v1", "2:http://b/v1"]\n')
    chosen = read_config(file, ["http://b/v1"])
    assert [isinstance(one, FromFile) for one in chosen.base_url] == [True, False]
    backend = chosen.backend()
    assert isinstance(backend, Interchangeable)
    assert "http://b/v1 (weight 2)" in backend.told
    assert backend.describe() == OpenAI("http://a/v1", "m").describe()


def test_an_endpoint_named_twice_is_refused():
    with pytest.raises(InvalidValue, match="an endpoint is named twice"):
        Config(base_url=["http://a/v1", "http://a/v1/"], model="m").backend()


def test_logprobs_that_one_server_lacks_are_asked_of_the_other(servers):
    first, second = servers()

    def mute(number, body, request):
        return error(400, "logprobs are not supported") if body.get("logprobs") else obliging(number, body, request)

    second.behave = mute
    drawn = asyncio.run(draw(spread([first.url, second.url]), problems=20))
    assert whole(drawn)
