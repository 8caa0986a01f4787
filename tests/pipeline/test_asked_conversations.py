"""Conversations from a file to an answer: sampled, calibrated, asked; and never put another way."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import demur as dm
from demur.backends import OpenAI
from demur.datasets import load
from demur.errors import InvalidValue, PipelineMismatch
from demur.pipeline.from_policy import pipeline_of_policy
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.sources import source_of_run
from demur.policy.recalibrate import recalibrate
from demur.prompts.templates import CONVERSATION, Template
from demur.records import Problem
from demur.store import Store
from loopback import choice, reply


def talk(k, *, system="Be brief."):
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": f"What is {k} + 1?"},
        {"role": "assistant", "content": f"{k + 1}"},
        {"role": "user", "content": "And twice that?"},
    ]


def doubler(number, body, request):
    """Reads the earlier turns, which the last message alone does not tell; right on even numbers."""
    k = int(re.search(r"What is (\d+)", body["messages"][-3]["content"]).group(1))
    seed = body.get("seed", 0)
    said = [2 * (k + 1) if k % 2 == 0 else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1 - (seed + j) % 7 / 10]) for j, answer in enumerate(said)))


@pytest.fixture
def problems(tmp_path):
    file = tmp_path / "talks.jsonl"
    records = [{"id": f"t{k}", "task": "math", "gold": 2 * (k + 1), "messages": talk(k)} for k in range(40)]
    file.write_text("\n".join(map(json.dumps, records)))
    return load(file)


@pytest.fixture
def pipeline(server):
    server.behave = doubler
    return Pipeline(OpenAI(server.url, "doubler"), n_paths=5, template=CONVERSATION)


@pytest.fixture
def policy(pipeline, problems, tmp_path):
    return pipeline.run(problems, tmp_path / "run.db").calibrate(alpha=0.2)


def test_the_server_sees_exactly_the_messages(server, policy):
    put = {json.dumps(body["messages"]) for body in server.requests}
    assert put == {json.dumps(talk(k)) for k in range(40)}


def test_a_run_of_conversations_is_calibrated_and_asked(server, policy, pipeline, tmp_path):
    assert policy.n == 40
    assert policy.pipeline["sampling"]["prompt"] == {
        "user": "{question}", "system": "", "kind": "conversation", "stop": [],
    }  # fmt: skip
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    asked_by_policy = pipeline_of_policy(loaded, OpenAI(server.url, "doubler"))
    before = len(server.requests)
    asked = asked_by_policy.ask(Problem("new", extra={"task": "math", "messages": talk(100)}), loaded)
    assert asked.decision.answer == "202"
    assert asked.pool.problem.question == dm.conversation_of(talk(100)).question
    assert [body["messages"] for body in server.requests[before:]] == [talk(100)]
    odd = dm.conversation_of(talk(101))
    assert asked_by_policy.ask(
        Problem("odd", odd.question, extra={"task": "math", **odd.fields}), loaded
    ).decision.abstained


def test_the_same_last_message_behind_other_turns_is_another_question(policy, problems, tmp_path):
    assert len({problem.digest for problem in problems}) == 40
    with Store(tmp_path / "run.db") as store:
        stored = list(store.run("run").pools())
    assert [pool.problem for pool in stored] == problems


@pytest.mark.parametrize("name", ["pools.jsonl", "pools.jsonl.gz", "pools.parquet", "pools.csv"])
def test_an_exported_run_of_conversations_is_the_same_from_a_file(policy, tmp_path, name):
    from demur.pipeline.sources import source_of_run

    with Store(tmp_path / "run.db") as store:
        source = source_of_run(store.run("run"))
        pools = list(source.pools)
    dm.write_pools(source, tmp_path / name)
    again = dm.read_pools(tmp_path / name)
    assert [pool.problem for pool in again.pools] == [pool.problem for pool in pools]
    ours, theirs = (dm.vote_pools(one, dm.FieldChoice()) for one in (source, again))
    assert list(ours.questions) == list(theirs.questions)


def test_a_conversation_under_another_prompt_is_refused_before_a_store_is_made(pipeline, problems, tmp_path):
    said = "'t0' is a conversation of 4 messages, .*; sample and calibrate with prompt=conversation"
    for template in (None, Template("{question}"), Template("{question}", kind="completion")):
        other = Pipeline(pipeline.backend, n_paths=5, template=template)
        with pytest.raises(InvalidValue, match=said):
            other.run(problems, tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_a_policy_of_plain_questions_refuses_a_conversation_and_pays_for_nothing(server, tmp_path):
    def adder(number, body, request):
        k = int(re.search(r"What is (\d+)", body["messages"][-1]["content"]).group(1))
        return reply(*(choice(f"\\boxed{{{k + 1}}}") for _ in range(body.get("n", 1))))

    server.behave = adder
    plain = Pipeline(OpenAI(server.url, "adder"), n_paths=3)
    asked = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(20)]
    policy = plain.run(asked, tmp_path / "plain.db").calibrate(alpha=0.2)
    before = len(server.requests)
    with pytest.raises(InvalidValue, match="is a conversation of 4 messages"):
        plain.ask(Problem("t", extra={"task": "math", "messages": talk(3)}), policy)
    conversing = Pipeline(plain.backend, n_paths=3, template=CONVERSATION)
    with pytest.raises(
        PipelineMismatch, match=re.escape("sampling.prompt.kind is 'chat' in the policy, 'conversation'")
    ):
        conversing.ask(Problem("t", extra={"task": "math", "messages": talk(3)}), policy)
    assert len(server.requests) == before
    alone = Problem("t", extra={"task": "math", "messages": [{"role": "user", "content": "What is 30 + 1?"}]})
    assert plain.ask(alone, policy).decision.answer == "31"


@pytest.mark.parametrize(
    ("extra", "question", "said"),
    [
        ({"messages": [{"role": "tool", "content": "3"}]}, None, "calls a tool"),
        ({"messages": talk(3)}, "Something else?", "has a question that its messages do not end in"),
    ],
)
def test_a_problem_whose_messages_cannot_be_put_is_refused(server, policy, pipeline, extra, question, said):
    before = len(server.requests)
    with pytest.raises(InvalidValue, match=said):
        pipeline.ask(Problem("t", question, extra={"task": "math", **extra}), policy)
    assert len(server.requests) == before


def test_another_system_prompt_is_refused_wherever_it_is_asked_and_pays_for_nothing(server, policy, pipeline):
    """The promise is about conversations behind the system prompts that calibrated it."""
    before = len(server.requests)
    pirate = Problem("new", extra={"task": "math", "messages": talk(100, system="You are a pirate.")})
    none = Problem("new", extra={"task": "math", "messages": talk(100)[1:]})
    for asked in (pirate, none, Problem("plain", "What is 5 + 1?", extra={"task": "math"})):
        with pytest.raises(PipelineMismatch, match="the system prompt is none of the 1"):
            pipeline.ask(asked, policy)
        with pytest.raises(PipelineMismatch, match="the system prompt is none of the 1"):
            policy.decide(["202"] * 5, [-0.1] * 5, question=asked)
        with pytest.raises(PipelineMismatch, match="the system prompt is none of the 1"):
            dm.Curtailment(policy, question=asked)
    assert len(server.requests) == before


def test_a_file_with_another_system_prompt_is_refused(policy, pipeline, problems, tmp_path):
    new = [Problem(f"n{k}", extra={"task": "math", "messages": talk(50 + k)}) for k in range(8)]
    pirates = [Problem(f"p{k}", extra={"task": "math", "messages": talk(k, system="Arr.")}) for k in range(2)]

    def vote_on(problems, name):
        pipeline.run(problems, tmp_path / name)
        with Store(tmp_path / name) as store:
            return policy.vote(source_of_run(store.run("run")))

    known = vote_on(new, "known.db")
    policy.decide_votes(known.votes)
    with pytest.raises(PipelineMismatch, match="in 2 of 10, the system prompt is none of the 1"):
        policy.decide_votes(vote_on(new + pirates, "mixed.db").votes)


def test_every_system_prompt_that_calibrated_is_known_and_none_is_one(server, pipeline, tmp_path):
    mixed = [Problem(f"t{k}", None, (str(2 * k + 2),), extra={"task": "math", "messages": talk(k)}) for k in range(20)]
    mixed += [replace(one, id=f"b{one.id}", extra={"task": "math", "messages": talk(30)[1:]}) for one in mixed[:1]]
    policy = pipeline.run(mixed, tmp_path / "mixed.db").calibrate(alpha=0.2)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert len(loaded.systems) == 2
    for system in ("Be brief.", None):
        messages = talk(100) if system else talk(100)[1:]
        pipeline.ask(Problem("new", extra={"task": "math", "messages": messages}), loaded)
    with pytest.raises(PipelineMismatch, match="none of the 2"):
        pipeline.ask(Problem("new", extra={"task": "math", "messages": talk(100, system="Arr.")}), loaded)


def test_a_policy_written_before_system_prompts_were_recorded_says_so_and_decides_as_it_did(policy, tmp_path):
    earlier = {name: value for name, value in policy.document().items() if name != "systems"}
    loaded = dm.Policy.of_document(earlier)
    pirate = Problem("new", extra={"task": "math", "messages": talk(100, system="Arr.")})
    assert loaded.decide(["202"] * 5, [-0.1] * 5, question=pirate).answer == "202"
    assert "does not record the system prompts" in loaded.summary()
    assert "does not record the system prompts" not in policy.summary()


def test_a_recalibration_without_texts_keeps_the_system_prompts(policy, pipeline, problems, tmp_path):
    """A service with --no-texts keeps votes alone; the new version must not forget what the old one refuses."""
    with Store(tmp_path / "run.db") as store:
        voted = dm.vote_pools(source_of_run(store.run("run")), dm.FieldChoice(score="perplexity"))
    unread = replace(voted, votes=replace(voted.votes, beside=replace(voted.votes.beside, asked=None)))
    assert recalibrate(policy, unread, [dm.Marginal(0.2)]).systems == policy.systems
