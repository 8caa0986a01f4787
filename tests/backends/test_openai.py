"""An OpenAI-compatible server: what is asked of it, what is made of its answers, and what its faults do."""

from __future__ import annotations

import asyncio
import threading
import time
from email.utils import formatdate

import pytest
from aiohttp import web

from demur.backends import OpenAI, Prompt, Settings, Wanted
from demur.backends.redaction import shown_address
from demur.errors import BackendError, EndpointRefused
from loopback import choice, cut_off, drop, error, hang, obliging, reply

CHAT = Prompt("q1", messages=({"role": "user", "content": "What is 2 + 2?"},))
TEXT = Prompt("q1", text="2 + 2 =")


def sample(server, n=4, prompt=CHAT, settings=None, **options):
    """All wanted paths, by index, and the backend that got them."""
    backend = OpenAI(server.url, "m", **{"patience": 5.0, **options})

    async def work():
        found = {}
        try:
            async for portion in backend.sample(prompt, settings or Settings(), [Wanted(k, 100 + k) for k in range(n)]):
                found |= {each.path: each for each in portion}
        finally:
            await backend.close()
        return found

    return asyncio.run(work()), backend


def test_all_paths_of_a_pool_come_from_one_request_where_the_server_can(server):
    found, _ = sample(server, 6)
    assert sorted(found) == list(range(6))
    assert [request.get("n") for request in server.requests] == [6]
    assert [found[k].seed for k in range(6)] == [100, 101, 102, 103, 104, 105]


def test_the_request_asks_for_logprobs_with_one_alternative_and_for_nothing_cut_off(server):
    sample(server, 1, settings=Settings(temperature=0.7, max_tokens=9, stop=("\n",)))
    body = server.requests[0]
    assert body["logprobs"] is True
    assert body["top_logprobs"] == 1
    assert body["max_completion_tokens"] == 9
    assert body["stop"] == ["\n"]
    assert "n" not in body
    assert "top_p" not in body


def test_a_server_that_gives_logprobs_only_with_an_alternative_draws_no_path_in_vain(server):
    """As llama.cpp does in chats."""

    def behave(number, body, request):
        return reply(*(choice("x", [-1.0] if body["top_logprobs"] else None) for _ in range(body.get("n", 1))))

    server.behave = behave
    found, _ = sample_pools(server, 8, 3)
    assert all(sorted(paths) == [0, 1, 2] for paths in found)
    assert sum(body.get("n", 1) for body in server.requests) == 24


@pytest.mark.parametrize(
    ("refuses", "last"),
    [(lambda body: body.get("top_logprobs", 0) > 0, 0), (lambda body: "top_logprobs" in body, None)],
    ids=["more than 0", "any number"],
)
def test_a_server_that_minds_alternatives_is_asked_without_and_that_costs_no_path(server, refuses, last):
    server.behave = lambda n, body, r: (
        error(400, "top_logprobs is too large") if refuses(body) else obliging(n, body, r)
    )
    found, _ = sample(server, 3)
    assert all(found[k].logprobs for k in range(3))
    assert server.requests[-1].get("top_logprobs") == last


def test_a_completion_prompt_goes_to_the_other_route(server):
    found, _ = sample(server, 2, prompt=TEXT)
    assert server.requests[0]["prompt"] == "2 + 2 ="
    assert found[0].text.startswith("The answer is")


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_server_that_limits_n_is_asked_in_portions_and_that_is_remembered(server, limit):
    def limited(number, body, request):
        return error(400, f"n must be at most {limit}") if body.get("n", 1) > limit else obliging(number, body, request)

    server.behave = limited
    found, backend = sample(server, 8)
    assert sorted(found) == list(range(8))
    assert 1 <= backend.largest_n <= limit
    refused = [body for body in server.requests if body.get("n", 1) > limit]
    assert len(refused) <= 12


@pytest.mark.parametrize("given", [1, 3])
def test_a_server_that_gives_fewer_choices_than_asked_is_asked_for_the_rest(server, given):
    server.behave = lambda n, body, r: reply(*(choice(f"{body['seed']}") for _ in range(min(given, body.get("n", 1)))))
    found, backend = sample(server, 8)
    assert sorted(found) == list(range(8))
    assert backend.largest_n <= given
    assert len({request["seed"] for request in server.requests}) == len(server.requests)


