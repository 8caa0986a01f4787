"""`demur score`: from a sampled run to scores, a policy by one of them, and a question asked by it."""

from __future__ import annotations

import json

import pytest

from cli.test_sampling_verbs import sums
from demur.store import Store
from loopback import Loopback, error
from vllm import Vllm

KEYS = ("OPENAI", "JUDGE", "REWARD", "PERPLEXITY")


@pytest.fixture(autouse=True)
def no_endpoints(monkeypatch):
    for name in KEYS:
        for tail in ("BASE_URL", "API_KEY", "MODEL"):
            monkeypatch.delenv(f"{name}_{tail}", raising=False)


@pytest.fixture
def scorers(monkeypatch):
    """A server of judges and rewards beside the one that is sampled from."""
    running = Loopback(behave=Vllm()).start()
    for name in ("JUDGE", "REWARD"):
        monkeypatch.setenv(f"{name}_BASE_URL", running.url)
        monkeypatch.setenv(f"{name}_MODEL", name.lower())
    yield running
    running.stop()


@pytest.fixture
def sampled(demur, server):
    server.behave = sums
    ran = demur("sample", "builtin:addition", "--limit", 60, "-m", 4, "--base-url", server.url, "--model", "adder",
                  "-o", "run.db")  # fmt: skip
    assert ran.code == 0, ran.err
    return ran


def test_several_scores_at_once_and_none_twice(demur, sampled, scorers):
    command = ("score", "run.db", "--score", "judge", "--score", "reward", "--score", "self-consistency")
    ran = demur(*command, "--json")
    assert ran.code == 0, ran.err
    assert [(each["name"], each["saved"]) for each in ran.json["scores"]] == [
        ("judge", 240), ("reward", 240), ("self-consistency", 240),
    ]  # fmt: skip
    before = len(scorers.requests)
    again = demur(*command)
    assert "judge: every path has this score already." in again.out
    assert not any("draft" in repr(body) for body in scorers.requests[before:])
    assert len(scorers.requests) - before < 20  # the probes


def test_a_policy_by_a_judge_is_calibrated_and_asked(demur, sampled, scorers, server, monkeypatch):
    assert demur("score", "run.db", "--score", "judge").code == 0
    ran = demur("calibrate", "run.db", "--score", "judge", "--alpha", 0.2, "-o", "p.json", "--json")
    assert ran.code == 0, ran.err
    scorer = ran.json["pipeline"]["score"]["scorer"]
    assert (scorer["model"], scorer["route"], scorer["prompt"]) == ("judge", "token_ids", "built-in@1")
    ask = ("ask", "What is 3 + 4?", "--policy", "p.json", "--base-url", server.url)
    asked = demur(*ask, "--json")
    assert asked.code in (0, 3), asked.err
    assert all("judge" in path["scores"] for path in asked.json["paths"])
    monkeypatch.delenv("JUDGE_BASE_URL")
    refused = demur(*ask)
    assert (refused.code, "set JUDGE_BASE_URL" in refused.err) == (2, True)


def test_another_judge_is_refused_before_a_path_is_paid_for(demur, sampled, scorers, server):
    demur("score", "run.db", "--score", "judge")
    demur("calibrate", "run.db", "--score", "judge", "--alpha", 0.2, "-o", "p.json")
    paid = len(server.requests)
    ran = demur("ask", "What is 3 + 4?", "--policy", "p.json", "--base-url", server.url, "--set", "judge.model=other")
    assert ran.code == 2
    assert "score.scorer.model is 'judge' in the policy, 'other' here" in ran.err
    assert len(server.requests) == paid


def test_a_changed_judge_scores_under_a_new_name(demur, sampled, scorers):
    demur("score", "run.db", "--score", "judge")
    ran = demur("score", "run.db", "--score", "judge", "--set", "judge.model=larger")
    assert "another scorer has that name in this run; these are judge-2" in ran.out
    with Store("run.db") as store:
        assert {"judge", "judge-2"} <= set(store.run().scorers())


def test_one_scorer_that_fails_does_not_end_the_others(demur, sampled, scorers):
    scorers.behave.routes = tuple(route for route in scorers.behave.routes if route not in ("/classify", "/pooling"))
    ran = demur("score", "run.db", "--score", "reward", "--score", "self-consistency")
    assert ran.code == 1
    assert "reward: the endpoint serves no reward model" in ran.out
    assert "self-consistency: scored 240 of 240 paths" in ran.out


def test_a_partial_score_cannot_be_calibrated_with_and_the_pools_are_named(demur, sampled, scorers):
    good = scorers.behave
    asked = next(json.loads(line) for line in _exported(demur) if json.loads(line).get("question"))
    scorers.behave = lambda n, body, request: (
        error(400, "no") if asked["question"] in repr(body) else good(n, body, request)
    )
    ran = demur("score", "run.db", "--score", "judge")
    assert ran.code == 1
    assert f"failed: {asked['id']}" in ran.out
    refused = demur("calibrate", "run.db", "--score", "judge", "--alpha", 0.2)
    assert refused.code == 2
    assert f"1 of 60 pools lack the score 'judge' in some path: '{asked['id']}'" in refused.err
    assert "note: judge is missing in 1 pools" in demur("score", "run.db", "--list").out
    scorers.behave = good
    assert demur("score", "run.db", "--score", "judge").code == 0
    assert demur("calibrate", "run.db", "--score", "judge", "--alpha", 0.2).code == 0


def _exported(demur):
    assert demur("export", "run.db", "-o", "out.jsonl").code == 0
    with open("out.jsonl") as lines:
        return list(lines)


