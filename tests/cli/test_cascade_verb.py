"""`demur cascade`, and `decide`, `audit` and `ask` with `--cascade`."""

from __future__ import annotations

import json
import random
import re

import pytest

from demur.cli import ask, audit, cascade, decide
from loopback import choice, reply


def write_pools(path, *, accuracy, n_paths, seed, prefix="q", n=300, keep=lambda row: True):
    """Pools of questions whose difficulty all stages share."""
    rng, lines = random.Random(seed), []
    for row in range(n):
        shared = random.Random(f"{prefix}{row}")
        hard, gold = shared.random(), shared.randrange(20)
        answers = [gold if rng.random() < accuracy + 0.5 - hard else rng.choice([gold + 1, rng.randrange(20)])
                   for _ in range(n_paths)]  # fmt: skip
        paths = [{"answer": str(answer), "scores": {"own": rng.random()}} for answer in answers]
        known = {"id": f"{prefix}{row}", "question": f"Question {prefix} {row}?", "gold": str(gold)}
        if keep(row):
            lines.append(json.dumps({**known, "paths": paths}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pools(tmp_path / "cheap.jsonl", accuracy=0.45, n_paths=5, seed=1)
    write_pools(tmp_path / "strong.jsonl", accuracy=0.75, n_paths=8, seed=2)
    write_pools(tmp_path / "new-cheap.jsonl", accuracy=0.45, n_paths=5, seed=3, prefix="n", n=120)
    write_pools(tmp_path / "new-strong.jsonl", accuracy=0.75, n_paths=8, seed=4, prefix="n", n=120)
    return tmp_path


PAIR = ("cheap.jsonl", "strong.jsonl", "--tie-break", "jitter:0")
NEW = ("new-cheap.jsonl", "new-strong.jsonl")


@pytest.fixture
def made(demur, files):
    ran = demur("cascade", *PAIR, "--alpha", "0.1", "--cost", 1, "--cost", 10, "-o", "cascade.json")
    assert (ran.code, ran.err.count("error")) == (0, 0), ran.err
    return ran


def test_it_says_what_each_stage_does_what_it_costs_and_what_is_promised(demur, made):
    assert re.search(r"cheap +0\.\d+ +15 +100\.0 %", made.out)
    assert "This is one promise for all stages of the cascade together." in made.out
    assert "left to a person, cost per question" in made.out
    assert "X: this cascade" in made.out
    assert "a share that was chosen by these labels would break the promise" in made.out
    facts = demur("cascade", *PAIR, "--alpha", "0.1", "--cost", 1, "--cost", 10, "--json").json
    assert [stage["name"] for stage in facts["stages"]] == ["cheap", "strong"]
    assert [stage["errors_allowed"] for stage in facts["stages"]] == [15, 15]
    assert facts["forecast"]["error_at_most"] == 30 / 301
    assert facts["curve"][0]["cost"] == 10
    assert facts["promise"] in made.out


def test_what_answers_were_read_as_is_said_by_stage(demur, made):
    for told in (made, demur("audit", *NEW, "--cascade", "cascade.json")):
        said = f"{told.out}{told.err}"
        assert re.search(r"^cheap: Answers are compared by ", said, re.MULTILINE)
        assert re.search(r"^strong: Answers are compared by ", said, re.MULTILINE)


def test_stages_may_have_their_own_names_shares_and_scores(demur, files):
    facts = demur("cascade", *PAIR, "--alpha", "0.1", "--name", "small", "--name", "large", "--stage-share", 1,
                  "--stage-share", 3, "--stage", "large.score=own", "--stage", "large.weight=linear",
                  "--json").json  # fmt: skip
    assert [(stage["name"], stage["score"]) for stage in facts["stages"]] == [("small", None), ("large", "own")]
    assert [stage["errors_allowed"] for stage in facts["stages"]] == [7, 23]
    assert [stage["cost"] for stage in facts["stages"]] == [5.0, 8.0]


def test_decide_follows_it_and_writes_what_the_next_stage_has_to_be_asked(demur, made, files):
    full = demur("decide", *NEW, "--cascade", "cascade.json", "--json").json
    assert full["n_answered"] == sum(full["by_stage"].values())
    assert full["needs"] == {}
    ran = demur("decide", NEW[0], "--cascade", "cascade.json", "--needed", "needed.jsonl", "-o", "decided.jsonl")
    assert ran.code == 0
    assert re.search(r"\d+ need the stage strong\.", ran.out)
    needed = [json.loads(line) for line in (files / "needed.jsonl").read_text().splitlines()]
    later = [line["id"] for line in full["decisions"] if line["stage"] != "cheap"]
    assert [line["id"] for line in needed] == later
    assert set(needed[0]) == {"id", "question"}
    write_pools(files / "some.jsonl", accuracy=0.75, n_paths=8, seed=4, prefix="n", n=120,
                keep=lambda row: f"n{row}" in later)  # fmt: skip
    again = demur("decide", NEW[0], "some.jsonl", "--cascade", "cascade.json", "--json").json
    assert [line["answer"] for line in again["decisions"]] == [line["answer"] for line in full["decisions"]]
    assert again["cost"] == full["cost"]
    lines = [json.loads(line) for line in (files / "decided.jsonl").read_text().splitlines()]
    assert {line["decision"] for line in lines} == {"answer", "needs"}


def test_questions_that_are_needed_take_the_place_of_questions_alone(demur, made, files):
    flags = ("decide", NEW[0], "--cascade", "cascade.json", "--needed")
    before = (files / NEW[1]).read_bytes()
    ran = demur(*flags, NEW[1])
    assert (ran.code, "holds pools, which questions would replace" in ran.err) == (2, True)
    assert (files / NEW[1]).read_bytes() == before
    ran = demur(*flags, "same.jsonl", "-o", "./same.jsonl")
    assert (ran.code, "--needed and -o both name same.jsonl" in ran.err) == (2, True)
    assert [demur(*flags, "needed.jsonl").code for _ in range(2)] == [0, 0]


def test_audit_judges_the_errors_of_all_stages(demur, made):
    ran = demur("audit", *NEW, "--cascade", "cascade.json")
    assert ran.code == 0
    assert "Consistent with the promise" in ran.out
    facts = demur("audit", *NEW, "--cascade", "cascade.json", "--json").json
    assert facts["errors"] == round(sum(stage["confident_error"] for stage in facts["stages"]) * 120)
    assert facts["cost"] == pytest.approx(demur("decide", *NEW, "--cascade", "cascade.json", "--json").json["cost"])


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("cascade", "cheap.jsonl", "--alpha", "0.1"), "a cascade needs at least two stages, got 1"),
        (("cascade", "cheap.jsonl", "new-strong.jsonl"), "stage 'strong' holds 120 problems that stage 'cheap'"),
        (("cascade", *PAIR, "--cost", 1), "--cost is given once per stage, 2 times, got 1"),
        (("cascade", *PAIR, "--cost", 1, "--cost", -1), "a cost must be a number >= 0, got -1.0"),
        (("cascade", *PAIR, "--stage-share", 0, "--stage-share", 0), "shares must be numbers >= 0 that are not all 0"),
        (("cascade", *PAIR, "--name", "a"), "--name is given once per stage"),
        (("cascade", *PAIR, "--name", "a", "--name", "a"), "'a' occurs twice"),
        (("cascade", *PAIR, "--stage", "huge.score=own"), "names 'huge', and there are cheap,"),
        (("cascade", *PAIR, "--stage", "cheap.colour=red"), "there is no setting 'colour' here"),
        (("cascade", *PAIR, "--stage", "cheap"), "--stage takes NAME.KEY=VALUE"),
        (("cascade", *PAIR, "-o", "cheap.jsonl"), "cheap.jsonl is an input of this command"),
        (("decide", NEW[0]), "name the policy with --policy, or a cascade with --cascade"),
        (("decide", *NEW, "--policy", "cascade.json"), "with a policy, give one file of pools"),
        (("decide", NEW[0], "--policy", "cascade.json"), "This one is a cascade"),
        (("decide", *NEW, NEW[1], "--cascade", "cascade.json"), "this cascade has 2 stages (cheap, strong), got 3"),
        (("decide", *NEW, "--cascade", "cascade.json", "--fdr", "0.1"), "--fdr and --cascade exclude each other"),
        (("decide", NEW[0], "strong.jsonl", "--cascade", "cascade.json"), "stage 'strong' holds 300 problems that"),
        (("audit", NEW[0], "--cascade", "cascade.json"), "get to stage 'strong' and have no votes there"),
        (("audit", *PAIR[:2], "--cascade", "cascade.json"), "300 of 300 problems calibrated this policy"),
        (("audit", *NEW, "--cascade", "cascade.json", "--gold-containment"), "right was"),
        (("ask", "What?", "--cascade", "cascade.json", "--alpha", "0.1"), "--alpha and --cascade exclude each other"),
        (("ask", "What?", "--cascade", "cascade.json"), "does not say how its paths were sampled"),
        (("ask", "What?"), "name the policy with --policy, or a cascade with --cascade"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_told_in_one_line(demur, made, command, told):
    ran = demur(*command)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1


def test_sizes_that_differ_name_the_flag(demur, files):
    write_pools(files / "part.jsonl", accuracy=0.7, n_paths=6, seed=2, keep=lambda row: row < 150)
    more = (files / "strong.jsonl").read_text().splitlines()[150:]
    (files / "part.jsonl").write_text((files / "part.jsonl").read_text() + "\n".join(more) + "\n")
    ran = demur("cascade", "cheap.jsonl", "part.jsonl", "--alpha", "0.1")
    assert "pools of stage 'strong' have 6, 8 paths" in ran.err
    assert "--sizes-by-chance" in ran.err
    assert demur("cascade", "cheap.jsonl", "part.jsonl", "--alpha", "0.1", "--sizes-by-chance").code == 0


def model(number, body, request):
    """The cheap one is right on even numbers and scattered on odd ones; the strong one is right."""
    k = int(re.search(r"What is (\d+)", body["messages"][-1]["content"]).group(1))
    seed, right = body.get("seed", 0), body["model"] == "strong" or k % 2 == 0
    said = [k + 1 if right else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1]) for answer in said))


