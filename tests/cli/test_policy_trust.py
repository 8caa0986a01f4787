"""A policy file is data: it loads no model, and who must know where it comes from signs it."""

from __future__ import annotations

import json
import secrets
import sys

import pytest

from demur.descriptions import Description, digest
from loopback import choice, error, reply


def sums(number, body, request):
    """Adds, rightly but now and then."""
    a, b = body["messages"][-1]["content"].split("\n")[0].removeprefix("What is ").removesuffix("?").split(" + ")
    value = [int(a) + int(b) + ((body["seed"] + k) % 5 == 0) for k in range(body.get("n", 1))]
    return reply(*(choice(f"So \\boxed{{{one}}}", [-0.2 - k / 9]) for k, one in enumerate(value)))


@pytest.fixture
def calibrated(demur, server, monkeypatch):
    for name in ("OPENAI_BASE_URL", "JUDGE_BASE_URL", "JUDGE_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server.behave = sums
    asked = ["--base-url", server.url, "--model", "adder", "-o", "run.db", "--limit", 60, "-m", 4]
    assert demur("sample", "builtin:addition", *asked).code == 0
    assert demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.2, "-o", "p.json").code == 0


def forge(path, change):
    """Change how a policy says its votes are made, as somebody would who knows of its seals."""
    document = json.loads(path.read_text())
    change(document["pipeline"])
    document["fingerprint"] = Description.of(document["pipeline"]).fingerprint
    del document["digest"]
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


@pytest.fixture
def evil(tmp_path):
    """A file that would be opened as a model."""
    path = tmp_path / "evil.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    return path


@pytest.mark.parametrize("backend", ["embedded", "openai", None])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_policys_model_is_loaded_only_if_the_user_names_it(demur, calibrated, evil, tmp_path, backend, absolute):
    named = str(evil) if absolute else evil.name
    forge(tmp_path / "p.json", lambda said: said["sampling"].update(model=named, backend=backend))
    ran = demur("ask", "What is 1 + 2?", "--policy", "p.json")
    assert ran.code == 2
    other = "calibrated on a model of an endpoint; give --base-url" if backend == "openai" else "--model NAME"
    assert other in ran.err
    named_again = demur("ask", "What is 1 + 2?", "--policy", "p.json", "--model", "evil.gguf")
    assert "cannot be loaded as a model" in named_again.err or "in the policy" in named_again.err


@pytest.mark.parametrize("backend", ["embedded", "transformers", "server", "another", None])
@pytest.mark.parametrize("kind", ["judge", "reward", "perplexity"])
@pytest.mark.parametrize("model", ["evil.gguf", "{folder}/evil.gguf", "{folder}", "somebody/model"])
def test_a_policys_scorer_loads_no_model(demur, calibrated, evil, server, tmp_path, monkeypatch, backend, kind, model):
    identity = {"scorer": kind, "backend": backend, "model": model.format(folder=tmp_path), "prompt": None}
    forge(tmp_path / "p.json", lambda said: said["score"].update(name="judge", scorer=identity))
    monkeypatch.setenv("JUDGE_BASE_URL", server.url)
    monkeypatch.setitem(sys.modules, "transformers", None)
    asked = len(server.requests)
    server.behave = lambda *_: error(401, "not for you")
    ran = demur("ask", "What is 1 + 2?", "--policy", "p.json", "--base-url", server.url)
    assert ran.code == 2
    if backend != "server" or "gguf" in model:
        assert "no file may make demur load a model; name it yourself: --set judge.model=NAME" in ran.err
        assert len(server.requests) == asked
    else:
        assert "not for you" in ran.err or "in the policy" in ran.err


def test_a_packaged_model_needs_no_naming(demur, calibrated, server, tmp_path):
    identity = {"scorer": "judge", "backend": "embedded", "model": "smollm2-135m-instruct", "prompt": "built-in@1"}
    forge(tmp_path / "p.json", lambda said: said["score"].update(name="judge", scorer=identity))
    ran = demur("ask", "What is 1 + 2?", "--policy", "p.json", "--base-url", server.url)
    assert "load a model" not in ran.err
    assert "in the policy" in ran.err


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["sampling"].update(temperature="hot"),
        lambda said: said["sampling"].update(stop="\n"),
        lambda said: said["sampling"].update(max_tokens="many"),
        lambda said: said["sampling"].update(model=["adder"]),
        lambda said: said["sampling"].update(prompt={"user": 3}),
        lambda said: said["answers"].update(extract=7),
        lambda said: said["answers"].update(extract="(" * 3),
        lambda said: said["answers"].update(extract="os:system"),
        lambda said: said["score"].update(scorer="own"),
        lambda said: said["score"].update(scorer={"scorer": "judge", "model": 7}),
        lambda said: said["score"].update(scorer={"scorer": ["judge"]}),
    ],
)
def test_a_forged_description_ends_in_one_line(demur, calibrated, server, tmp_path, change):
    forge(tmp_path / "p.json", change)
    ran = demur("ask", "What is 1 + 2?", "--policy", "p.json", "--base-url", server.url)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith("error: ")


def test_signed_policies_through_every_verb(demur, pools, tmp_path):
    (tmp_path / "key").write_text(secrets.token_hex(32))
    (tmp_path / "other").write_text(secrets.token_hex(32))
    made = ["calibrate", "pools.jsonl", "--score", "simulated", "--alpha", 0.1, "--hold-out", 0.5]
    assert demur(*made, "-o", "p.json", "--key-file", "key").code == 0
    assert demur(*made, "-o", "unsigned.json").code == 0
    verbs = [
        ["decide", "pools.jsonl", "--policy", "{}"],
        ["audit", "pools.jsonl", "--policy", "{}"],
        ["audit", "{}", "--errors", 1, "--of", 50],
        ["report", "pools.jsonl", "--policy", "{}", "-o", "page.html"],
    ]
    for verb in verbs:
        signed = [str(part).format("p.json") for part in verb]
        unsigned = [str(part).format("unsigned.json") for part in verb]
        assert demur(*signed, "--key-file", "key").code == 0
        assert demur(*signed).code == 0
        assert "was not signed with this key" in demur(*signed, "--key-file", "other").err
        assert "is not signed" in demur(*unsigned, "--key-file", "key").err
    ran = demur("ask", "What is 1 + 1?", "--policy", "p.json", "--key-file", "other")
    assert (ran.code, "was not signed with this key" in ran.err) == (2, True)


def test_a_key_file_is_never_overwritten_nor_shown(demur, pools, tmp_path):
    key = secrets.token_hex(32)
    (tmp_path / "key").write_text(key)
    ran = demur("calibrate", "pools.jsonl", "--alpha", 0.1, "-o", "key", "--key-file", "key")
    assert ran.code == 2
    assert "is an input of this command" in ran.err
    assert (tmp_path / "key").read_text() == key
    ran = demur("calibrate", "pools.jsonl", "--alpha", 0.1, "--key-file", "key")
    assert "-o" in ran.err
    (tmp_path / "short").write_text("hunter2")
    ran = demur("calibrate", "pools.jsonl", "--alpha", 0.1, "-o", "p.json", "--key-file", "short")
    assert ran.code == 2
    assert "hunter2" not in ran.err
    assert not (tmp_path / "p.json").exists()
    ran = demur("calibrate", "pools.jsonl", "--alpha", 0.1, "-o", "p.json", "--key-file", "key", "--json")
    assert key not in ran.out + (tmp_path / "p.json").read_text()
