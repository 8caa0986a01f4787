"""Scorers on servers that speak vLLM's formats: the numbers are the model's own, and what is not is refused."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace

import pytest
from aiohttp import web

from demur.errors import BackendError, EndpointRefused, InvalidValue, LogprobsMissing, ScoringError
from demur.prompts.conversations import with_transcript
from demur.prompts.templates import Template
from demur.records import Path, Pool, Problem
from demur.scoring import ScorerSettings, make_scorer
from demur.scoring.model_scorer import is_too_long
from demur.scoring.perplexity.recorded import statistic
from demur.scoring.protocol import Failed, flagged, full_identity
from demur.store import PathScore, Unscored
from loopback import error, reply
from vllm import Vllm, log_yes, reward, templated, token_logprob, tokens_of

TEXTS = ("2 + 3 = 5, so 5.", "It is 6.", " The answer is 5 ", "")
PROBLEM = Problem("q", "What is 2 + 3?", gold=("5",), extra={"task": "math"})
POOL = Pool(PROBLEM, tuple(Path(text=text) for text in TEXTS))
COMPLETION = Template("Q: {question}\nA:", kind="completion")
CHAT = Template("{question}", system="Think.")


@pytest.fixture
def vllm(server):
    server.behave = Vllm()
    return server.behave


@pytest.fixture
def scorer(server):
    def make(name, template=None, **settings):
        settings.setdefault("patience", 0.5)
        return make_scorer(name, ScorerSettings(model="m", base_url=server.url, **settings), template=template)

    return make


def outcomes(scorer, pool=POOL):
    async def main():
        found = []
        try:
            await scorer.prepare()
            await scorer.score_block([Unscored(0, pool, tuple(range(len(pool.paths))))], found.append)
        finally:
            await scorer.close()
        return found

    return asyncio.run(main())


def flags(scorer, pool=POOL):
    return [each.flag for each in sorted(outcomes(scorer, pool), key=lambda each: each.path)]


def rewards(texts=TEXTS):
    chats = [[{"role": "user", "content": "What is 2 + 3?"}, {"role": "assistant", "content": text}] for text in texts]
    return [reward(tokens_of(templated(chat, to_be_answered=False))) for chat in chats]


@pytest.mark.parametrize("route", ["classify", "pooling"])
def test_a_reward_is_r_itself_by_either_route(vllm, scorer, route):
    made = scorer("reward", route=route)
    assert made.score(POOL) == pytest.approx(rewards())
    assert full_identity(made)["route"] == route
    assert full_identity(made)["activation"] == "none"


def test_the_route_is_found_out(vllm, scorer):
    vllm.routes = tuple(route for route in vllm.routes if route != "/classify")
    made = scorer("reward")
    assert made.score(POOL) == pytest.approx(rewards())
    assert full_identity(made)["route"] == "pooling"


def test_paths_go_in_batches_without_a_doubled_start_of_text(vllm, scorer):
    """The stand-in fails where <s> stands twice; so must a client that forgets add_special_tokens."""
    made = scorer("reward")
    assert made.score(POOL) == pytest.approx(rewards())
    assert made.at_once > 1
    assert vllm.seen.count("/classify") == 3 + 3 + 1  # three probes, each also in a batch, and the pool in one
    assert full_identity(made)["asked"] == "templated texts"


def test_without_the_servers_template_each_path_goes_as_a_conversation(vllm, scorer):
    vllm.routes = ("/classify",)
    made = scorer("reward")
    assert made.score(POOL) == pytest.approx(rewards())
    assert made.at_once == 1
    assert full_identity(made)["asked"] == "conversations"


def test_a_sigmoid_in_place_of_the_reward_is_refused(vllm, scorer):
    vllm.activation = "always"
    with pytest.raises(ScoringError, match="look like sigmoids, not rewards"):
        scorer("reward").score(POOL)


def test_rewards_between_0_and_1_are_taken_when_the_user_vouches_for_them(vllm, scorer):
    vllm.activation = "always"
    assert scorer("reward", raw=True).score(POOL) == pytest.approx([1 / (1 + math.exp(-r)) for r in rewards()])


def test_no_reward_route_at_all_is_named(vllm, scorer):
    vllm.routes = ()
    with pytest.raises(
        EndpointRefused, match=r"serves no reward model: /classify: .*404.*/pooling.*the runner `pooling`"
    ):
        scorer("reward").score(POOL)


def test_another_number_of_results_is_an_error(vllm, scorer):
    made, found = scorer("reward"), []

    async def main():
        await made.prepare()
        vllm.results = 0
        try:
            await made.score_block([Unscored(0, POOL, (0, 1, 2, 3))], found.append)
        finally:
            await made.close()

    asyncio.run(main())
    assert all(isinstance(each, Failed) for each in found)
    assert "gave 0 results for 1 paths" in found[0].reason


@pytest.mark.parametrize("answer", [[0.2, 0.8], "high", None, float("nan"), True, 10**400])
def test_what_is_no_scalar_is_no_reward(server, scorer, answer):
    from aiohttp import web

    server.behave = lambda n, body, request: web.json_response({"data": [{"index": 0, "probs": answer}]})
    with pytest.raises((ScoringError, EndpointRefused), match="no reward model"):
        scorer("reward").score(POOL)


def test_a_path_beyond_the_context_is_cut_from_the_left_and_flagged(vllm, scorer):
    pool = Pool(PROBLEM, (Path(text="x" * 1000 + " so 5"), Path(text="5")))
    vllm.longest = 400
    assert flags(scorer("reward"), pool) == ["cut", None]
    with pytest.raises(ScoringError, match="set too_long = cut"):
        scorer("reward", too_long="refuse").score(pool)
    vllm.longest = 900
    assert flags(scorer("judge", route="chat"), pool) == ["cut", None]
    asked_at_length = Pool(Problem("q", "What is it? " * 100), pool.paths)
    with pytest.raises(ScoringError, match="its question does not fit"):
        scorer("judge", route="chat").score(asked_at_length)


def yes(texts=TEXTS, made=None):
    return [log_yes(tokens_of(templated(made.chat(PROBLEM, text), to_be_answered=True))) for text in texts]


@pytest.mark.parametrize(
    ("route", "told"), [("chat", "top 20"), ("token_ids", "token_ids"), ("scoring", "generative_scoring")]
)
def test_a_judge_reads_log_p_of_y_by_every_route(vllm, scorer, route, told):
    made = scorer("judge", route=route)
    assert made.score(POOL) == pytest.approx(yes(made=made), abs=1e-9)
    assert full_identity(made)["route"] == told


def test_the_exact_route_is_taken_where_the_server_heeds_token_ids(vllm, scorer):
    made = scorer("judge")
    assert made.score(POOL) == pytest.approx(yes(made=made))
    assert full_identity(made)["route"] == "token_ids"


def test_a_server_that_ignores_token_ids_is_found_out(vllm, scorer):
    vllm.heeds_token_ids = False
    made = scorer("judge")
    assert made.score(POOL) == pytest.approx(yes(made=made))
    assert full_identity(made)["route"] == "top 20"
    with pytest.raises(ScoringError, match="does not heed logprob_token_ids"):
        scorer("judge", route="token_ids").score(POOL)


def test_softmax_over_y_and_n_would_show(vllm, scorer):
    """Negative control: the stand-in's default answer is another number."""
    made = scorer("judge", route="scoring")
    ask = made.endpoint.post

    async def with_softmax(route, body, **more):
        return await ask(route, {**body, "apply_softmax": True} if "apply_softmax" in body else body, **more)

    made.endpoint.post = with_softmax
    assert made.score(POOL) != pytest.approx(yes(made=made), abs=1e-3)