def test_the_list_shows_every_score_beside_the_majority_vote(demur, sampled, scorers):
    demur("score", "run.db", "--score", "judge", "--score", "perplexity-std", "--score", "perplexity-std-negated")
    ran = demur("score", "run.db", "--list", "--json")
    assert ran.code == 0, ran.err
    rows = {each["title"]: each for each in ran.json["scores"]}
    assert list(rows)[:2] == ["majority vote", "majority vote with jitter"]
    for name in ("judge", "perplexity", "perplexity-std"):
        assert rows[name]["paths"] == 240
        assert 0 <= rows[name]["path_auroc"] <= 1
        assert 0 <= rows[name]["vote_accuracy"] <= 1
        assert rows[name]["low"] <= rows[name]["high"]
    both = rows["perplexity-std"]["path_auroc"] + rows["perplexity-std-negated"]["path_auroc"]
    assert both == pytest.approx(1)
    assert "path AUROC" in demur("score", "run.db", "--list").out


def test_the_list_says_on_what_it_ranks_with_errors_and_what_follows(demur, pools):
    ran = demur("score", pools, "--list")
    told = (
        "by the labels of 400 questions: to choose by these figures and calibrate on the same questions would break the"
    )
    assert f"Ranked {told} promise; `demur tune`" in ran.out
    facts = demur("score", pools, "--list", "--json").json
    assert facts["ranked"].startswith(told)
    for one in facts["scores"]:
        for figure in ("vote_accuracy", "common_auc"):
            assert 0 < one[f"{figure}_error"] < 0.1
            assert f"{100 * one[figure]:.1f} % ± {100 * one[f'{figure}_error']:.1f}" in ran.out
    assert facts["scores"][-1]["path_auroc_error"] > 0


def test_a_scored_column_of_a_file_counts_as_a_score(demur, pools):
    ran = demur("score", pools, "--list", "--json")
    assert ran.code == 0, ran.err
    assert [each["title"] for each in ran.json["scores"]][2:] == ["simulated"]
    assert demur("import", pools, "-o", "imported.db").code == 0
    listed = demur("score", "imported.db", "--list", "--json").json["scores"]
    assert listed[2]["path_auroc"] == ran.json["scores"][2]["path_auroc"]


def test_without_gold_the_list_says_nothing_of_right_and_wrong(demur, pools):
    lines = [json.loads(line) for line in pools.read_text().splitlines()]
    pools.write_text("\n".join(json.dumps({**line, "gold": ""}) for line in lines))
    ran = demur("score", pools, "--list")
    assert ran.code == 0, ran.err
    assert "No problem has a gold answer" in ran.out


def test_a_function_of_ones_own(demur, sampled, tmp_path, server):
    (tmp_path / "mine_of_test_score.py").write_text("def short(pool):\n    return [-len(p.text) for p in pool.paths]\n")
    ran = demur("score", "run.db", "--score", "mine_of_test_score:short")
    assert ran.code == 0, ran.err
    assert "short: scored 240 of 240 paths" in ran.out
    assert demur("calibrate", "run.db", "--score", "short", "--alpha", 0.2, "-o", "p.json").code == 0
    ask = ("ask", "What is 3 + 4?", "--policy", "p.json", "--base-url", server.url)
    assert "name it yourself: --score mine_of_test_score:short" in demur(*ask).err
    assert demur(*ask, "--score", "mine_of_test_score:short").code in (0, 3)


def test_settings_come_from_the_description_too(demur, sampled, scorers, tmp_path):
    (tmp_path / "demur.toml").write_text('[score.strict]\nkind = "judge"\nmodel = "m"\n'
                                           f'base_url = "{scorers.url}"\nroute = "chat"\n')  # fmt: skip
    ran = demur("score", "run.db", "--score", "strict", "--json")
    assert ran.code == 0, ran.err
    with Store("run.db") as store:
        assert store.run().scorers()["strict"]["route"] == "top 20"
    (tmp_path / "demur.toml").write_text('[score.strict]\nkindness = "judge"\n')
    assert "unknown key 'kindness'" in demur("score", "run.db", "--score", "strict").err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "name what to score with --score"),
        (["--score", "judge"], "no model is named for the score 'judge'"),
        (["--score", "luck"], "there is no score 'luck'"),
        (["--score", "judge", "--set", "judge"], "--set takes NAME.KEY=VALUE"),
        (["--score", "judge", "--set", "reward.model=x"], "--set reward.… names no --score"),
        (["--score", "judge", "--set", "judge.modell=x"], "unknown key 'modell'"),
        (["--list", "--score", "judge"], "it goes without --score"),
        (["--score", "perplexity", "--normaliser", "rank"], "--normaliser is for --list"),
    ],
)
def test_bad_input_gets_one_line(demur, sampled, flags, said):
    ran = demur("score", "run.db", *flags)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_store_that_is_not_there(demur):
    assert "there is no run nothing.db" in demur("score", "nothing.db", "--score", "perplexity").err


def test_calibrate_warns_of_a_score_that_does_nothing(demur, sampled, tmp_path):
    (tmp_path / "mine_of_warnings.py").write_text(
        "def same(pool):\n    return [1.0 for _ in pool.paths]\n"
        "def wide(pool):\n    return [100.0 * i for i, _ in enumerate(pool.paths)]\n"
    )
    for name, said in (("same", "is the same for all paths in 100% of the pools"), ("wide", "the vote is best-of-m")):
        assert demur("score", "run.db", "--score", f"mine_of_warnings:{name}").code == 0
        ran = demur("calibrate", "run.db", "--score", name, "--alpha", 0.2)
        assert f"warning: the score '{name}'" in ran.out
        assert said in ran.out
        assert said in demur("score", "run.db", "--list").out
    assert "warning" not in demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.2).out