def test_ask_samples_the_strong_stage_only_where_it_must(demur, server, tmp_path, monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server.behave = model
    asked = [{"id": f"q{k}", "question": f"What is {k} + 1?", "gold": str(k + 1), "task": "math"} for k in range(40)]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)))
    for name in ("cheap", "strong"):
        ran = demur("sample", "asked.jsonl", "-m", 5, "--base-url", server.url, "--model", name, "-o", f"{name}.db")
        assert ran.code == 0, ran.err
    ran = demur("cascade", "cheap.db", "strong.db", "--tie-break", "jitter:0", "--alpha", "0.1", "-o", "live.json")
    assert ran.code == 0, ran.err
    where = ("--base-url", server.url, "--stage", f"strong.base_url={server.url}")
    before = len(server.requests)
    ran = demur("ask", "What is 50 + 1?", "--cascade", "live.json", *where)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "51"), ran.err
    assert {body["model"] for body in server.requests[before:]} == {"cheap"}
    ran = demur("ask", "What is 51 + 1?", "--cascade", "live.json", *where, "--json")
    assert (ran.json["answer"], ran.json["stage"], ran.json["cost"]) == ("52", "strong", 10.0)
    assert {name: len(paths) for name, paths in ran.json["paths"].items()} == {"cheap": 5, "strong": 5}
    ran = demur("ask", "What is 51 + 1?", "--cascade", "live.json", *where, "--stage", "cheap.model=another")
    assert "sampling.model is 'cheap' in the policy" in ran.err


def test_the_examples_of_the_help_run(demur, made, files):
    """All but those that talk to a model, and those of policies, which other tests run."""
    for verb in (cascade, decide, audit):
        for example in re.findall(r"^`demur (.*)`$", verb.HELP, flags=re.MULTILINE):
            if "--cascade" not in example and verb is not cascade:
                continue
            words = example.split()
            if verb is audit:
                words[1:3] = NEW
            ran = demur(*words)
            assert ran.code == 0, (example, ran.err)
    assert "--cascade cascade.json" in ask.HELP
