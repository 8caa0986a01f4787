"""`calibrate --answer-sets`, and what `decide`, `audit`, `ask` and the report make of it."""

from __future__ import annotations

import json

import pytest

import demur as dm
from demur.cli.ask import show
from demur.cli.decide import decision_line


@pytest.fixture
def policy(demur, pools):
    how = ("--score", "simulated", "--alpha", "0.05", "--answer-sets", "0.3", "--hold-out", "0.4")
    ran = demur("calibrate", pools, *how, "-o", "policy.json")
    assert (ran.code, ran.err.count("error")) == (0, 0)
    return "policy.json"


def test_calibrate_says_what_sets_promise_how_large_they_are_and_of_how_many_questions(demur, pools):
    how = ("--score", "simulated", "--alpha", "0.05", "--answer-sets", "0.3", "--set-share", "0.4")
    ran, facts = demur("calibrate", pools, *how), demur("calibrate", pools, *how, "--json").json
    known = facts["points"][0]["answer_sets"]
    assert f"{facts['n']} calibration questions, {known['questions']} more kept for answer sets" in ran.out
    assert facts["n"] + known["questions"] == facts["problems"]
    assert round(known["questions"] / facts["problems"], 2) == 0.4
    assert "Answer sets, where alpha = 0.05 abstains: Given that the policy abstains from a new question" in ran.out
    assert known["note"] in ran.out
    assert f"In this file, {facts['set_sizes'][0]}" in ran.out
    assert (known["alpha"], known["n_needed"]) == (0.3, 3)
    assert "answer_sets" not in demur("calibrate", pools, "--json").json["points"][0]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--answer-sets", "1.5"), "the alpha of answer sets must lie strictly between 0 and 1, got 1.5"),
        (("--answer-sets", "x"), "'x' is neither a number nor a fraction"),
        (("--answer-sets", "0.1", "--set-share", "1"), "must lie strictly between 0 and 1, got 1.0"),
        (("--set-share", "0.5"), "--set-share goes with --answer-sets"),
        (
            ("--answer-sets", "0.1", "--partly-labelled"),
            "and these labels say at most whether the vote's is right; give gold for all problems, or leave "
            "--answer-sets out",
        ),
    ],
)
def test_what_cannot_be_is_one_line_that_names_the_way_out(demur, pools, tmp_path, flags, complaint):
    if "--partly-labelled" in flags:
        lines = pools.read_text().splitlines()
        first = json.loads(lines[0])
        first.pop("gold")
        pools.write_text("\n".join([json.dumps(first), *lines[1:]]))
    ran = demur("calibrate", pools, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in " ".join(ran.err.replace("│", " ").split())


def test_labels_from_the_top_calibrate_no_sets(demur, pools, tmp_path):
    given = dm.vote_pools(dm.read_pools(pools))
    queue = dm.LabelQueue(given, [dm.Marginal(0.1)])
    labelled = queue.labelled_votes()
    with pytest.raises(dm.errors.InvalidValue, match="say at most whether the vote's is right"):
        dm.calibrate(labelled, alpha=0.1, partly_labelled=True, answer_sets=dm.AnswerSets(0.1))


def test_decide_offers_a_set_where_it_abstains(demur, policy, pools):
    facts = demur("decide", pools, "--policy", policy, "--json").json
    assert facts["answer_sets"]["alpha"] == 0.3
    for line in facts["decisions"]:
        assert (line["decision"] == "abstain") == ("answer_set" in line)
        assert "answer_set" not in line or set(line["answer_set"]) <= set(line["support"])
    ran = demur("decide", pools, "--policy", policy, "-o", "decisions.jsonl")
    assert "or one of" in ran.out
    assert "questions abstained from have an answer set" in ran.out
    assert facts["answer_sets"]["note"] in ran.out
    batch = demur("decide", pools, "--policy", policy, "--fdr", "0.1")
    assert "calibrated this policy" in batch.err


def test_audit_counts_the_sets_that_miss(demur, policy, pools):
    ran = demur("audit", pools, "--policy", policy)
    assert "Answer sets at alpha 0.3" in ran.out
    assert "Consistent with what is promised of answer sets" in ran.out
    (point,) = demur("audit", pools, "--policy", policy, "--json").json["points"]
    found = point["answer_sets"]
    assert found["missed"] <= found["usual_at_most"] <= found["n"]
    assert found["coverage"] == 1 - found["missed"] / found["n"]


def test_ask_shows_the_set_and_its_promise(capsys):
    drawn = dm.simulate_pools(200, n_paths=6, seed=1)
    given = dm.VotedPools.of(dm.vote(drawn.answers), gold=drawn.gold)
    policy = dm.calibrate(given, alpha=0.05, answer_sets=dm.AnswerSets(0.3))
    show(decision_line(policy.decide([0, 1, 1, 2, 0, 3]), policy.recipe.names))
    said = capsys.readouterr().out
    assert "I would rather not answer." in said
    assert "answer set: 0 · 1" in said
    assert "its answer set holds a right answer" in " ".join(said.split())
    show(decision_line(policy.decide([0] * 6), policy.recipe.names))
    assert "answer set" not in capsys.readouterr().out
