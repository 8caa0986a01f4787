"""The verbs that talk to a model or a store, run as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demur.datasets import load
from demur.store import Store
from loopback import choice, error, obliging, reply


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def sums(number, body, request):
    """Adds, rightly but for numbers above ten now and then."""
    question = body["messages"][-1]["content"].split("\n")[0]
    a, b = question.removeprefix("What is ").removesuffix("?").split(" + ")
    said = []
    for k in range(body.get("n", 1)):
        seed = body["seed"] + k
        wrong = int(a) > 10 and seed % 4 != 0
        value = int(a) + int(b) + (1 + seed % 2 if wrong else 0)
        said.append(choice(f"So \\boxed{{{value}}}", [-0.2 - (seed % 9) / 20 - (0.05 if wrong else 0)]))
    return reply(*said)


@pytest.fixture
def sampled(demur, server):
    server.behave = sums
    ran = demur("sample", "builtin:addition", "--limit", 120, "-m", 5, "--base-url", server.url, "--model", "adder",
                  "-o", "run.db")  # fmt: skip
    assert ran.code == 0, ran.err
    return ran


def test_sample_says_what_it_did_and_what_comes_next(sampled):
    assert "Saved 600 of 600 paths" in sampled.out
    assert "demur calibrate run.db --score perplexity" in sampled.out


def test_a_run_is_calibrated_evaluated_and_decided_like_a_file(demur, sampled):
    ran = demur(
        "calibrate", "run.db", "--score", "perplexity", "--alpha", 0.1, "--hold-out", 0.5, "-o", "p.json", "--json"
    )
    assert ran.code == 0, ran.err
    pipeline = ran.json["pipeline"]
    assert (pipeline["sampling"]["model"], pipeline["vote"]["normaliser"]) == ("adder", "pool_z@1")
    assert demur("audit", "run.db", "--policy", "p.json").code == 0
    assert demur("evaluate", "run.db", "--score", "perplexity", "--alpha", 0.2).code == 0
    decided = demur("decide", "run.db", "--policy", "p.json", "--json")
    assert decided.json["problems"] == 120


def test_ask_answers_with_0_and_abstains_with_3(demur, sampled, server):
    demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.1, "-o", "p.json")
    ran = demur("ask", "What is 3 + 30?", "--policy", "p.json", "--base-url", server.url)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "33")
    assert "p-value" in ran.out
    server.behave = lambda n, body, r: reply(*(choice(f"\\boxed{{{k}}}") for k in range(body.get("n", 1))))
    ran = demur("ask", "What is 31 + 30?", "--policy", "p.json", "--base-url", server.url, "--json")
    assert ran.code == 3
    assert ran.json["answer"] is None
    assert len(ran.json["paths"]) == 5


def test_ask_in_waves_decides_alike_and_says_how_many_paths_that_took(demur, sampled, server):
    demur("calibrate", "run.db", "--weight", "uniform", "--alpha", 0.1, "-o", "p.json")
    ask = ["ask", "What is 3 + 30?", "--policy", "p.json", "--base-url", server.url]
    whole, before = demur(*ask, "--json").json, len(server.requests)
    ran = demur(*ask, "--wave", 1, "--first-wave", 2, "--json")
    assert (ran.code, ran.json["answer"]) == (0, whole["answer"])
    assert ran.json["certain_early"] is True
    assert ran.json["n_drawn"] == len(ran.json["paths"]) == ran.json["n_paths"] < ran.json["of"] == 5
    assert len(server.requests) - before == ran.json["n_drawn"] - 1
    assert ran.json["share_at_least"] == ran.json["confidence"] <= whole["confidence"] <= ran.json["share_at_most"]
    told = demur(*ask, "--wave", 1)
    assert told.out.splitlines()[0] == "33"
    assert f"after {ran.json['n_drawn']} of 5 paths: whatever" in told.out
    assert demur(*ask, "--wave", 0).code == 2
    refused = demur("ask", "x", "--cascade", "c.json", "--wave", 2)
    assert refused.code == 2


def test_ask_refuses_another_model_before_asking_it(demur, sampled, server):
    demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.1, "-o", "p.json")
    before = len(server.requests)
    ran = demur("ask", "What is 1 + 1?", "--policy", "p.json", "--base-url", server.url, "--model", "other")
    assert ran.code == 2
    assert "model is 'adder' in the policy, 'other' here" in ran.err
    assert len(server.requests) == before


def test_running_it_again_continues_and_another_way_is_refused(demur, sampled, server):
    before = len(server.requests)
    same = ["sample", "builtin:addition", "-m", 5, "--base-url", server.url, "--model", "adder", "-o", "run.db"]
    assert "Saved 0 of 0 paths" in demur(*same, "--limit", 120).out
    assert len(server.requests) == before
    assert "Saved 50 of 50 paths" in demur(*same, "--limit", 130).out
    ran = demur(*same, "--temperature", 1.0)
    assert ran.code == 2
    assert "sampling.temperature is 0.8 in the run, 1.0 now" in ran.err


def test_problems_that_fail_are_named_and_the_rest_goes_on(demur, server):
    def behave(number, body, request):
        if "What is 9 + 14?" in str(body):
            return error(400, "this one is too long")
        return sums(number, body, request)

    server.behave = behave
    asked = [
        "sample",
        "builtin:addition",
        "-m",
        2,
        "--base-url",
        server.url,
        "--model",
        "m",
        "--concurrency",
        2,
        "-o",
        "run.db",
    ]
    ran = demur(*asked)
    assert ran.code == 1
    assert "failed: addition-9-14: the endpoint answered 400: this one is too long" in ran.out
    server.behave = sums
    assert demur(*asked).code == 0
    with Store("run.db") as store:
        assert {len(pool.paths) for pool in store.run().pools()} == {2}


def plan(demur, server, *more):
    asked = ["sample", "builtin:addition", "--limit", 10, "--base-url", server.url, "--model", "adder", "-o", "run.db"]
    return demur(*asked, "--dry-run", *more)


def test_a_dry_run_asks_for_nothing(demur, server):
    ran = plan(demur, server)
    assert "10 problems lack 160 paths" in ran.out
    assert "[user] What is 13 + 7?" in ran.out
    assert server.requests == []
    assert not Path("run.db").exists()


def test_a_dry_run_leaves_a_store_as_it_is_and_counts_what_it_lacks(demur, sampled, server):
    assert "10 problems lack 0 paths" in plan(demur, server, "-m", 5).out
    assert "130 problems lack 50 paths" in plan(demur, server, "-m", 5, "--limit", 130).out
    assert "10 problems lack 160 paths" in plan(demur, server, "--run", "plan").out
    assert [each["run"] for each in demur("runs", "run.db", "--json").json["runs"]] == ["run"]


def test_a_run_that_never_got_a_path_can_be_made_another_way(demur, server, tmp_path):
    asked = ["sample", "builtin:addition", "--limit", 3, "-m", 2, "--base-url", server.url, "-o", "run.db"]
    server.behave = lambda *_: error(401, "bad key")
    assert demur(*asked, "--model", "wrong").code == 2
    assert demur(*asked, "--model", "m", "--extract", "(").code == 2
    server.behave = sums
    assert demur(*asked, "--model", "right").code == 0
    assert demur(*asked, "--model", "other").code == 2


def test_a_refused_import_writes_nothing(demur, tmp_path):
    good = {"id": "a", "paths": [{"answer": "1", "scores": {"s": 1}}]}
    bad = {"id": "b", "paths": [{"answer": "1", "scores": {"s": "x"}}]}
    (tmp_path / "odd.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(bad))
    assert demur("import", "odd.jsonl", "-o", "run.db").code == 2
    assert not (tmp_path / "run.db").exists()


def test_export_refuses_endings_it_does_not_write(demur, sampled):
    ran = demur("export", "run.db", "-o", "out.csv")
    assert ran.code == 2
    assert ".parquet" in ran.err


def test_runs_lists_and_describes(demur, sampled):
    assert "adder" in demur("runs", "run.db").out
    told = demur("runs", "run.db", "--run", "run", "--json").json["runs"][0]
    assert (told["problems"], told["pools"], told["paths"], told["with_logprobs"]) == (120, 120, 600, 600)
    assert told["commands"][0]["paths"] == 600
    assert "sample: 600 paths" in demur("runs", "run.db", "--run", "run").out
    assert demur("runs", "none.db").code == 2


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet"])
def test_export_and_import_lose_nothing(demur, sampled, name):
    assert demur("export", "run.db", "-o", name).code == 0
    assert demur("import", name, "-o", "back.db").code == 0
    again = demur("import", name, "-o", "back.db", "--json")
    assert again.json == {"run": "run", "problems": 120, "new_paths": 0, "scores": ["perplexity"]}
    with Store("run.db") as first, Store("back.db") as second:
        one, two = first.run().pools(with_texts=True), second.run().pools(with_texts=True)
    assert [pool.paths for pool in one] == [pool.paths for pool in two]
    assert [(p.problem.id, p.problem.question, p.problem.gold) for p in one] == [
        (p.problem.id, p.problem.question, p.problem.gold) for p in two
    ]


def test_two_files_are_never_mixed_into_one_pool(demur, tmp_path):
    for name, answers in (("one.jsonl", "12"), ("two.jsonl", "789")):
        record = {
            "id": "q",
            "question": "Q",
            "gold": "1",
            "paths": [{"answer": a, "scores": {"s": 1}} for a in answers],
        }
        (tmp_path / name).write_text(json.dumps(record))
    assert demur("import", "one.jsonl", "-o", "run.db").code == 0
    ran = demur("import", "two.jsonl", "-o", "run.db")
    assert ran.code == 2
    assert "with other paths" in ran.err
    with Store("run.db") as store:
        assert [path.answer for path in store.run().pools()[0].paths] == ["1", "2"]


@pytest.mark.parametrize("score", ["high", True, 10**400])
def test_scores_that_are_no_numbers_are_refused_on_import(demur, tmp_path, score):
    record = {"id": "q", "paths": [{"answer": "1", "scores": {"s": score}}]}
    (tmp_path / "odd.jsonl").write_text(json.dumps(record))
    ran = demur("import", "odd.jsonl", "-o", "run.db")
    assert ran.code == 2
    assert "must be a finite number" in ran.err


def test_the_vote_of_a_description_is_used(demur, sampled, tmp_path):
    (tmp_path / "demur.toml").write_text('[vote]\nscore = "perplexity"\nnormaliser = "rank"\nweight = "linear"\n')
    told = demur("calibrate", "run.db", "--alpha", 0.2, "--json").json["pipeline"]
    assert told["score"]["name"] == "perplexity"
    assert (told["vote"]["normaliser"], told["vote"]["weight"]) == ("rank@1", "linear")


def test_an_exported_run_is_decided_by_the_policy_of_the_run(demur, sampled):
    demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.1, "-o", "p.json")
    demur("export", "run.db", "-o", "out.jsonl", "--no-texts")
    ran = demur("decide", "out.jsonl", "--policy", "p.json", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["problems"] == 120
    assert "text" not in json.loads(Path("out.jsonl").read_text().splitlines()[1])["paths"][0]


def test_a_description_file_says_it_all_and_flags_override(demur, server, tmp_path):
    server.behave = sums
    (tmp_path / "demur.toml").write_text(
        f'[model]\nbase_url = "{server.url}"\nmodel = "adder"\n[sampling]\npaths = 3\ntemperature = 0.5\n'
    )
    assert "Saved 30 of 30" in demur("sample", "builtin:addition", "--limit", 10, "-o", "a.db").out
    assert server.requests[-1]["temperature"] == 0.5
    assert "Saved 20 of 20" in demur("sample", "builtin:addition", "--limit", 10, "-m", 2, "-o", "b.db").out


@pytest.mark.parametrize(
    ("written", "said"),
    [("[models]\n", "unknown section [models]"), ("[model]\nurl = 'x'\n", "unknown key 'url'"),
     ("[sampling]\npaths = 'many'\n", "sampling.paths must be int"), ("[sampling", "cannot be read"),
     ("[sampling]\nstop = 'x'\n", "must be list[str]")],
)  # fmt: skip
def test_wrong_description_files_are_refused(demur, tmp_path, written, said):
    (tmp_path / "demur.toml").write_text(written)
    ran = demur("sample", "builtin:addition", "-o", "a.db")
    assert ran.code == 2
    assert said in ran.err


def test_secrets_reach_neither_store_nor_output(demur, server, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    server.behave = sums
    address = server.url.replace("http://", "http://me:hunter2@")
    ran = demur(
        "sample", "builtin:addition", "--limit", 5, "-m", 2, "--base-url", address, "--model", "m", "-o", "run.db"
    )
    assert ran.code == 0, ran.err
    demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.4, "-o", "p.json")
    demur("export", "run.db", "-o", "out.jsonl")
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert b"sk-very-secret" not in content, file
        assert b"hunter2" not in content, file
        assert b"127.0.0.1" not in content, file
    assert "secret" not in ran.out + ran.err


def test_doctor_says_what_works(demur, server):
    server.behave = obliging
    ran = demur("doctor", "--base-url", server.url, "--model", "m", "--json")
    assert ran.code == 0
    probes = ran.json["probes"]
    assert probes["n"]["works"]
    assert probes["logprobs"]["works"]
    assert not probes["prompt_logprobs"]["works"]
    server.behave = lambda *_: error(404)
    ran = demur("doctor", "--base-url", server.url, "--model", "m")
    assert ran.code == 1
    assert "It cannot be sampled from." in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sample", "builtin:addition", "-o", "x.db", "--model", "big/model"], "needs an endpoint"),
        (["sample", "nothing", "-o", "x.db"], "no dataset of that name"),
        (["sample", "builtin:addition", "-o", "x.db", "--prompt", "none"], "there is no prompt"),
        (["sample", "builtin:addition", "-o", "x.db", "--base-url", "ftp://x", "--model", "m"], "http"),
        (["sample", "builtin:addition", "-o", "x.db", "--base-url", "http://x"], "name it as --model"),
        (["ask", "x", "--policy", "none.json"], "none.json"),
        (["import", "none.jsonl", "-o", "x.db"], "there is no file"),
        (["export", "none.db", "-o", "x.jsonl"], "there is no run"),
        (["calibrate", "none.db"], "there is no run"), (["calibrate", "postgresql://127.0.0.1:1/x"], "127.0.0.1"),
    ],
)  # fmt: skip
def test_bad_requests_are_one_line(demur, arguments, said):
    ran = demur(*arguments)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_a_wrong_key_is_one_line_and_nothing_is_lost(demur, sampled, server):
    server.behave = lambda *_: error(401, "bad key")
    ran = demur("sample", "builtin:addition", "-m", 5, "--base-url", server.url, "--model", "adder", "-o", "run.db")
    assert ran.code == 2
    assert "OPENAI_API_KEY" in ran.err
    with Store("run.db") as store:
        assert len(store.run().pools()) == 120


def test_paths_without_logprobs_stop_the_perplexity_score_but_keep_the_paths(demur, server):
    server.behave = lambda n, body, r: reply(*(choice("\\boxed{1}", None) for _ in range(body.get("n", 1))))
    ran = demur(
        "sample", "builtin:addition", "--limit", 4, "-m", 2, "--base-url", server.url, "--model", "m", "-o", "run.db"
    )
    assert ran.code == 2
    assert "without token log-probabilities" in ran.err
    assert "--no-logprobs" in ran.err
    with Store("run.db") as store:
        assert store.run().summary()["paths"] > 0


def test_one_path_without_logprobs_costs_its_own_problem_the_score(demur, server):
    odd = load("builtin:addition")[3]

    def behave(number, body, request):
        held = None if odd.question in str(body) else [-0.5]
        return reply(*(choice("\\boxed{1}", held) for _ in range(body.get("n", 1))))

    server.behave = behave
    asked = [
        "sample",
        "builtin:addition",
        "--limit",
        6,
        "-m",
        2,
        "--base-url",
        server.url,
        "--model",
        "m",
        "-o",
        "run.db",
    ]
    ran = demur(*asked, "--concurrency", 1)
    assert ran.code == 1
    assert "1 problems could not be scored" in ran.out
    ran = demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.4)
    assert ran.code == 2
    assert odd.id in ran.err


@pytest.mark.parametrize("score", ["null", "NaN", "-Infinity", "1e999"])
def test_scores_that_are_missing_or_not_finite_are_left_out_of_an_import_with_a_count(demur, tmp_path, score):
    paths = ", ".join(f'{{"answer": "1", "scores": {{"s": {each}}}}}' for each in (score, 1))
    line = f'{{"id": "q", "paths": [{paths}]}}'
    (tmp_path / "odd.jsonl").write_text(line)
    ran = demur("import", "odd.jsonl", "-o", "run.db")
    assert "note: 1 scores are null or not finite, and are left out" in ran.out
    assert demur("import", "odd.jsonl", "-o", "run.db", "--json").json["left_out_scores"] == 1
    with Store("run.db") as store:
        assert [dict(path.scores) for path in store.run().pools()[0].paths] == [{}, {"s": 1.0}]
