"""Conversations on the command line: sampled, calibrated, asked with the small model and with a server."""

from __future__ import annotations

import json
import re

import pytest

from loopback import choice, reply


def talk(k):
    return [
        {"role": "user", "content": f"What is {k} + 1?"},
        {"role": "assistant", "content": f"{k + 1}"},
        {"role": "user", "content": "And twice that?"},
    ]


def doubler(number, body, request):
    """Right on even numbers, and scattered on odd ones."""
    k = int(re.search(r"What is (\d+)", body["messages"][-3]["content"]).group(1))
    seed = body.get("seed", 0)
    said = [2 * (k + 1) if k % 2 == 0 else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1 - (seed + j) % 7 / 10]) for j, answer in enumerate(said)))


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def talks(demur, tmp_path):
    lines = [{"id": f"t{k}", "task": "math", "gold": 2 * (k + 1), "messages": talk(k)} for k in range(40)]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "talk.json").write_text(json.dumps(talk(100)))
    return "talks.jsonl"


@pytest.fixture
def policy(demur, talks, server):
    server.behave = doubler
    at = ("--base-url", server.url, "--model", "doubler")
    ran = demur("sample", talks, "-m", 5, "--prompt", "conversation", *at, "-o", "run.db")
    assert ran.code == 0, ran.err
    ran = demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.2, "-o", "policy.json")
    assert ran.code == 0, ran.err
    return "policy.json"


def test_a_conversation_is_asked_from_a_file(demur, policy, server, tmp_path):
    ran = demur("ask", "--messages", "talk.json", "--policy", policy, "--base-url", server.url, "--json")
    assert (ran.code, ran.json["answer"]) == (0, "202")
    assert server.requests[-1]["messages"] == talk(100)
    assert ran.json["question"].startswith("[user]\nWhat is 100 + 1?\n\n[assistant]\n101")
    (tmp_path / "odd.json").write_text(json.dumps(talk(101)))
    assert demur("ask", "--messages", "odd.json", "--policy", policy, "--base-url", server.url).code == 3


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[", "talk.json, line 1: not JSON"),
        ("{}", "talk.json: messages must be a list of at least one message, got an object"),
        ('[{"role": "tool", "content": "3"}]', "talk.json: message 1 calls a tool"),
        ("[" * 100_000, "talk.json, line 1: not JSON"),
        ('[{"role": "user", "role": "user", "content": "Hi"}]', "the key 'role' stands twice"),
    ],
)
def test_a_file_that_holds_no_conversation_is_refused_in_one_line(demur, policy, server, tmp_path, written, said):
    (tmp_path / "talk.json").write_text(written)
    ran = demur("ask", "--messages", "talk.json", "--policy", policy, "--base-url", server.url)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_a_question_and_a_conversation_are_not_asked_at_once(demur, policy):
    assert "give a question, or a conversation with --messages" in demur("ask", "--policy", policy).err
    both = demur("ask", "Why?", "--messages", "talk.json", "--policy", policy)
    assert "give a question, or a conversation with --messages, not both" in both.err
    assert demur("ask", "--messages", "none.json", "--policy", policy).err.count("none.json") == 1


def test_a_conversation_under_the_tasks_own_prompt_is_refused_with_the_way_out(demur, talks, server):
    ran = demur("sample", talks, "--base-url", server.url, "--model", "doubler", "-o", "run.db")
    assert ran.code == 2
    assert "'t0' is a conversation of 3 messages, and the prompt puts one question" in ran.err
    assert "--prompt conversation" in ran.err
    assert not server.requests


def test_the_small_model_samples_calibrates_and_is_asked_conversations(demur, talks):
    ran = demur(
        "sample", talks, "-m", 4, "--limit", 12, "--max-tokens", 8, "--prompt", "conversation", "-o", "small.db"
    )
    assert ran.code == 0, ran.err
    ran = demur("calibrate", "small.db", "--score", "perplexity", "--alpha", 0.5, "-o", "small.json")
    assert ran.code == 0, ran.err
    ran = demur("ask", "--messages", "talk.json", "--policy", "small.json", "--json")
    assert ran.code in (0, 3), ran.err
    assert len(ran.json["paths"]) == 4


def test_exported_and_imported_again_conversations_are_the_same_run(demur, policy, server):
    assert demur("export", "run.db", "-o", "pools.parquet").code == 0
    assert demur("import", "pools.parquet", "-o", "again.db").code == 0
    assert demur("calibrate", "again.db", "--score", "perplexity", "--alpha", 0.2, "-o", "again.json").code == 0
    ran = demur("ask", "--messages", "talk.json", "--policy", "again.json", "--base-url", server.url, "--json")
    assert (ran.code, ran.json["answer"]) == (0, "202")