def test_y_beyond_the_listed_tokens_is_a_flagged_floor(vllm, scorer):
    vllm.listed, vllm.heeds_token_ids = 1, False
    made = scorer("judge")
    found = {each.path: each for each in outcomes(made)}
    for path, exact in enumerate(yes(made=made)):
        likelier = exact > math.log(0.5)
        assert found[path].flag == (None if likelier else "floor")
        assert exact - 1e-9 <= found[path].value <= math.log(0.6) or likelier


def test_thinking_is_switched_off_for_reasoning_judges(vllm, scorer):
    vllm.thinks = True
    made = scorer("judge")
    assert made.score(POOL) == pytest.approx(yes(made=made))
    assert full_identity(made)["thinking"] == "off"


def test_a_judge_that_thinks_or_answers_in_prose_is_refused_before_anything_is_stored(vllm, scorer):
    vllm.thinks, vllm.refuses, vllm.heeds_token_ids = True, ("chat_template_kwargs",), False
    with pytest.raises(ScoringError, match=r"neither Y nor N: its answer begins with '<think>'.*thinking"):
        scorer("judge").score(POOL)


def test_fields_that_a_server_minds_are_put_another_way(vllm, scorer):
    vllm.refuses = ("max_completion_tokens", "chat_template_kwargs")
    made = scorer("judge", route="chat")
    assert made.score(POOL) == pytest.approx(yes(made=made))
    assert full_identity(made)["thinking"] == "as the model has it"


