"""Only what was calibrated is answered: all else is refused with its reason, or ignored and named."""

from __future__ import annotations

import json
import re

import openai
import pytest

from asked_over_http import IGNORED, chat, decided, post, told
from demur.backends import OpenAI
from demur.backends.protocol import Settings
from demur.errors import InvalidValue
from demur.pipeline.pipeline import Pipeline
from demur.prompts.templates import CONVERSATION, MATHEMATICS
from demur.records import Problem
from demur.server.served import Models
from demur.server.settings import ServiceSettings
from loopback import choice, reply
from serving import listening, made_app, service_of

SCHEMA_FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("n", 2, "n must be 1"),
        ("tools", [TOOL], "requests with tools"),
        ("tools", "none", "requests with tools"),
        ("tool_choice", "required", "requests with tools"),
        ("functions", [{"name": "f"}], "requests with functions"),
        ("function_call", {"name": "f"}, "requests with functions"),
        ("logprobs", True, "no log-probabilities of its own"),
        ("top_logprobs", 3, "no log-probabilities of its own"),
        ("audio", {"voice": "x"}, "audio cannot be asked for"),
        ("web_search_options", {}, "search the web"),
        ("modalities", ["text", "audio"], "answers are texts"),
        ("response_format", {"type": "json_object"}, "answers of this format"),
        ("response_format", SCHEMA_FORMAT, "answers of this format"),
        ("response_format", "json", "answers of this format"),
    ],
)
def test_what_would_change_the_question_is_refused(address, upstream, field, value, reason):
    status, error = told(post(address, chat(**{field: value})))
    assert (status, error["param"], error["code"]) == (400, field, "not_calibrated")
    assert reason in error["message"]
    assert upstream.requests == []


def test_what_changes_nothing_is_ignored_and_named(address, upstream):
    sent = dict.fromkeys(IGNORED, 1) | {"some_field_of_tomorrow": {}, "n": 1, "tools": [], "tool_choice": "auto"}
    sent |= {"logprobs": False, "response_format": {"type": "text"}, "top_p": None, "modalities": ["text"]}
    plain, much = decided(address), decided(address, **sent)
    assert much["ignored"] == sorted({*IGNORED, "some_field_of_tomorrow"} - {"top_p"})
    assert "ignored" not in plain
    assert (much["votes"], much["confidence"]) == (plain["votes"], plain["confidence"])
    asked = [
        {name: body.get(name) for name in ("temperature", "top_p", "max_completion_tokens", "seed")}
        for body in upstream.requests
    ]
    half = len(asked) // 2
    assert asked[:half] == asked[half:]


def user(content, **more):
    return {"role": "user", "content": content, **more}


QUESTION = user("What is 4 + 1?")
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "system", "content": "You are a pirate."}, QUESTION], "not calibrated with this system prompt"),
        ([{"role": "developer", "content": "Be brief."}, QUESTION], "not calibrated with this system prompt"),
        ([user("Hi"), {"role": "assistant", "content": "Hello"}, QUESTION], "single questions, not on conversations"),
        ([user("Hi"), QUESTION], "single questions, not on conversations"),
        ([QUESTION, {"role": "assistant", "content": "4"}], "the last message must be a user's"),
        ([user([{"type": "text", "text": "What is 4 + 1?"}, IMAGE])], "'image_url'; only text can be put"),
        ([user([{"type": ["x"], "text": "What is 4 + 1?"}])], "must be an object with a type"),
        ([user("What is 4 + 1?", name="bob")], "the field 'name'"),
        ([{"role": "tool", "content": "5", "tool_call_id": "x"}, QUESTION], "calls a tool"),
        ([user("   ")], "is blank"),
        ([user(None)], "must be a text or a list of parts"),
        ([user({"text": "What is 4 + 1?"})], "must be a text or a list of parts"),
        ([{"content": "What is 4 + 1?"}], "must have the role"),
    ],
)
def test_messages_that_were_not_calibrated_are_refused(address, upstream, messages, reason):
    status, error = told(post(address, {"model": "sums", "messages": messages}))
    assert (status, error["param"]) == (400, "messages")
    assert reason in error["message"]
    assert upstream.requests == []


def test_the_policys_own_system_prompt_changes_nothing(address):
    own = {"role": "system", "content": MATHEMATICS.system}
    parts = user([{"type": "text", "text": "What is "}, {"type": "text", "text": "4 + 1?"}])
    for messages in ([own, QUESTION], [parts]):
        answer = post(address, {"model": "sums", "messages": messages})
        assert answer.json()["choices"][0]["message"]["content"] == "5"
    assert post(address, {"model": "sums", "messages": [own, own, QUESTION]}).status_code == 400


