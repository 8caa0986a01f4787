"""What figures alone do not say: thresholds that are none, budget that ties leave unspent, paths without an answer."""

from __future__ import annotations

import json

import pytest

import demur as dm
from demur.evidence.counts import Evidence
from demur.evidence.split_law import SplitLaw


def write(path, pools):
    """Pools as answers; the right one is "a"."""
    lines = (
        {"id": f"q{at}", "question": f"Q{at}?", "gold": "a", "paths": [{"answer": answer} for answer in answers]}
        for at, answers in enumerate(pools)
    )
    path.write_text("\n".join(map(json.dumps, lines)))


@pytest.fixture
def tied(tmp_path):
    """Ten wrong votes of one confidence, straddling what alpha = 0.1 allows."""
    write(tmp_path / "tied.jsonl", [["a"] * 4] * 80 + [["b", "b", "b", "a"]] * 10 + [["a", "a", "a", "b"]] * 10)
    return "tied.jsonl"


def test_a_policy_that_always_answers_says_so(demur, tmp_path):
    write(tmp_path / "right.jsonl", [["a", "a", "b"]] * 50)
    ran = demur("calibrate", "right.jsonl", "--alpha", 0.1, "-o", "p.json")
    assert "always answers" in ran.out
    assert "0.0000" not in ran.out
    assert "answers above 0.0000" not in demur("decide", "right.jsonl", "--policy", "p.json").out
    assert "Decisions at alpha 0.1, which always answers" in demur("decide", "right.jsonl", "--policy", "p.json").out
    policy = dm.Policy.load("p.json")
    assert "always answers: expect 100.0 % answered" in policy.summary()
    explanation = policy.decide(["a", "b", "a"], question="Q1?").explanation
    assert "confidence 0.6667, and at this alpha the policy always answers." in explanation
    assert "always answers" in demur("evaluate", "right.jsonl", "--alpha", 0.1, "--splits", 2).out


def test_a_policy_that_never_answers_says_so(demur, tmp_path):
    write(tmp_path / "wrong.jsonl", [["b", "b"]] * 30 + [["a", "a"]] * 20)
    for alpha in (0.01, 0.1):  # too few votes; too many wrong ones at full confidence
        ran = demur("calibrate", "wrong.jsonl", "--alpha", alpha, "--tie-break", "none", "-o", "p.json")
        assert "never answers" in ran.out
        told = demur("decide", "wrong.jsonl", "--policy", "p.json").out
        assert f"Decisions at alpha {alpha:g}, which never answers" in told


def test_budget_that_ties_leave_unspent_is_said_with_its_remedy(demur, tied):
    none = ("--tie-break", "none")
    facts = demur("calibrate", tied, "--alpha", 0.1, *none, "--json").json["points"][0]
    assert facts["k"] == 10
    assert facts["forecast"]["unspent_by_ties"] == pytest.approx(9 / 101)
    text = demur("calibrate", tied, "--alpha", 0.1, *none, "-o", "p.json").out
    note = (
        "Ties leave 8.9 % of the 10.0 % that alpha = 0.1 allows unspent: 20 calibration votes share the confidence "
        "0.75, and are answered together or not at all; a tie-break would tell them apart."
    )
    assert f"{note} Leave `--tie-break none` out." in text.splitlines()
    assert note in dm.Policy.load("p.json").summary()
    assert "unspent" in demur("evaluate", tied, "--alpha", 0.1, *none, "--splits", 2).out
    told = demur("report", tied, "--alpha", 0.1, *none, "--json").json["tie_notes"]
    assert told[0].startswith("Ties leave")
    assert "Leave `--tie-break none` out." in demur("report", tied, "--alpha", 0.1, *none).out


def test_the_remedy_helps(demur, tied):
    facts = demur("calibrate", tied, "--alpha", 0.1, "--json").json["points"][0]
    assert (facts["forecast"]["unspent_by_ties"], facts["tie_note"]) == (0, "")
    assert "unspent" not in demur("evaluate", tied, "--alpha", 0.1, "--splits", 2).out