def test_an_endpoint_without_log_probabilities_cannot_judge(vllm, scorer):
    vllm.logprobs = False
    with pytest.raises(LogprobsMissing, match="gives no token log-probabilities"):
        scorer("judge").score(POOL)
    vllm.refuses = ("logprobs",)
    with pytest.raises(EndpointRefused, match="gives no token log-probabilities"):
        scorer("judge").score(POOL)


def test_a_judge_never_sees_gold_or_passages(vllm, scorer, server):
    problem = Problem("q", "Who?", gold=("SECRET",), extra={"task": "qa", "passages": ["PASSAGE"]})
    scorer("judge").score(Pool(problem, (Path(text="It was me."),)))
    sent = repr(server.requests)
    assert "It was me." in sent
    assert "SECRET" not in sent
    assert "PASSAGE" not in sent


def logprobs_behind(prefix: str, text: str, *, start: bool) -> list[float]:
    tokens = ([1] if start else []) + tokens_of(prefix + text.rstrip())
    first = len(tokens) - len(tokens_of(text.rstrip()))
    return [token_logprob(tokens[at - 1], tokens[at]) for at in range(first, len(tokens))]


@pytest.mark.parametrize("kind", ["perplexity", "perplexity-std", "perplexity-std-negated"])
@pytest.mark.parametrize("route", ["prompt_logprobs", "echo"])
def test_stored_text_behind_a_text_prompt_is_scored_again(vllm, scorer, kind, route):
    made = scorer(kind, COMPLETION, route=route)
    wanted = [statistic(kind, logprobs_behind("Q: What is 2 + 3?\nA:", text, start=True)) for text in TEXTS if text]
    found = outcomes(made)
    by_path = {each.path: each for each in found}
    assert [by_path[path].value for path in range(3)] == pytest.approx(wanted)
    assert (by_path[3].value, by_path[3].flag) == (pytest.approx(min(wanted)), "empty")


def test_stored_text_behind_a_chat_is_scored_again(vllm, scorer):
    made = scorer("perplexity", CHAT)
    prefix = templated(list(CHAT.render(PROBLEM).messages), to_be_answered=True)
    wanted = [statistic("perplexity", logprobs_behind(prefix, text.strip(), start=False)) for text in TEXTS if text]
    assert made.score(POOL)[:3] == pytest.approx(wanted)
    assert full_identity(made)["route"] == "prompt_logprobs"


def test_a_template_that_drops_part_of_a_path_is_refused(vllm, scorer):
    vllm.drops_thoughts = True
    pool = Pool(PROBLEM, (Path(text="<think>2 and 3</think> It is 5."), Path(text="It is 6.")))
    with pytest.raises(ScoringError, match="its template changes paths"):
        scorer("perplexity", CHAT).score(pool)


def test_a_server_that_cannot_score_text_says_so(server, scorer):
    """llama.cpp ignores echo and prompt_logprobs, and answers as if nothing had been asked."""
    from loopback import choice

    server.behave = lambda n, body, request: reply(choice("4", [-0.1], chat="messages" in body))
    for template in (COMPLETION, CHAT):
        with pytest.raises(LogprobsMissing, match="does not tell the log-probabilities of stored text"):
            scorer("perplexity", template).score(POOL)


def test_a_judge_whose_server_dies_names_the_path_and_the_others_go_on(vllm, scorer, server):
    behaves = server.behave

    def sometimes(number, body, request):
        return error(400, "no") if "It is 6." in repr(body) else behaves(number, body, request)

    made = scorer("judge", route="chat")
    server.behave = sometimes
    found = outcomes(made)
    assert sorted(each.path for each in found if not isinstance(each, Failed)) == [0, 2, 3]
    assert [each.reason for each in found if isinstance(each, Failed)] == ["path 1: the endpoint answered 400: no"]


def test_paths_without_a_text_are_named_and_never_judged_as_if_they_said_nothing(vllm, scorer):
    pool = Pool(PROBLEM, (Path("5"), Path("5", "It is 5.")))
    for name in ("judge", "reward"):
        failed, scored = sorted(outcomes(scorer(name), pool), key=lambda each: isinstance(each, PathScore))
        assert (failed.reason, scored.path) == ("path 0 has no text to score", 1)