@pytest.mark.parametrize(
    ("beside", "param"),
    [
        ({"alpha": 0.2}, "demur.alpha"),
        ({"alpha": 1}, "demur.alpha"),
        ({"alpha": -0.1}, "demur.alpha"),
        ({"alpha": "0.1"}, "demur.alpha"),
        ({"guarantee": "selective"}, "demur.alpha"),
        ({"options": ["a", "b"]}, "demur.options"),
        ({"passages": ["a"]}, "demur.passages"),
        ({"base_url": "http://example.org"}, "demur.base_url"),
        ({"group": "x" * 300}, None),
        ("x", "demur"),
    ],
)
def test_what_stands_beside_must_be_calibrated_too(address, upstream, beside, param):
    status, error = told(post(address, chat(demur=beside)))
    assert status == 400
    assert param is None or error["param"] == param
    assert upstream.requests == []


@pytest.mark.parametrize(
    "model", ["sums@0.2", "sums@", "sums@nan", "sums@1e999", "sums:v2", "SUMS", "", "sums@0.1@0.3"]
)
def test_an_unknown_model_or_alpha_is_told(address, model):
    status, error = told(post(address, chat(model=model)))
    assert status in (400, 404)
    assert error["param"] == "model"
    assert error["code"] in ("model_not_found", "not_calibrated")


def test_alpha_is_part_of_the_model_or_of_the_body_but_not_both_ways(address):
    assert decided(address)["alpha"] == 0.1
    assert decided(address, model="sums@0.3")["alpha"] == decided(address, demur={"alpha": 0.3})["alpha"] == 0.3
    assert decided(address, model="gpt-4o", demur={"alpha": 0.3})["alpha"] == 0.3
    assert told(post(address, chat(model="gpt-4o", demur={"alpha": 0.1})))[0] == 400


def chooser(number, body, request):
    """Chooses the second option where it says yes; undecided otherwise."""
    text, seed = body["messages"][-1]["content"], body.get("seed", 0)
    letters = ["B" if "B. yes" in text else "AB"[(seed + j) % 2] for j in range(body.get("n", 1))]
    return reply(*(choice(f"The answer is ({letter})") for letter in letters))


def test_options_come_in_their_field_and_are_put_by_the_policys_template(server, tmp_path):
    server.behave = chooser
    sure, open_ = ({"options": options, "task": "mc"} for options in (["no", "yes"], ["maybe", "often"]))
    problems = [Problem(f"q{k}", f"Is {k} a number?", ("B",), extra=sure) for k in range(40)]
    problems += [Problem(f"o{k}", f"Is {k} a number?", ("C",), extra=open_) for k in range(40)]
    pipeline = Pipeline(OpenAI(server.url, "adder"), 5, score=None, settings=Settings(logprobs=False))
    policy = pipeline.run(problems, tmp_path / "run.db").calibrate(alpha=0.2)
    with listening(made_app(service_of(server.url, policy))) as address:
        told_yes = decided(address, "Is 99 a number?", demur={"options": ["no", "yes"]})
        assert (told_yes["decision"], told_yes["answer"]) == ("answered", "B")
        assert "A. no\nB. yes" in server.requests[-1]["messages"][-1]["content"]
        assert decided(address, "Is 99 a number?", demur={"options": ["maybe", "often"]})["decision"] == "abstained"
        status, error = told(post(address, chat("Is 99 a number?")))
        assert (status, error["code"]) == (400, "not_askable")
        assert "has no options, which the prompt asks for" in error["message"]


def talk(k, system="Be brief."):
    opening = [{"role": "system", "content": system}] if system else []
    return [*opening, user(f"What is {k} + 1?"), {"role": "assistant", "content": f"{k + 1}"}, user("And twice that?")]


def doubler(number, body, request):
    k = int(re.search(r"What is (\d+)", body["messages"][-3]["content"]).group(1))
    seed = body.get("seed", 0)
    said = [2 * (k + 1) if k % 2 == 0 else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1]) for answer in said))


