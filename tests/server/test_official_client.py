"""The official client in all its ways, and curl: what they get is strictly of the client's own form."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess

import openai
import pytest
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from asked_over_http import CHAT, chat, post
from demur.answers import json_relation
from demur.backends import OpenAI
from demur.backends.protocol import Settings
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.sources import source_of_run
from demur.policy.calibrate import calibrate
from demur.pools.fields import FieldChoice
from demur.pools.source import vote_pools
from demur.prompts import Template
from demur.records import Problem
from demur.store import Store
from loopback import choice, hang, reply
from patience import wait_until
from serving import listening, made_app, service_of


@pytest.fixture
def client(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0) as made:
        yield made


def strictly(form, received):
    """A document of the client's own form, nothing coerced, nothing but `demur` beside it."""
    form.model_validate(received.to_dict(), strict=True)
    assert set(received.model_extra or {}) <= {"demur"}


def test_replies_are_of_the_clients_own_form(client):
    for text in ("What is 4 + 1?", "What is 5 + 1?"):
        strictly(ChatCompletion, client.chat.completions.create(**chat(text)))
        pieces = client.chat.completions.create(**chat(text), stream=True, stream_options={"include_usage": True})
        for piece in pieces:
            strictly(ChatCompletionChunk, piece)


def test_models_are_listed_and_found(client):
    listed = client.models.list().data
    assert [model.id for model in listed] == ["sums", "sums@0.1", "sums@0.3", "gpt-4o"]
    for model in listed:
        Model.model_validate(model.to_dict(), strict=True)
        assert client.models.retrieve(model.id).to_dict() == model.to_dict()
    with pytest.raises(openai.NotFoundError, match=r"there is no model 'sums@0\.2'"):
        client.models.retrieve("sums@0.2")


def test_headers_tell_the_decision(client):
    raw = client.chat.completions.with_raw_response.create(**chat("What is 5 + 1?"))
    assert raw.headers["x-demur-decision"] == "abstained"
    assert raw.headers["x-demur-paths"] == "5/5"
    assert float(raw.headers["x-demur-overhead-ms"]) >= 0
    assert raw.headers["x-demur-request-id"] == raw.parse().model_extra["demur"]["request_id"]


def test_errors_are_of_the_classes_that_the_client_has(client, service):
    with pytest.raises(openai.NotFoundError, match="there is no model 'other'") as missing:
        client.chat.completions.create(**chat(model="other"))
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError, match="n must be 1"):
        client.chat.completions.create(**chat(), n=2)
    service.fan_out.most_waiting, service.fan_out.underway = 0, service.fan_out.most
    with pytest.raises(openai.RateLimitError) as full:
        client.chat.completions.create(**chat())
    assert int(full.value.response.headers["retry-after"]) >= 1
    service.closing = True
    with pytest.raises(openai.InternalServerError) as closing:
        client.chat.completions.create(**chat())
    assert (closing.value.status_code, closing.value.code) == (503, "shutting_down")


def test_the_asynchronous_client_asks_many_at_once(address):
    async def all_of(numbers):
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="unused") as many:
            asking = (many.chat.completions.create(**chat(f"What is {k} + 1?")) for k in numbers)
            return await asyncio.gather(*asking)

    numbers = range(0, 40, 2)
    replies = asyncio.run(all_of(numbers))
    assert [one.choices[0].message.content for one in replies] == [str(k + 1) for k in numbers]
    assert len({one.id for one in replies}) == 20


class Total(BaseModel):
    total: int


SCHEMA = openai.lib._parsing._completions.type_to_response_format_param(Total)["json_schema"]["schema"]


def teller(number, body, request):
    """Totals of orders: sure of even ones."""
    k = int(re.search(r"Order (\d+)", body["messages"][-1]["content"]).group(1))
    seed = body.get("seed", 0)
    totals = [k if k % 2 == 0 else (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(json.dumps({"total": total})) for total in totals))


