"""Several endpoints of one model: spread by weight, one that dies set aside and asked again, strangers refused."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from demur.backends import Interchangeable, OpenAI, Settings, interchangeable
from demur.backends.interchangeable import weighted_address
from demur.backends.protocol import Wanted
from demur.errors import BackendError, EndpointRefused, EndpointSilent, InvalidValue
from demur.foreign_code import FromFile
from demur.pipeline.config import Config, read_config
from demur.prompts import Prompt
from loopback import Loopback, choice, error, hang, obliging, reply, until, when

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


@pytest.mark.parametrize("refuses", [True, False])
def test_one_that_lacks_the_logprobs_that_others_give_is_refused_where_they_are_wanted(servers, refuses):
    """Half of the paths would lack their score, and be drawn again by each further command."""
    first, second = servers()

    def mute(number, body, request):
        if refuses and body.get("logprobs"):
            return error(400, "logprobs are not supported")
        return reply(*(choice("The answer is 3.", None) for _ in range(body.get("n", 1))))

    second.behave = mute
    (refusal,) = asyncio.run(draw(spread([first.url, second.url]), problems=1))
    assert isinstance(refusal, EndpointRefused)
    assert "log-probabilities" in str(refusal)
    assert second.url in str(refusal)
    assert asked_for_paths(first) == []
    assert whole(asyncio.run(draw(spread([first.url, second.url]), settings=Settings(logprobs=False))))


def test_servers_that_are_started_late_are_waited_for_as_long_as_patience_lasts(servers):
    one, other = servers()
    one.stop()
    other.stop()
    backend = spread([one.url, other.url], patience=60)

    async def work():
        task = asyncio.create_task(draw(backend, problems=5))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(other.start)
        drawn = await task
        await asyncio.to_thread(one.start)
        return drawn

    assert whole(asyncio.run(work()))
    assert f"{other.url} is back" in backend.events


def test_one_that_hangs_does_not_keep_the_others_waiting(servers, monkeypatch):
    monkeypatch.setattr(interchangeable, "_LIST_SECONDS", 0.3)
    one, other = servers()
    other.behave = lambda n, body, request: hang(60) if request.path.endswith("/models") else obliging(n, body, request)
    backend = spread([one.url, other.url])
    assert whole(asyncio.run(asyncio.wait_for(draw(backend), 30)))
    assert "is set aside: the endpoint" in backend.events[0]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_one_that_refuses_from_the_beginning_is_named(servers, status):
    one, other = servers()
    other.behave = lambda n, body, request: error(status, "not you")
    (refusal,) = asyncio.run(draw(spread([one.url, other.url]), problems=1))
    assert isinstance(refusal, BackendError)
    assert f"{other.url}: the endpoint answered {status}: not you" in str(refusal)
    assert asked_for_paths(one) == []


async def nothing_is_under_way(backend, member):
    """A server was set aside, and whatever it was asked for before has failed."""
    while backend._members[member].busy or not any("is set aside" in event for event in backend.events):
        await asyncio.sleep(0.01)


def test_all_that_was_under_way_at_one_that_dies_is_one_failure(servers):
    """Else a moment's absence would keep it away for a minute, though it is to be tried again soon."""
    one, other = servers()
    one.delay = other.delay = 0.3
    backend = spread([one.url, other.url])

    async def work():
        task = asyncio.create_task(draw(backend, problems=4000, at_once=40))
        while one.busy < 16:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(one.stop)
        await nothing_is_under_way(backend, 0)
        await asyncio.to_thread(one.start)
        while not any("is back" in event for event in backend.events):
            await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(work(), 40))
    assert f"{one.url} is back" in backend.events


def test_one_that_comes_back_as_another_model_under_the_same_name_is_not_asked_again(servers):
    """It is compared anew: what it says of itself is all that can tell."""
    one, other = servers()
    one.behave, other.behave = calls_itself("m", "f1", prompt_tokens=7), calls_itself("m", "f1", prompt_tokens=7)
    one.delay = other.delay = 0.02
    backend = spread([one.url, other.url])

    async def work(comes_back_as):
        task = asyncio.create_task(draw(backend, problems=4000, at_once=4))
        while len(asked_for_paths(other)) < 4:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(other.stop)
        await nothing_is_under_way(backend, 1)
        other.behave = comes_back_as
        other.requests.clear()
        await asyncio.to_thread(other.start)
        while not any("is not asked any more" in event or "is back" in event for event in backend.events):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(work(calls_itself("m", "f1", prompt_tokens=9)), 60))
    assert asked_for_paths(other) == []
    assert [event for event in backend.events if "is set aside" in event][1:] == []
    told = [event for event in backend.events if "is not asked any more" in event]
    assert told == [f"{other.url} is not asked any more: {_tokens_differ(other.url)}"]
    backend = spread([one.url, other.url])
    other.behave = one.behave
    asyncio.run(asyncio.wait_for(work(calls_itself("m", "f2", prompt_tokens=7)), 60))
    assert f"{other.url} is back" in backend.events, "a newer program serves the same model"


def _tokens_differ(place):
    return f"tokens of the same prompt: '7' at the others, '9' at {place}"


def test_one_that_answers_as_another_model_to_many_at_once_is_told_once(servers):
    one, other = servers()
    one.behave, other.behave = calls_itself("m"), calls_itself("m")
    one.delay = other.delay = 0.05
    backend = spread([one.url, other.url])

    async def work():
        task = asyncio.create_task(draw(backend, problems=200, at_once=20))
        while len(asked_for_paths(other)) < 5:
            await asyncio.sleep(0.01)
        other.behave = calls_itself("n")
        return await task

    assert whole(asyncio.run(work()))
    assert backend.events == [f"{other.url} is not asked any more: it answers as 'n', not as 'm'"]


def test_one_that_asks_for_a_long_wait_is_left_alone_for_so_long(servers):
    one, other = servers()
    one.delay = 0.01
    busy = lambda n, body, request: error(429, "slow", Retry_After="50")  # noqa: E731
    other.behave = lambda n, body, request: (busy if n > 3 else obliging)(n, body, request)
    backend = spread([one.url, other.url])

    async def work():
        await draw(backend, problems=40, at_once=2)
        before = len(other.requests)
        drawn = await draw(backend, problems=200, at_once=2)
        return drawn, before

    drawn, before = asyncio.run(work())
    assert whole(drawn)
    assert len(other.requests) == before, "none in some seconds, though others were tried again after 0.2"
    assert len(backend.events) == 1


def test_a_wait_that_all_ask_for_and_patience_does_not_cover_is_told_at_once(servers):
    one, other = servers()
    one.behave = other.behave = lambda n, body, request: error(429, "slow", Retry_After="100")
    (silent,) = asyncio.run(draw(spread([one.url, other.url], patience=50), problems=1))
    assert isinstance(silent, EndpointSilent)
    assert "have them waited for with patience=160" in str(silent)


def test_questions_that_the_living_refuse_fail_without_waiting_for_the_dead(servers):
    """One after the other they would wait for it, for longer each time, until patience ended all."""
    (alive,) = servers(1)
    alive.behave = lambda n, body, request: (
        error(400, "too long") if body.get("seed", 0) >= 500 else obliging(n, body, request)
    )
    backend = Interchangeable([OpenAI(url, "m", patience=0.3) for url in (alive.url, DEAD)], pause=20.0)
    drawn = asyncio.run(asyncio.wait_for(draw(backend, problems=25), 15))
    assert whole(drawn[:5])
    assert all(type(failed) is BackendError and "too long" in str(failed) for failed in drawn[5:])