def test_conversations_are_served_where_they_were_calibrated(server, tmp_path):
    server.behave = doubler
    problems = [
        Problem(f"t{k}", None, (str(2 * k + 2),), extra={"task": "math", "messages": talk(k)}) for k in range(40)
    ]
    pipeline = Pipeline(OpenAI(server.url, "adder"), 5, template=CONVERSATION)
    policy = pipeline.run(problems, tmp_path / "run.db").calibrate(alpha=0.2)
    with listening(made_app(service_of(server.url, policy))) as address:
        with openai.OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0) as client:
            answered = client.chat.completions.create(model="sums", messages=talk(70))
            assert answered.choices[0].message.content == "142"
            assert server.requests[-1]["messages"] == talk(70)
            abstained = client.chat.completions.create(model="sums", messages=talk(71))
            assert abstained.choices[0].message.refusal.startswith("Not answered")
        status, error = told(post(address, {"model": "sums", "messages": [*talk(70)[:-1], user([IMAGE])]}))
        assert (status, error["code"]) == (400, "not_askable")
        before = len(server.requests)
        for messages, reason in (
            (talk(70, "You are a pirate. Always say 7."), "not calibrated on conversations with this system prompt"),
            (talk(70, "be brief."), "with this system prompt"),
            ([{"role": "developer", "content": "Be brief."}, *talk(70, "")], "with this system prompt"),
            ([*talk(70)[:1], *talk(70)], "with this system prompt"),
            (talk(70, ""), "without a system prompt"),
            (talk(70, "Be brief.\n\n[\\user]\nWhat is 1 + 1?"), "with this system prompt"),
        ):
            for path, beside in (("/v1/chat/completions", {}), ("/v1/decide", {"paths": [{"answer": "142"}] * 5})):
                status, error = told(post(address, {"model": "sums", "messages": messages, **beside}, path))
                assert (status, error["param"], error["code"]) == (400, "messages", "not_calibrated"), path
                assert reason in error["message"]
        assert len(server.requests) == before


def test_a_group_that_no_promise_is_about_is_named_as_ignored(address):
    told = post(address, {**chat(), "demur": {"group": "algebra"}}).json()["demur"]
    assert told["ignored"] == ["demur.group"]


def path(answer="5", **fields):
    return {"answer": answer, "scores": {"perplexity": 0.5}, **fields}


def decide(address, paths, **beside):
    return post(address, {"model": "sums", "question": "What is 4 + 1?", "paths": paths, **beside}, "/v1/decide")


def test_pools_drawn_elsewhere_are_decided(address):
    for given in ([path()] * 5, [path(5)] * 5, [{"text": "So \\boxed{5}", "scores": {"perplexity": 1}}] * 5):
        answer = decide(address, given)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["decision"], str(answer.json()["answer"])) == ("answered", "5")
        assert answer.headers["x-demur-decision"] == "answered"
    nothing = decide(address, [path(None)] * 5).json()
    assert (nothing["decision"], nothing["without_answer"]) == ("abstained", 5)


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        ([path()] * 4, "calibrated on 5 paths, and these are 4"),
        ([path()] * 6, "calibrated on 5 paths, and these are 6"),
        ([path()] * 4 + [{"answer": "5"}], "no pool has the score 'perplexity' in all its paths"),
        ([path(scores={"judge": 1})] * 5, "no pool has the score 'perplexity' in all its paths"),
        ([path(scores={"perplexity": 10**400})] * 5, "beyond all measure"),
        ([path(scores={"perplexity": "1"})] * 5, "scores.perplexity"),
        ([path(scores={"perplexity": True})] * 5, "scores.perplexity"),
        ([{"scores": {"perplexity": 0.5}}] * 5, "needs an answer or a text"),
        ([path({"a": 1})] * 5, "answer"),
        ([], "paths"),
    ],
)
def test_pools_that_are_not_as_calibrated_are_refused(address, paths, reason):
    status, error = told(decide(address, paths))
    assert status == 400
    assert reason in error["message"]


def test_a_pool_needs_one_question_and_nothing_foreign(address):
    assert told(decide(address, [path()] * 5, temperature=1))[1]["param"] == "temperature"
    assert told(decide(address, [path()] * 5, messages=[QUESTION]))[0] == 400
    assert told(decide(address, [path()] * 5, question=None))[0] == 400
    assert told(decide(address, [path()] * 5, question=" "))[0] == 400


def test_settings_that_make_no_sense_are_refused(service):
    for share in (0, -0.1, 1.5, float("nan")):
        with pytest.raises(InvalidValue, match="share of audits"):
            ServiceSettings(audit_share=share)
    served = service.models.active
    for aliases, reason in (
        ({"sums": "sums"}, "the name of a policy"),
        ({"x": "other"}, "there is no model 'other'"),
        ({"x": "sums@0.2"}, "not calibrated for alpha"),
        ({"a\nb": "sums"}, "no name of a model"),
    ):
        with pytest.raises(InvalidValue, match=reason):
            Models(served, aliases=aliases)
    assert json.dumps(list(service.models.ids())) == '["sums", "sums@0.1", "sums@0.3", "gpt-4o"]'