@pytest.fixture
def orders(server, tmp_path):
    """The address of a policy whose answers are JSON of one schema."""
    server.behave = teller
    problems = [Problem(f"o{k}", f"Order {k}?", ({"total": k},), extra={"task": "plain"}) for k in range(60)]
    template = Template(system="", user="{question} Answer in JSON.")
    how = {"score": None, "settings": Settings(logprobs=False), "extract": r"\{.*\}"}
    run = Pipeline(OpenAI(server.url, "adder"), 5, template=template, **how).run(problems, tmp_path / "run.db")
    with Store(run.store) as opened:
        pools = source_of_run(opened.run(run.name))
    voted = vote_pools(pools, FieldChoice(relation=json_relation(schema=SCHEMA).spec))
    with listening(made_app(service_of(server.url, calibrate(voted, alpha=0.2), name="orders"))) as url:
        yield url


def test_parse_gives_the_parsed_answer_or_the_refusal(orders):
    with openai.OpenAI(base_url=f"{orders}/v1", api_key="unused", max_retries=0) as client:
        answered = client.chat.completions.parse(**chat("Order 8?", "orders"), response_format=Total)
        assert answered.choices[0].message.parsed == Total(total=8)
        assert answered.choices[0].message.refusal is None
        abstained = client.chat.completions.parse(**chat("Order 11?", "orders"), response_format=Total)
        assert abstained.choices[0].message.parsed is None
        assert abstained.choices[0].message.refusal.startswith("Not answered")

        class Other(BaseModel):
            sum: int

        with pytest.raises(openai.BadRequestError, match="answers of another schema"):
            client.chat.completions.parse(**chat("Order 8?", "orders"), response_format=Other)


def test_a_stream_that_is_parsed_as_it_comes_ends_in_the_answer_or_the_refusal(orders):
    with openai.OpenAI(base_url=f"{orders}/v1", api_key="unused", max_retries=0) as client:
        for number, parsed in ((8, Total(total=8)), (11, None)):
            asking = chat(f"Order {number}?", "orders")
            with client.chat.completions.stream(**asking, response_format=Total) as events:
                kinds = {event.type for event in events}
                message = events.get_final_completion().choices[0].message
            assert (message.parsed, message.refusal is None) == (parsed, parsed is not None)
            assert ("refusal.done" in kinds) == (parsed is None)


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


def curl(address, body, *options):
    sent = ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    ran = subprocess.run(
        ["curl", "-sS", *options, *sent, f"{address}{CHAT}"], capture_output=True, timeout=300, check=True
    )
    return ran.stdout.decode()


@needs_curl
def test_curl_gets_the_same(address):
    assert json.loads(curl(address, chat()))["choices"][0]["message"]["content"] == "5"


@needs_curl
def test_a_stream_is_kept_open_while_paths_are_drawn(upstream, sums_policy):
    upstream.delay = 1.5
    with listening(made_app(service_of(upstream.url, sums_policy, keep_alive=0.1))) as address:
        lines = curl(address, chat(stream=True), "-N").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("data: "))
    comments = [line for line in lines[:first] if line]
    assert len(comments) >= 2
    assert all(line.startswith(":") for line in comments)
    assert lines[-2:] == ["data: [DONE]", ""]


def test_for_who_goes_away_from_a_stream_nothing_more_is_asked(upstream, sums_policy):
    upstream.behave = lambda number, body, request: hang(300)
    service = service_of(upstream.url, sums_policy, keep_alive=0.05)
    with listening(made_app(service)) as address:
        with post(address, chat(stream=True), stream=True) as reading:
            lines = reading.iter_lines()
            assert next(lines).startswith(b":")
            wait_until(lambda: service.underway == 1)
        wait_until(lambda: (service.underway, service.fan_out.underway) == (0, 0))


def test_a_trace_is_passed_on_and_what_is_none_is_not(client, upstream):
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    client.chat.completions.create(**chat(), extra_headers={"traceparent": trace})
    assert {seen.get("traceparent") for seen in upstream.headers} == {trace}
    upstream.headers.clear()
    for number, none in enumerate(("00-zz", trace.replace("00-", "ff-", 1), trace.replace("a", "0"))):
        client.chat.completions.create(**chat(f"What is {number} + 1?"), extra_headers={"traceparent": none})
    assert {seen.get("traceparent") for seen in upstream.headers} == {None}