def test_a_refusal_in_mid_run_does_not_change_how_the_rest_is_asked(vllm, scorer, server):
    """Validation errors repeat the request; they must not switch thinking on under an identity that says off."""
    good = server.behave
    made = scorer("judge", route="chat")

    def sometimes(number, body, request):
        if "It is 6." in repr(body):
            return error(400, "Input should be a valid string: chat_template_kwargs, top_logprobs, logprobs")
        return good(number, body, request)

    server.behave = sometimes
    identity_after = [outcomes(made), full_identity(made)][1]
    assert (identity_after["thinking"], identity_after["route"]) == ("off", "top 20")
    assert all(body["top_logprobs"] == 20 and "chat_template_kwargs" in body for body in server.requests)


def test_a_server_that_lists_five_at_most_is_asked_for_five(vllm, scorer, server):
    good = server.behave
    server.behave = lambda n, body, request: (
        error(400, "Requested sample logprobs of 20, which is greater than max allowed: 5")
        if body.get("top_logprobs", 0) > 5
        else good(n, body, request)
    )
    made = scorer("judge", route="chat")
    assert made.score(POOL) == pytest.approx(yes(made=made))
    assert full_identity(made)["route"] == "top 5"


def test_a_passing_failure_while_probing_does_not_change_the_route(vllm, scorer, server):
    good, broken = server.behave, {"/tokenize", "/classify"}

    def flaky(number, body, request):
        if request.path in broken:
            broken.remove(request.path)
            return error(502, "bad gateway")
        return good(number, body, request)

    server.behave = flaky
    judge, made = scorer("judge", patience=30), scorer("reward", patience=30)
    judge.score(POOL)
    made.score(POOL)
    assert full_identity(judge)["route"] == "token_ids"
    assert (full_identity(made)["route"], full_identity(made)["asked"]) == ("classify", "templated texts")


def test_vouched_rewards_are_another_score_than_raw_ones(scorer):
    assert scorer("reward", raw=True).identity() != scorer("reward").identity()


def test_probabilities_in_place_of_log_probabilities_are_refused(server, scorer):
    from loopback import choice

    def wrong(number, body, request):
        top = [{"token": "Y", "logprob": 0.3}, {"token": "N", "logprob": 0.7}]
        return reply({**choice("N"), "logprobs": {"content": [{"token": "N", "logprob": 0.7, "top_logprobs": top}]}})

    server.behave = wrong
    with pytest.raises(ScoringError, match="cannot be log-probabilities"):
        scorer("judge", route="chat").score(POOL)


def test_a_judge_that_hardly_thinks_of_y_or_n_is_refused_by_every_route(vllm, scorer, monkeypatch):
    import vllm as stand_in

    monkeypatch.setattr(stand_in, "log_yes", lambda tokens: -27.0)
    monkeypatch.setattr(stand_in, "log_no", lambda yes: -27.0)
    for route in ("chat", "token_ids", "scoring"):
        with pytest.raises(ScoringError, match="says neither Y nor N"):
            scorer("judge", route=route).score(POOL)


def test_what_a_template_puts_before_a_path_is_not_taken_for_it(vllm, scorer):
    vllm.before_answers = "<think>\n\n</think>\n\n"
    with pytest.raises((ScoringError, LogprobsMissing), match="its template changes paths"):
        scorer("perplexity", CHAT).score(POOL)


def test_characters_of_several_tokens_are_recognised(vllm, scorer):
    vllm.unreadable = "é"
    pool = Pool(PROBLEM, (Path(text="né 5"), Path(text="Ça fait 5, né")))
    prefix = "Q: What is 2 + 3?\nA:"
    wanted = [statistic("perplexity", logprobs_behind(prefix, each.text, start=True)) for each in pool.paths]
    assert scorer("perplexity", COMPLETION).score(pool) == pytest.approx(wanted)


def test_a_chat_cannot_be_scored_by_echo(scorer):
    with pytest.raises(InvalidValue, match="the route echo reads a text"):
        scorer("perplexity", CHAT, route="echo")


def test_one_bad_path_does_not_spoil_its_batch(vllm, scorer, server):
    good = server.behave
    made = scorer("reward")

    def not_that_one(number, body, request):
        return error(400, "no") if "so 5." in repr(body.get("input")) else good(number, body, request)

    server.behave = not_that_one
    found = outcomes(made)
    assert sorted(each.path for each in found if isinstance(each, PathScore)) == [1, 2, 3]


def test_blank_paths_have_the_lowest_score_of_their_pool(vllm, scorer):
    pool = Pool(PROBLEM, (Path(text="It is 5."), Path(text=" \n"), Path(text="")))
    values = scorer("perplexity", COMPLETION).score(pool)
    assert values[1] == values[2] == values[0]
    assert flags(scorer("perplexity", COMPLETION), pool) == [None, "empty", "empty"]