def test_votes_without_ties_leave_nothing_unspent(demur, pools):
    for point in demur("calibrate", pools, "--score", "simulated", "--alpha", 0.1, "--json").json["points"]:
        assert (point["forecast"]["unspent_by_ties"], point["tie_note"]) == (0, "")
    for point in demur("evaluate", pools, "--score", "simulated", "--alpha", 0.1, "--splits", 2, "--json").json[
        "points"
    ]:
        assert point["unspent_by_ties"] == pytest.approx(0, abs=1e-12)


def test_the_mean_without_ties_is_that_of_distinct_keys():
    """Right votes and the order among ties do not matter to it."""
    tied = Evidence.of([0.25] * 6 + [0.5] * 10 + [1.0] * 14, ([False] * 3 + [True] * 3) * 5)
    apart = Evidence.of([0.25 + at / 100 for at in range(30)], ([False] * 3 + [True] * 3) * 5)
    for k in (0, 1, 3, 15):
        law = SplitLaw.of(tied, k, 12)
        assert law.mean_without_ties == pytest.approx(SplitLaw.of(apart, k, 12).mean)
        assert law.mean <= law.mean_without_ties + 1e-12


def test_paths_without_an_answer_are_counted_where_votes_are_shown(demur, tmp_path):
    write(tmp_path / "p.jsonl", [["a", "a", "a", None]] * 30 + [["a", "b", None, " "]] * 10)
    counted = "50 of 160 paths have none"
    for verb in (["calibrate"], ["evaluate", "--splits", 2], ["score", "--list"], ["answers"], ["report"]):
        flags = [] if verb[0] in ("score", "answers") else ["--alpha", 0.2]
        ran = demur(verb[0], "p.jsonl", *verb[1:], *flags)
        assert counted in ran.out, verb
    demur("calibrate", "p.jsonl", "--alpha", 0.2, "-o", "p.json")
    ran = demur("decide", "p.jsonl", "--policy", "p.json")
    assert counted in ran.out
    assert "a ×3, no answer ×1" in ran.out
    line = demur("decide", "p.jsonl", "--policy", "p.json", "--json").json["decisions"][-1]
    assert (line["n_paths"], line["without_answer"]) == (4, 2)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--score", "simulatd"], "did you mean 'simulated'? there is: simulated"),
        (["--score", ".difficlty"], "there is: simulated"),
        (["--answer-field", "anwser"], "did you mean 'answer'? there is: answer; name one as --answer-field"),
        (["--correct", "okk"], "must be true or false, or 0 or 1, got nothing; did you mean 'ok'? there is: fine, ok"),
        (["--tie-break", "column:dificulty"], "did you mean 'difficulty'? there is: difficulty"),
    ],
)
def test_a_mistyped_field_lists_the_fields_there_are(demur, pools, tmp_path, flags, told):
    lines = [json.loads(line) for line in pools.read_text().splitlines()]
    for line in lines:
        line["paths"] = [{**path, "ok": True, "fine": False} for path in line["paths"]]
    pools.write_text("\n".join(map(json.dumps, lines)))
    ran = demur("calibrate", pools, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_mistyped_problem_names_the_nearest(demur, pools):
    ran = demur("answers", pools, "--explain", "--problem", "sim-3-0O1")
    assert (ran.code, "did you mean 'sim-3-" in ran.err) == (2, True)
    explained = demur("answers", pools, "--explain", "--problem", "sim-3-001", "--json").json
    assert [way["id"] for way in explained["ways"]] == ["sim-3-001"] * 8


def test_forgetting_a_score_speaks_json(demur, pools):
    demur("import", pools, "-o", "run.db")
    assert demur("score", "run.db", "--forget", "simulated", "--json").json == {"forgotten": "simulated", "paths": 3200}
