"""Answers and addresses that are odd: choices out of order, keys spelt with escapes, hosts that cannot be."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from demur.backends import OpenAI, Prompt, Settings, Wanted
from demur.backends.protocol import read_choices
from demur.errors import BackendError
from loopback import choice, reply

CHAT = Prompt("?", messages=({"role": "user", "content": "?"},))
KEY = "sk-Ab/cd+ef0123456789=="


def sample(backend, n):
    async def work():
        try:
            wanted = [Wanted(k, k) for k in range(n)]
            return [path async for portion in backend.sample(CHAT, Settings(), wanted) for path in portion]
        finally:
            await backend.close()

    return asyncio.run(work())


def test_choices_that_come_out_of_order_have_the_seeds_of_their_places(server):
    def behave(number, body, request):
        said = [choice(f"drawn {place}") | {"index": place} for place in range(body["n"])]
        return reply(*said[::-1])

    server.behave = behave
    drawn = sample(OpenAI(server.url, "m"), n=4)
    assert [path.text for path in drawn] == [f"drawn {path.path}" for path in drawn]


@pytest.mark.parametrize(
    ("places", "paths"),
    [([2], [2]), ([3, 1], [1, 3]), ([1, 2, 3, 4], [0, 1, 2, 3]), ([0, 0, 1], [0, 1, 2]), ([None, 0], [0, 1]),
     ([9], [0]), ([5, 4, 3, 2, 1, 0], [0, 1, 2, 3])],
)  # fmt: skip
def test_a_choice_is_the_path_that_its_place_says_also_where_others_are_missing(places, paths):
    """Under another path's seed it would come once more, when the path that is missing is asked for again."""
    document = {"choices": [{"index": place, "message": {"content": f"{place}"}} for place in places]}
    drawn = read_choices(document, [Wanted(k, 100 + k) for k in range(4)])
    assert [(path.path, path.seed) for path in drawn] == [(k, 100 + k) for k in paths]
    by_place = places in ([2], [3, 1], [5, 4, 3, 2, 1, 0])
    assert [path.text for path in drawn] == [str(k) for k in (paths if by_place else places)]


@pytest.mark.parametrize("spelt", [KEY.replace("+", "\\u002b"), "".join(f"\\u{ord(c):04x}" for c in KEY)])
def test_a_key_that_is_spelt_with_escapes_is_taken_out_too(server, monkeypatch, spelt):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = '{"choices": [{"index": 0, "message": {"role": "assistant", "content": "It is SPELT."}}]}'
    body = body.replace("SPELT", spelt)
    server.behave = lambda *_: web.Response(text=body, content_type="application/json")
    (path,) = sample(OpenAI(server.url, "m"), n=1)
    assert path.text.startswith("It is ")
    assert "Ab/cd" not in path.text


@pytest.mark.parametrize(
    "address", ["http://a..b/v1", f"http://{'a' * 300}/v1", "http://[::1", "http://[bad", "http://h:99999/"]
)
def test_odd_addresses_end_in_one_line(address):
    with pytest.raises(BackendError) as told:
        sample(OpenAI(address, "m", patience=0.0), n=1)
    assert "\n" not in str(told.value)