def test_every_path_drawn_alone_has_a_seed_of_its_own(server):
    server.behave = lambda n, body, r: reply(choice(f"{body['seed']}"))
    found, _ = sample(server, 8, largest_n=1)
    assert [found[k].text for k in range(8)] == [str(100 + k) for k in range(8)]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_text_is_read_under_either_name(server, name):
    said = {"message": {"role": "assistant", "content": "4", name: "two and two"}}
    server.behave = lambda *_: reply({"finish_reason": "stop", **said})
    found, _ = sample(server, 1)
    assert found[0].text == "<think>two and two</think>\n4"


def test_truncated_paths_are_marked(server):
    server.behave = lambda *_: reply(choice("so then", finish_reason="length"))
    assert sample(server, 1)[0][0].truncated


@pytest.mark.parametrize(
    ("held", "mean", "tokens"),
    [
        ({"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -3.0}]}, -2.0, 2),
        ({"content": [{"token": "a", "logprob": -1.0}, {"token": "", "logprob": -9.0}]}, -1.0, 1),
        ({"content": [{"token": "a", "logprob": -9999.0}]}, -100.0, 1),
        ({"content": [{"token": "a", "logprob": -3.4e38}, {"token": "b", "logprob": 0.0}]}, -50.0, 2),
        ({"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0]}, -1.5, 2),
        ({"content": [{"token": "a", "logprob": None}]}, None, 3),
        ({"content": []}, None, 3), (None, None, 3), ({}, None, 3), ("odd", None, 3),
    ],
)  # fmt: skip
def test_logprobs_in_every_shape_and_their_absence(server, held, mean, tokens):
    server.behave = lambda *_: reply({"message": {"content": "4"}, "logprobs": held})
    found, _ = sample(server, 1)
    assert found[0].logprob_mean == mean
    assert found[0].n_tokens == tokens


@pytest.mark.parametrize(
    "message", [{"content": None}, {"content": ""}, {}, {"content": [{"type": "text", "text": ""}]}]
)
def test_an_empty_answer_is_an_empty_path(server, message):
    server.behave = lambda *_: reply({"message": message})
    assert sample(server, 1)[0][0].text == ""


def test_five_megabytes_are_taken(server):
    server.behave = lambda *_: reply(choice("x" * 5_000_000))
    assert len(sample(server, 1)[0][0].text) == 5_000_000


@pytest.mark.parametrize(
    "bad",
    [
        lambda n, b, r: error(429), lambda n, b, r: error(429, Retry_After="1"),
        lambda n, b, r: error(429, Retry_After=formatdate(time.time() + 1, usegmt=True)),
        lambda n, b, r: error(429, Retry_After="soon"), lambda n, b, r: error(500), lambda n, b, r: error(503),
        lambda n, b, r: web.Response(status=502, text="<html>bad gateway</html>"), lambda n, b, r: hang(30),
        lambda n, b, r: drop(r) or reply(), lambda n, b, r: cut_off(r),
        lambda n, b, r: web.Response(text='{"choices": [', content_type="application/json"),
        lambda n, b, r: web.Response(text="not json"), lambda n, b, r: web.json_response({"error": {"message": "no"}}),
    ],
    ids=["429", "429 after 1 s", "429 until a date", "429 soon", "500", "503", "html", "hang", "reset", "cut off",
         "half json", "no json", "error in 200"],
)  # fmt: skip
def test_faults_that_pass_are_tried_again(server, bad):
    server.behave = lambda n, body, r: bad(n, body, r) if n < 2 else obliging(n, body, r)
    found, backend = sample(server, 3, answer_seconds=0.5)
    assert sorted(found) == [0, 1, 2]
    assert backend.retries >= 1


def test_retry_after_is_honoured(server):
    times = []

    def behave(number, body, request):
        times.append(time.monotonic())
        return error(429, Retry_After="1.5") if number == 0 else obliging(number, body, request)

    server.behave = behave
    sample(server, 1)
    assert times[1] - times[0] >= 1.5


@pytest.mark.parametrize(
    ("status", "said"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "model"), (405, "address")]
)
def test_what_cannot_succeed_fails_at_once(server, status, said):
    server.behave = lambda *_: error(status, "no such thing")
    with pytest.raises(EndpointRefused, match=said):
        sample(server, 4)
    assert len(server.requests) == 1


def test_a_bad_request_fails_at_once_with_the_servers_words(server):
    server.behave = lambda *_: error(400, "this prompt is too long")
    with pytest.raises(BackendError, match="this prompt is too long"):
        sample(server, 1)
    assert len(server.requests) == 1


def test_an_answer_without_choices_is_an_error(server):
    server.behave = lambda *_: web.json_response({"choices": []})
    with pytest.raises(BackendError, match="no choices"):
        sample(server, 1)


def test_refused_fields_are_left_out_from_then_on(server):
    def picky(number, body, request):
        if "max_completion_tokens" in body:
            return error(400, "unknown field max_completion_tokens")
        if "seed" in body:
            return error(400, "seed is not supported")
        return obliging(number, body, request)

    server.behave = picky
    found, _ = sample(server, 3)
    assert sorted(found) == [0, 1, 2]
    assert "max_tokens" in server.requests[-1]


def test_refused_logprobs_say_the_way_out(server):
    server.behave = lambda *_: error(400, "logprobs are not supported")
    with pytest.raises(BackendError, match="sample with logprobs=False"):
        sample(server, 1)


def test_concurrency_is_bounded_backs_off_and_grows_again(server):
    server.delay = 0.02
    refused = []

    def behave(number, body, request):
        if 20 <= number < 30:
            refused.append(number)
            return error(429)
        return obliging(number, body, request)

    server.behave = behave
    backend = OpenAI(server.url, "m", concurrency=8, largest_n=1, patience=20.0)

    async def work():
        async def pool(k):
            async for _ in backend.sample(CHAT, Settings(), [Wanted(j, j) for j in range(8)]):
                pass

        await asyncio.gather(*(pool(k) for k in range(20)))
        await backend.close()

    asyncio.run(work())
    assert refused
    assert server.busiest <= 8
    assert 1 < backend.endpoint._pace.limit <= 8
    assert backend.endpoint._pace._busy == 0


def test_a_server_that_goes_away_for_a_while_is_waited_for(server):
    server.stop()
    threading.Timer(1.0, server.start).start()
    found, backend = sample(server, 2, patience=20.0)
    assert sorted(found) == [0, 1]
    assert backend.retries > 0


def test_a_server_that_stays_away_is_given_up_on(server):
    server.stop()
    try:
        with pytest.raises(BackendError, match="cannot be reached"):
            sample(server, 1, patience=0.5)
    finally:
        server.start()


def test_the_key_is_sent_and_never_told(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    server.behave = lambda n, b, request: error(401, f"wrong key {request.headers['Authorization']}")
    with pytest.raises(BackendError) as caught:
        sample(server, 1)
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in str(caught.value)
    assert "sk-very-secret" not in repr(OpenAI(server.url, "m").describe())


def test_a_login_in_the_address_is_used_where_there_is_no_key(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    backend = OpenAI(server.url.replace("//", "//me:s%40crete@"), "m")
    asyncio.run(_once(backend))
    assert server.headers[0]["Authorization"] == "Basic bWU6c0BjcmV0ZQ=="
    assert "crete" not in backend.endpoint.base_url


async def _once(backend):
    try:
        await backend.endpoint.post("/chat/completions", {})
    finally:
        await backend.close()


def test_passwords_in_addresses_are_never_told():
    assert shown_address("http://me:secret@host:8000/v1?key=x") == "http://host:8000/v1"
    backend = OpenAI("http://me:secret@127.0.0.1:9/v1", "m", patience=0.0)
    with pytest.raises(BackendError) as caught:
        asyncio.run(_once(backend))
    assert "secret" not in str(caught.value)


def test_redirects_are_not_followed_with_the_key(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    server.behave = lambda *_: web.Response(status=302, headers={"Location": "http://127.0.0.1:9/elsewhere"})
    with pytest.raises(BackendError, match="302"):
        sample(server, 1)


@pytest.mark.parametrize("address", ["localhost:8000/v1", "ftp://x", "file:///etc/passwd"])
def test_addresses_of_other_kinds_are_refused(address):
    with pytest.raises(BackendError, match="http"):
        OpenAI(address, "m")


def test_no_address_at_all_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(BackendError, match="give base_url or set OPENAI_BASE_URL"):
        OpenAI(None, "m")


# --- many pools at once --------------------------------------------------------------------------------------------


def sample_pools(server, pools, n, **options):
    """Several pools at once: what came of each, paths or an error."""
    backend = OpenAI(server.url, "m", **{"patience": 5.0, "concurrency": 16, **options})

    async def one(number):
        prompt = Prompt(f"q{number}", messages=({"role": "user", "content": f"question {number}"},))
        wanted = [Wanted(k, 1000 * number + k) for k in range(n)]
        try:
            return [each.path async for portion in backend.sample(prompt, Settings(), wanted) for each in portion]
        except BackendError as failed:
            return failed

    async def work():
        try:
            return await asyncio.gather(*(one(number) for number in range(pools)))
        finally:
            await backend.close()

    return asyncio.run(work()), backend


def test_missing_paths_that_do_not_follow_each_other_are_asked_for_apart(server):
    """A server draws child k with seed + k: one request for paths 4, 5, 12 would draw path 6 again."""
    backend = OpenAI(server.url, "m")

    async def work():
        wanted = [Wanted(k, 100 + k) for k in (4, 5, 12, 13)]
        found = [each async for portion in backend.sample(CHAT, Settings(), wanted) for each in portion]
        await backend.close()
        return found

    found = asyncio.run(work())
    assert sorted((body["seed"], body["n"]) for body in server.requests) == [(104, 2), (112, 2)]
    assert {each.path: each.text for each in found} == {
        k: f"The answer is {(100 + k) % 7}." for k in (4, 5, 12, 13)
    }  # fmt: skip


def test_pools_that_learn_of_a_limit_together_do_not_undercut_it(server):
    server.delay = 0.05
    server.behave = lambda n, body, r: error(400, "too many") if body.get("n", 1) > 4 else obliging(n, body, r)
    found, backend = sample_pools(server, 8, 8)
    assert all(sorted(paths) == list(range(8)) for paths in found)
    assert backend.largest_n == 4


def test_one_question_that_is_refused_says_nothing_about_n(server):
    def behave(number, body, request):
        return error(400, "context too long") if "question 3" in str(body) else obliging(number, body, request)

    server.behave = behave
    found, backend = sample_pools(server, 8, 4)
    assert [isinstance(paths, BackendError) for paths in found] == [k == 3 for k in range(8)]
    assert backend.largest_n is None


def test_one_short_answer_is_an_accident_and_a_habit_is_remembered(server):
    server.behave = lambda n, body, r: reply(choice("x"), choice("y")) if n == 0 else obliging(n, body, r)
    _, backend = sample_pools(server, 1, 6)
    assert backend.largest_n is None
    server.behave = lambda n, body, r: reply(*(choice("x") for _ in range(min(3, body.get("n", 1)))))
    found, backend = sample_pools(server, 3, 6)
    assert backend.largest_n == 3
    assert all(sorted(paths) == list(range(6)) for paths in found)


def test_being_told_to_slow_down_is_no_reason_to_give_up(server):
    """Ten requests are let through in each second; nobody is given up on, however often it is refused."""
    allowed = []

    def behave(number, body, request):
        now = time.monotonic()
        if sum(now - at < 1 for at in allowed) >= 10:
            return error(429)
        allowed.append(now)
        return obliging(number, body, request)

    server.behave = behave
    found, _ = sample_pools(server, 40, 1, concurrency=32, patience=30.0)
    assert all(paths == [0] for paths in found)


def test_where_one_path_fails_the_others_of_its_pool_are_still_taken(server):
    server.behave = lambda n, body, r: error(400, "no") if body["seed"] == 102 else obliging(n, body, r)
    backend = OpenAI(server.url, "m", largest_n=1)
    found = []

    async def work():
        try:
            async for portion in backend.sample(CHAT, Settings(), [Wanted(k, 100 + k) for k in range(5)]):
                found.extend(each.path for each in portion)
        finally:
            await backend.close()

    with pytest.raises(BackendError, match="400"):
        asyncio.run(work())
    assert sorted(found) == [0, 1, 3, 4]