@pytest.mark.parametrize(
    ("said", "long"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", True),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096", True),
        ("the request exceeds the available context size, try increasing it", True),
        ("input is too large to process. increase the physical batch size", True),
        ("max_tokens must be at least 1", False),
        ("Too many images", False),
        ("logprobs are not supported in this context", False),
    ],
)
def test_only_refusals_of_length_cut_a_path(said, long):
    assert is_too_long(said) is long


def test_flags_do_not_grow():
    assert flagged(flagged(flagged("floor", "cut"), "cut"), None) == "cut+floor"


def test_keys_are_sent_and_never_told(vllm, scorer, server, monkeypatch):
    monkeypatch.setenv("JUDGE_API_KEY", "hush-hush")
    scorer("judge").score(POOL)
    assert all(headers["Authorization"] == "Bearer hush-hush" for headers in server.headers)
    server.behave = lambda n, body, request: error(401, "the key hush-hush is wrong")
    with pytest.raises(BackendError) as told:
        scorer("judge").score(POOL)
    assert "hush-hush" not in str(told.value)
    assert "JUDGE_API_KEY" in str(told.value)


TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 1 + 1?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "And 3 more?"},
]
CONVERSATION = Problem("t", extra={"task": "math", "messages": TALK})


def conversing(*texts, **extra):
    problem = with_transcript(replace(CONVERSATION, extra={**CONVERSATION.extra, **extra}))
    return Pool(problem, tuple(Path(text=text) for text in texts))


def test_a_reward_model_is_given_the_conversation_and_the_path(vllm, scorer, server):
    pool, said = conversing("5", "6"), [*TALK, {"role": "assistant", "content": "5"}]
    batched = scorer("reward").score(pool)
    vllm.routes = ("/classify",)  # no template to be seen: each path goes as a conversation
    server.requests.clear()
    assert scorer("reward").score(pool) == pytest.approx(batched)
    assert said in [body.get("messages") for body in server.requests]
    server.requests.clear()
    scorer("reward").score(conversing("5", options=["five", "six"]))
    (put,) = [body["messages"] for body in server.requests if TALK[0] in body.get("messages", [])][:1]
    assert put[:3] == TALK[:3]
    assert put[3]["content"] == "And 3 more?\n\nA. five\nB. six"


def test_a_reward_models_own_prompt_of_one_question_refuses_a_conversation(vllm, scorer):
    mine = scorer("reward", prompt={"user": "Q: {question}"})
    with pytest.raises(ScoringError, match="'t' is a conversation of 4 messages"):
        mine.score(conversing("5"))
    whole = scorer("reward", prompt={"user": "Q: {question}", "kind": "conversation"})
    assert whole.chat(CONVERSATION, "5")[-2:] == [
        {"role": "user", "content": "Q: And 3 more?"}, {"role": "assistant", "content": "5"},
    ]  # fmt: skip


def test_a_judge_reads_the_transcript(vllm, scorer, server):
    scorer("judge", route="chat").score(conversing("It is 5."))
    (asked,) = {body["messages"][-1]["content"] for body in server.requests if "It is 5." in str(body.get("messages"))}
    assert (
        "Problem: [system]\nBe brief.\n\n[user]\nWhat is 1 + 1?\n\n[assistant]\n2\n\n[user]\nAnd 3 more?\n\n" in asked
    )


def test_stored_text_behind_a_conversation_is_scored_again(vllm, scorer):
    template = Template("{question}", kind="conversation")
    made = scorer("perplexity", template)
    wanted = [
        statistic("perplexity", logprobs_behind(templated(TALK, to_be_answered=True), text, start=False))
        for text in ("It is 5.", "6")
    ]
    assert made.score(conversing("It is 5.", "6")) == pytest.approx(wanted)
    with pytest.raises(InvalidValue, match="the route echo reads a text"):
        scorer("perplexity", template, route="echo")


@pytest.mark.parametrize("name", ["judge", "reward", "perplexity"])
def test_replies_of_several_models_are_refused_unless_they_are_asked_for(server, scorer, name):
    """A router that answers for one judge by two of them."""
    model = Vllm()

    def routed(number, body, request):
        said = json.loads(model(number, body, request).body)
        return web.json_response({**said, "model": f"m-{number % 2}"} if isinstance(said, dict) else said)

    server.behave = routed
    with pytest.raises(EndpointRefused, match=rf"several models: 'm-[01]', 'm-[01]'.*{name}.mixed_models=true"):
        outcomes(scorer(name, CHAT))
    assert all(isinstance(each, PathScore) for each in outcomes(scorer(name, CHAT, mixed_models=True)))
