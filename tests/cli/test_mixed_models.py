"""One endpoint whose replies name several models: refused, or kept if asked to, with the share of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web

from demur.store import Store
from loopback import choice

SUMS = ("builtin:addition", "--limit", 12, "-m", 4, "--no-logprobs", "--concurrency", 1, "--model", "gpt-4o")


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def named(*names):
    """A server whose replies name these models in turn; None is a reply that names none."""

    def behave(number, body, request):
        name = names[number % len(names)]
        said = {"choices": [choice("So \\boxed{7}", None, index=k) for k in range(body.get("n", 1))]}
        return web.json_response(said if name is None else said | {"model": name})

    return behave


def stored():
    with Store("run.db") as store:
        summary = store.run().summary()
    return summary["paths"], [command.get("models") for command in summary["commands"]]


@pytest.mark.parametrize(
    "names", [("gpt-4o", "gpt-4o-mini"), ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"), (None, "a", "b"), ("a", "a", "b")]
)
def test_replies_of_several_models_are_refused_and_none_of_another_is_stored(demur, server, names):
    server.behave = named(*names)
    ran = demur("sample", *SUMS, "--base-url", server.url, "-o", "run.db")
    assert (ran.code, ran.err.count("\n")) == (2, 2)  # where the model is asked, and the error
    assert "replies to one requested model come from several models: " in ran.err
    assert "--mixed-models" in ran.err
    paths, models = stored()
    assert paths == 4 * names.index(names[-1])
    assert all(len(counts) == 1 for counts in models if counts)


@pytest.mark.parametrize("names", [("gpt-4o-2024-08-06",), ("gpt-4o",), (None,), ("gpt-4o", None), ("", "gpt-4o")])
def test_replies_that_name_one_model_or_none_are_one_model(demur, server, names):
    server.behave = named(*names)
    ran = demur("sample", *SUMS, "--base-url", server.url, "-o", "run.db")
    assert ran.code == 0, ran.err
    assert "by the model" not in ran.out


def test_if_asked_to_it_goes_on_and_notes_the_share_of_each(demur, server):
    server.behave = named("big", "big", "small")
    ran = demur("sample", *SUMS, "--base-url", server.url, "-o", "run.db", "--mixed-models")
    assert ran.code == 0, ran.err
    assert "Paths by the model that their reply names: big 66.7%, small 33.3%." in ran.out
    assert stored() == (48, [{"big": 32, "small": 16}])
    assert "by the model that replies name: big 66.7%, small 33.3%" in demur("runs", "run.db", "--run", "run").out


def test_a_run_that_is_gone_on_with_is_compared_with_what_it_holds(demur, server):
    server.behave = named("snapshot-1")
    assert demur("sample", *SUMS[:2], 3, *SUMS[3:], "--base-url", server.url, "-o", "run.db").code == 0
    server.behave = named("snapshot-2")
    ran = demur("sample", *SUMS, "--base-url", server.url, "-o", "run.db")
    assert (ran.code, "'snapshot-1', 'snapshot-2'" in ran.err, stored()[0]) == (2, True, 12)
    assert demur("sample", *SUMS, "--base-url", server.url, "-o", "run.db", "--mixed-models").code == 0
    assert stored() == (48, [{"snapshot-1": 12}, {"snapshot-2": 36}])


def test_several_endpoints_may_name_several_models_if_asked_to(demur, server):
    server.behave = named("big", "small")
    twice = ("--base-url", server.url, "--base-url", server.url.replace("127.0.0.1", "localhost"))
    ran = demur("sample", *SUMS, *twice, "-o", "run.db")
    assert ran.code == 2
    ran = demur("sample", *SUMS, *twice, "-o", "run.db", "--mixed-models")
    assert ran.code == 0, ran.err
    assert stored()[0] == 48


def test_a_question_is_not_asked_of_several_models(demur, server, sums_policy):
    """`ask` draws its paths in waves here, each of one reply."""
    asked = ("ask", "What is 2 + 5?", "--policy", sums_policy, "--base-url", server.url, "--wave", 2)
    server.behave = named("big", "small")
    ran = demur(*asked)
    assert (ran.code, "several models: 'big', 'small'" in ran.err) == (2, True)
    ran = demur(*asked, "--mixed-models")
    assert ran.code in (0, 3), ran.err
    server.behave = named("big")
    assert demur(*asked).code in (0, 3)


@pytest.fixture
def sums_policy(demur, server):
    """Of a model that says 7 whatever is asked."""
    server.behave = named("big")
    assert demur("sample", *SUMS[:2], 40, *SUMS[3:], "--base-url", server.url, "-o", "sums.db").code == 0
    assert demur("calibrate", "sums.db", "--alpha", 0.5, "-o", "sums.json").code == 0
    return "sums.json"


def test_a_judge_is_one_model(demur, server):
    def judge(number, body, request):
        yes = "Given: five" in body["messages"][0]["content"]
        said = {"choices": [choice("Yes" if yes else "No", None)], "model": f"judge-{number % 2}"}
        return web.json_response(said)

    server.behave = judge
    record = {
        "id": "q",
        "question": "Where?",
        "gold": "Paris",
        "task": "qa",
        "paths": [{"answer": "the city of light"}],
    }
    Path("pools.jsonl").write_text(json.dumps(record) + "\n")
    command = ("judge-labels", "pools.jsonl", "--base-url", server.url, "--model", "judge", "-o", "verdicts.jsonl")
    ran = demur(*command)
    assert (ran.code, "several models: 'judge-0', 'judge-1'" in ran.err) == (2, True)
    assert demur(*command, "--mixed-models").code == 0


@pytest.fixture
def answers(demur):
    """Answers to a batch, line by line."""
    nowhere = ("--base-url", "http://127.0.0.1:9/v1")
    assert demur("sample", *SUMS, *nowhere, "--prepare", "-o", "run.db").code == 0
    assert demur("export", "run.db", "--batch", "requests.jsonl").code == 0

    def write(*names):
        lines = []
        for number, line in enumerate(Path("requests.jsonl").read_text().splitlines()):
            body = json.loads(named(*names)(number, json.loads(line)["body"], None).body)
            response = {"status_code": 200, "body": body}
            lines.append(json.dumps({"custom_id": json.loads(line)["custom_id"], "response": response, "error": None}))
        Path("answers.jsonl").write_text("\n".join(lines) + "\n")
        return "answers.jsonl"

    return write


def test_a_batch_that_several_models_answered_is_refused_whole(demur, answers):
    ran = demur("import", "--batch", answers("big", "big", "small"), "-o", "run.db")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "the answers name several models ('big' 8, 'small' 4 answers), and nothing is stored" in ran.err
    assert "--mixed-models" in ran.err
    assert stored()[0] == 0


def test_a_batch_may_have_several_models_if_asked_to(demur, answers):
    ran = demur("import", "--batch", answers("big", "big", "small"), "-o", "run.db", "--mixed-models")
    assert ran.code == 0, ran.err
    assert "Paths by the model that their answer names: big 66.7%, small 33.3%." in ran.out
    assert stored()[0] == 48
    assert stored()[1][-1] == {"big": 32, "small": 16}


def test_a_batch_is_compared_with_the_paths_that_the_run_has(demur, server, answers):
    server.behave = named("big")
    assert demur("sample", *SUMS[:2], 3, *SUMS[3:], "--base-url", server.url, "-o", "run.db").code == 0
    before = stored()[0]
    ran = demur("import", "--batch", answers("small"), "-o", "run.db")
    assert (ran.code, "the run has paths of 'big'" in ran.err, stored()[0]) == (2, True, before)
    ran = demur("import", "--batch", answers("big"), "-o", "run.db")
    assert (ran.code, stored()[0]) == (0, 48)


def test_mixed_models_of_other_files_are_refused(demur, pools):
    ran = demur("import", pools, "-o", "run.db", "--mixed-models")
    assert (ran.code, "--mixed-models goes with --batch" in ran.err) == (2, True)
