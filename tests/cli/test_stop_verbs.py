"""Stopping rules on the command line: replayed, drawn by, compared, refused in one line."""

from __future__ import annotations

import json
from random import Random

import pytest

from demur.store import Store
from loopback import choice, error, reply


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def many(demur, tmp_path):
    """Pools of 16 paths."""
    assert demur("simulate", "-o", "many.jsonl", "-n", 400, "-m", 16, "--seed", 4).code == 0
    return tmp_path / "many.jsonl"


RULE = ("--stop", "beta:0.95", "--wave", 4)


def sums(number, body, request):
    """Adds; from ten on, it is of several minds."""
    question = body["messages"][-1]["content"].split("\n")[0]
    a, b = map(int, question.removeprefix("What is ").removesuffix("?").split(" + "))
    seeds = [body["seed"] + k for k in range(body.get("n", 1))]
    wrong = [a >= 10 and Random(f"{a}:{b}:{seed}").random() < 0.2 for seed in seeds]
    return reply(*(choice(f"So \\boxed{{{a + b + off}}}", [-0.3]) for off in wrong))


def test_a_rule_is_replayed_by_every_verb_that_reads_pools(demur, many):
    calibrated = demur("calibrate", "many.jsonl", *RULE, "--alpha", 0.1, "--hold-out", 0.5, "-o", "p.json", "--json")
    assert calibrated.code == 0, calibrated.err
    assert calibrated.json["pipeline"]["sampling"]["stopping"] == {"rule": "beta@1:0.95", "wave": 4, "most": 16}
    assert calibrated.json["pipeline"]["vote"]["tie_break"] == ["fewer_paths@1", "jitter@3:0"]
    assert set(calibrated.json["sizes"]) == {"4", "8", "12", "16"}
    audited = demur("audit", "many.jsonl", *RULE, "--policy", "p.json", "--json")
    assert audited.code == 0, audited.err
    decided = demur("decide", "many.jsonl", *RULE, "--policy", "p.json", "--json")
    assert {line["n_paths"] for line in decided.json["decisions"]} == {4, 8, 12, 16}
    for verb in (
        ["evaluate", "--alpha", 0.1],
        ["report", "-o", "r.html"],
        ["report", "--policy", "p.json", "-o", "s.html"],
    ):
        ran = demur(verb[0], "many.jsonl", *verb[1:], *RULE)
        assert ran.code == 0, ran.err
    tuned = demur("tune", "many.jsonl", *RULE, "--alpha", 0.1, "-o", "t.json")
    assert tuned.code == 0, tuned.err
    ran = demur("calibrate", "many.jsonl", "--tuned", "t.json", *RULE, "--alpha", 0.1)
    assert ran.code == 0, ran.err


def test_a_policy_with_a_rule_refuses_pools_of_all_paths_and_says_the_way_out(demur, many):
    demur("calibrate", "many.jsonl", *RULE, "--alpha", 0.1, "--hold-out", 0.5, "-o", "p.json")
    for verb in ("audit", "decide"):
        ran = demur(verb, "many.jsonl", "--policy", "p.json")
        assert ran.code == 2
        assert "sampling.stopping.rule is 'beta@1:0.95' in the policy, None here" in ran.err
        assert "give the policy's rule as --stop and --wave" in ran.err
        assert "sampling.stopping.wave is 4 in the policy, 3 here" in demur(
            verb, "many.jsonl", "--policy", "p.json", "--stop", "beta:0.95", "--wave", 3
        ).err  # fmt: skip
    demur("calibrate", "many.jsonl", "--alpha", 0.1, "--hold-out", 0.5, "-o", "whole.json")
    assert "sampling.stopping" in demur("audit", "many.jsonl", *RULE, "--policy", "whole.json").err


def test_plan_compares_rules_at_equal_alpha_and_warns_of_greedy_ones(demur, many):
    ran = demur("plan", "many.jsonl", "--stop", "beta:0.95,agreement:4,beta:0.6", "--alpha", 0.1, "--json")
    assert ran.code == 0, ran.err
    rows = {row["rule"]: row for row in ran.json["rows"]}
    assert list(rows) == ["fixed@1", "beta@1:0.95", "agreement@1:4", "beta@1:0.6"]
    shares = [row["share_of_paths"] for row in rows.values()]
    assert shares[0] == 1 > shares[1] > shares[3]
    assert rows["beta@1:0.95"]["against_all"]["mean"] > -0.03 > rows["beta@1:0.6"]["against_all"]["mean"]
    assert rows["beta@1:0.6"]["paths_per_answer"] < rows["fixed@1"]["paths_per_answer"]
    assert [told for told in ran.json["warnings"] if "is greedy" in told]
    shown = demur("plan", "many.jsonl", "--stop", "beta:0.6", "--alpha", 0.1)
    assert "warning: beta@1:0.6 is greedy" in shown.out + shown.err
    assert "paths per answer" in shown.out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--stop", "half"], "unknown stopping rule 'half'; expected fixed, agreement:W or beta:P"),
        (["--stop", "beta:2"], "must lie strictly between 0.5 and 1"),
        (["--stop", "beta:0.95", "--wave", 0], "a wave has a whole number of paths"),
        (["--wave", 4], "--wave 4 is for a stopping rule here; name one with --stop"),
        (["--stop", "agreement:1"], "a window of agreement holds two paths or more"),
    ],
)
@pytest.mark.parametrize("verb", ["calibrate", "evaluate", "plan"])
def test_what_is_no_rule_is_told_in_one_line(demur, many, verb, flags, told):
    ran = demur(verb, "many.jsonl", "--alpha", 0.1, *flags)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("verb", ["calibrate", "evaluate", "report"])
