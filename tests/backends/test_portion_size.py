"""How many paths are asked for at once: fewer by habit, not by accident, and more again."""

from __future__ import annotations

import asyncio
import random

import pytest

from demur.backends import OpenAI, Prompt, Settings, Wanted
from demur.backends._portion_size import PortionSize
from loopback import choice, error, obliging, reply

PATHS = 16


def draw(server, pools, concurrency=8, **options):
    """Sample pools of 16 paths, a few at a time; the backend, and how many requests it took."""
    backend = OpenAI(server.url, "m", concurrency=concurrency, patience=5.0, **options)
    before = len(server.requests)

    async def work():
        gate = asyncio.Semaphore(concurrency)

        async def one(number):
            prompt = Prompt(f"q{number}", messages=({"role": "user", "content": "?"},))
            wanted = [Wanted(k, 1000 * number + k) for k in range(PATHS)]
            async with gate:
                got = [path.path async for portion in backend.sample(prompt, Settings(), wanted) for path in portion]
            assert sorted(got) == list(range(PATHS))

        await asyncio.gather(*(one(number) for number in range(pools)))
        await backend.close()

    asyncio.run(work())
    return backend, len(server.requests) - before


def short_now_and_then(share, seed=0):
    def behave(number, body, request):
        n = body.get("n", 1)
        # By what is asked, not by its turn: a busy machine changes nothing.
        rng = random.Random(f"{seed} {body.get('seed')} {body['messages'][-1]['content']} {n}")
        return reply(*(choice("x") for _ in range(rng.randint(1, n) if rng.random() < share else n)))

    return behave


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_short_answers_now_and_then_cost_a_request_each_and_no_more(server, share, concurrency):
    server.behave = short_now_and_then(share)
    _, requests = draw(server, 150, concurrency)
    assert requests <= 150 * (1 + 3 * share) + 10


def test_a_spell_of_short_answers_is_forgotten_when_it_is_over(server):
    spell = range(20, 60)
    server.behave = lambda n, body, r: reply(choice("x")) if n in spell else obliging(n, body, r)
    backend, requests = draw(server, 150, 1)
    assert backend.largest_n >= PATHS
    assert requests < 150 + 40 + 60


def test_a_spell_of_refusals_is_forgotten_when_it_is_over(server):
    def behave(number, body, request):
        return error(400, "n is too large") if number < 40 and body.get("n", 1) > 2 else obliging(number, body, request)

    server.behave = behave
    backend, requests = draw(server, 150, 1)
    assert backend.largest_n >= PATHS
    assert requests < 150 + 150


@pytest.mark.parametrize("most", [1, 3, 4])
@pytest.mark.parametrize("refuses", [True, False], ids=["refuses more", "gives fewer"])
def test_a_lasting_limit_is_asked_beyond_ever_more_rarely(server, most, refuses):
    def behave(number, body, request):
        n = body.get("n", 1)
        if n > most and refuses:
            return error(400, f"n must be at most {most}")
        return reply(*(choice("x") for _ in range(min(n, most))))

    server.behave = behave
    backend, _ = draw(server, 100, 4)
    assert most / 2 < backend.largest_n <= most
    beyond = [n for n, body in enumerate(server.requests) if body.get("n", 1) > most]
    assert len(beyond) < len(server.requests) / 8
    late = len(server.requests) // 2
    assert sum(n >= late for n in beyond) <= max(12, sum(n < late for n in beyond))


def test_a_server_whose_replicas_differ_fails_nobody(server):
    def behave(number, body, request):
        return error(400, "too many") if number % 3 == 0 and body.get("n", 1) > 4 else obliging(number, body, request)

    server.behave = behave
    draw(server, 40, 4)


def test_what_the_caller_allows_is_never_exceeded(server):
    backend, requests = draw(server, 30, 2, largest_n=4)
    assert requests == 120
    assert max(body.get("n", 1) for body in server.requests) == 4
    assert backend.largest_n == 4


def test_one_short_answer_is_an_accident_and_two_alike_in_a_row_are_a_habit():
    size = PortionSize()
    size.answered(asked_for=16, got=3)
    size.answered(asked_for=16, got=16)
    size.answered(asked_for=16, got=3)
    size.answered(asked_for=13, got=5)
    assert size.limit is None
    size.answered(asked_for=11, got=5)
    assert size.limit == 5