def test_several_rules_are_for_plan(demur, many, verb):
    ran = demur(verb, "many.jsonl", "--alpha", 0.1, "--stop", "beta:0.95,agreement:4")
    assert ran.code == 2
    assert "takes one rule here, got 'beta:0.95,agreement:4'; compare several with `demur plan --stop`" in ran.err


def test_pools_that_are_too_short_are_refused_or_left_out(demur, many):
    lines = [json.loads(line) for line in many.read_text().splitlines()]
    at = next(at for at, line in enumerate(lines) if len({path.get("answer") for path in line["paths"][:4]}) > 2)
    lines[at]["paths"] = lines[at]["paths"][:5]
    many.write_text("\n".join(map(json.dumps, lines)))
    refused = demur("calibrate", "many.jsonl", *RULE, "--alpha", 0.1)
    assert refused.code == 2
    assert "1 of 400 pools have fewer paths than the rule" in refused.err
    assert "leave them out with --partial" in refused.err
    assert demur("calibrate", "many.jsonl", *RULE, "--alpha", 0.1, "--partial").code == 0


def test_sample_draws_by_the_rule_and_calibrate_and_ask_go_on_with_it(demur, server):
    server.behave = sums
    where = ("--base-url", server.url, "--model", "adder")
    sample = ("sample", "builtin:addition", "--limit", 60, "-m", 12, *where, "-o", "run.db")
    ran = demur(*sample, *RULE)
    assert ran.code == 0, ran.err
    with Store("run.db") as store:
        sizes = [len(pool.paths) for pool in store.run().pools()]
    assert set(sizes) == {4, 8, 12}
    assert f"Saved {sum(sizes)} of {sum(sizes)} paths" in ran.out
    assert "All 60 problems have their paths already" in demur(*sample, *RULE).out
    for other in ((), ("--stop", "agreement:4"), (*RULE[:2], "--wave", 3)):
        refused = demur(*sample, *other)
        assert refused.code == 2
        assert "was made another way: sampling.stopping" in refused.err
    assert demur("calibrate", "run.db", "--alpha", 0.2, "-o", "p.json").code == 0
    assert demur("calibrate", "run.db", "--alpha", 0.2, *RULE).code == 0
    assert "cannot tell what agreement" in demur("calibrate", "run.db", "--alpha", 0.2, "--stop", "agreement:4").err
    assert "cannot tell what others" in demur("plan", "run.db", "--stop", "agreement:4", "--alpha", 0.2).err
    asked = demur("ask", "What is 3 + 4?", "--policy", "p.json", *where[:2], "--json")
    assert asked.code == 0, asked.err
    assert (asked.json["answer"], asked.json["n_paths"], len(asked.json["paths"])) == ("7", 4, 4)


@pytest.mark.parametrize("name", ["pools.jsonl", "pools.parquet"])
def test_what_is_exported_of_a_run_that_was_cut_off_says_that_contested_questions_are_missing(demur, server, name):
    """Pools that a rule has ended are the easy ones: nothing may be calibrated on those alone, unless it is said."""
    asked = set()

    def fails_later(number, body, request):
        question = body["messages"][-1]["content"]
        if question in asked:
            return error(400, "no more of this")
        asked.add(question)
        return sums(number, body, request)

    server.behave = fails_later
    where = ("--base-url", server.url, "--model", "adder")
    assert demur("sample", "builtin:addition", "--limit", 60, "-m", 12, *where, "-o", "run.db", *RULE).code == 1
    told = demur("export", "run.db", "-o", name, "--json").json
    assert told["left_out"] == 60 - told["problems"] > 0
    assert f"{told['left_out']} problems that lack paths are left out" in demur("export", "run.db", "-o", name).out
    for place in ("run.db", name):
        refused = demur("calibrate", place, "--alpha", 0.2)
        assert (refused.code, "lack" in refused.err, "--partial" in refused.err) == (2, True, True)
        assert demur("calibrate", place, "--alpha", 0.2, "--partial").code == 0
    assert demur("export", "run.db", "-o", name, "--unfinished", "--json").json["left_out"] == 0
    assert "fewer paths than the rule" in demur("calibrate", name, "--alpha", 0.2).err


def test_a_text_that_ends_paths_is_another_flag(demur, server):
    server.behave = sums
    where = ("--base-url", server.url, "--model", "adder", "-o", "run.db")
    assert demur("sample", "builtin:addition", "--limit", 2, "-m", 2, "--stop-text", "END", *where).code == 0
    ran = demur("sample", "builtin:addition", "--limit", 2, "-m", 2, "--stop", "END", *where)
    assert (ran.code, "a text that ends a path is --stop-text" in ran.err) == (2, True)
    assert "waves of 3 are for a stopping rule" in demur("sample", "builtin:addition", "--wave", 3, *where).err


def test_a_dry_run_says_how_many_paths_there_are_at_most(demur, server):
    ran = demur("sample", "builtin:addition", "--limit", 5, "-m", 8, *RULE, "--dry-run", "--base-url", server.url,
                "--model", "adder", "-o", "run.db")  # fmt: skip
    assert "5 problems lack 40 paths at most" in ran.out


def test_the_configuration_may_name_the_rule(demur, server, tmp_path):
    server.behave = sums
    (tmp_path / "demur.toml").write_text('[sampling]\nstop_rule = "beta:0.95"\nwave = 4\npaths = 8\n')
    ran = demur("sample", "builtin:addition", "--limit", 5, "--base-url", server.url, "--model", "a", "-o", "run.db")
    assert ran.code == 0, ran.err
    with Store("run.db") as store:
        assert str(store.run().stopping) == "beta@1:0.95 in waves of 4, at most 8 paths"
