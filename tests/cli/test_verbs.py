"""Each verb as a user runs it: text for people, JSON for machines, the same facts in both."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import demur as dm
from demur.pools.jsonl import read_pools


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_simulate_writes_pools_that_read_back(demur, tmp_path):
    ran = demur("simulate", "-o", "p.jsonl.gz", "-n", 50, "-m", 4, "--json")
    assert ran.json["problems"] == 50
    assert len(read_pools(tmp_path / "p.jsonl.gz")) == 50
    with gzip.open(tmp_path / "p.jsonl.gz", "rt") as stream:
        assert json.loads(stream.readline())["id"] == "sim-00"
    assert "A single path is right" in demur("simulate", "-o", "q.jsonl", "-n", 5).out


def test_calibrate_says_what_to_expect_and_writes_a_policy_that_python_reads(demur, pools, tmp_path):
    ran = demur(
        "calibrate", pools, "--score", "simulated", "--alpha", 0.05, "--alpha", 0.1, "-o", "policy.json", "--json"
    )
    assert ran.code == 0
    facts = ran.json
    policy = dm.Policy.load(tmp_path / "policy.json")
    assert facts["n"] == policy.n == 400
    assert [p["threshold"] for p in facts["points"]] == [p.threshold for p in policy.points]
    expected = policy.forecast(0.1)
    assert facts["points"][1]["forecast"]["answered"] == expected.answered
    assert facts["pipeline"]["vote"]["weight"] == "exponential:1.0"
    assert facts["pipeline"]["answers"]["relation"] == "by-task(auto@2)"
    text = demur("calibrate", pools, "--score", "simulated", "--alpha", 0.1).out
    assert f"{100 * expected.answered:.1f} %" in text
    assert "at most 0.1" in text
    assert "normaliser none@1" in text


def test_calibrating_a_file_is_calibrating_its_table_in_python(demur, pools, tmp_path):
    demur("calibrate", pools, "--score", "simulated", "--normaliser", "pool_z", "--weight", "exponential:2",
            "--tie-break", "mean_score", "--delta", 0.1, "--alpha", 0.2, "-o", "policy.json")  # fmt: skip
    drawn = dm.simulate_pools(400, n_paths=8, seed=3)
    how = {"weight": dm.exponential(2), "normaliser": dm.normalisers.pool_z, "tie_break": dm.mean_score()}
    asked = [pool.problem.question for pool in drawn.pools()]
    votes = dm.vote(drawn.answers, np.round(drawn.scores, 6), questions=asked, **how)
    policy = dm.calibrate(votes, votes.answer == drawn.gold, guarantee=dm.HighProbability(0.2, 0.1))
    assert dm.Policy.load(tmp_path / "policy.json").points == policy.points


def test_hold_out_then_audit_then_decide(demur, pools, tmp_path):
    assert demur("calibrate", pools, "--score", "simulated", "--hold-out", 0.5, "-o", "policy.json").code == 0
    audit = demur("audit", pools, "--policy", "policy.json", "--json").json
    assert (audit["n"], audit["left_out"]) == (200, 200)
    assert audit["points"][0]["consistent"] is True
    text = demur("audit", pools, "--policy", "policy.json").out
    assert "200 calibrated it and are left out" in text
    assert "Consistent with the promise" in text
    decided = demur("decide", pools, "--policy", "policy.json", "-o", "decisions.jsonl", "--json").json
    lines = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert lines == decided["decisions"]
    assert decided["n_answered"] == sum(line["decision"] == "answer" for line in lines)
    for line in lines:
        assert (line["answer"] is None) == (line["decision"] == "abstain")
        assert (line["confidence"] > line["threshold"]) == (line["decision"] == "answer")
    assert "Answered" in demur("decide", pools, "--policy", "policy.json").out


def test_decide_never_reads_gold(demur, pools, tmp_path):
    demur("calibrate", pools, "--score", "simulated", "-o", "policy.json")
    first = demur("decide", pools, "--policy", "policy.json", "--json").json
    blind = [json.loads(line) for line in pools.read_text().splitlines()]
    for record in blind:
        del record["gold"]
    write(tmp_path / "blind.jsonl", *blind)
    assert demur("decide", "blind.jsonl", "--policy", "policy.json", "--json").json == first


def test_repeated_splits_report_the_exact_mean_and_the_baselines(demur, pools):
    facts = demur("evaluate", pools, "--score", "simulated", "--alpha", 0.1, "--splits", 200, "--json").json
    point = facts["points"][0]
    assert abs(point["z"]) < 4
    assert point["expected_confident_error"] <= 0.1
    assert set(facts["accuracy"]) == {"single_path", "majority_vote", "best_of_m", "weighted_vote", "oracle"}
    assert facts["accuracy"]["single_path"] < facts["accuracy"]["weighted_vote"] < facts["accuracy"]["oracle"]
    assert facts["n_cal"] == 200
    text = demur("evaluate", pools).out
    assert "exact mean" in text
    assert "best of m" not in text  # no score, no best-of-m


def test_the_same_seed_gives_the_same_bytes(demur, pools):
    runs = [demur("evaluate", pools, "--score", "simulated", "--seed", s, "--json").out for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_shuffling_the_file_changes_no_result(demur, pools, tmp_path):
    lines = pools.read_text().splitlines()
    (tmp_path / "back.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    first = demur("calibrate", pools, "--score", "simulated", "--hold-out", 0.3, "--json").out
    assert demur("calibrate", "back.jsonl", "--score", "simulated", "--hold-out", 0.3, "--json").out == first
    splits = demur("evaluate", pools, "--score", "simulated", "--json").out
    assert demur("evaluate", "back.jsonl", "--score", "simulated", "--json").out == splits


def test_duplicated_questions_and_clusters_count_once_and_are_mentioned(demur, tmp_path):
    records = [
        {"id": f"q{i}", "question": f"Question {i // 2}", "gold": "a", "paths": [{"answer": "a"}, {"answer": "a"}]}
        for i in range(60)
    ]
    write(tmp_path / "twins.jsonl", *records)
    ran = demur("calibrate", "twins.jsonl", "--alpha", 0.1)
    assert "30 calibration questions (30 more share" in ran.out
    assert demur("evaluate", "twins.jsonl", "--alpha", 0.1, "--json").json["duplicates"] == 30


def test_sets_all_right_and_all_wrong_print_dashes(demur, tmp_path):
    for gold in ("a", "b"):
        write(tmp_path / "one.jsonl", *({"id": f"q{i}", "gold": gold, "paths": [{"answer": "a"}]} for i in range(40)))
        ran = demur("calibrate", "one.jsonl", "--alpha", 0.1)
        assert ran.code == 0
        assert "–" in ran.out
        assert demur("calibrate", "one.jsonl", "--alpha", 0.1, "--json").json["auroc"] is None
    ran = demur("calibrate", "one.jsonl", "--alpha", 0.1, "--tie-break", "none")
    assert "no threshold on this confidence can answer. Leave `--tie-break none` out." in ran.out


def test_too_few_problems_warn_and_abstain_and_strict_fails(demur, tmp_path):
    write(tmp_path / "few.jsonl", *({"id": f"q{i}", "gold": "a", "paths": [{"answer": "a"}]} for i in range(5)))
    ran = demur("calibrate", "few.jsonl", "-o", "policy.json")
    assert ran.code == 0
    assert "warning: 5 calibration questions are too few for alpha = 0.05" in ran.err
    assert "never answers" in ran.out
    assert demur("decide", "few.jsonl", "--policy", "policy.json", "--json").json["answered"] == 0
    strict = demur("calibrate", "few.jsonl", "--strict", "-o", "strict.json")
    assert (strict.code, strict.out) == (2, "")
    assert "needs 19" in strict.err
    assert not (tmp_path / "strict.json").exists()


def test_answer_fields_missing_spellings_and_ready_made_labels(demur, tmp_path):
    records = [
        {"id": f"q{i}", "paths": [{"answer_x": "5", "ok": True}, {"answer_x": "None", "ok": False}]} for i in range(30)
    ]
    write(tmp_path / "x.jsonl", *records)
    how = ["x.jsonl", "--answer-field", "answer_x", "--missing", "None", "--correct", "ok", "--alpha", 0.1]
    facts = demur("calibrate", *how, "-o", "policy.json", "--json").json
    assert facts["vote_accuracy"] == 1.0
    assert facts["pipeline"]["answers"]["missing"] == ["None"]
    # The policy remembers how the file is read, so deciding needs no flags.
    decisions = demur("decide", "x.jsonl", "--policy", "policy.json", "--json").json["decisions"]
    assert decisions[0]["answer"] == "5"
    assert decisions[0]["confidence"] == 0.5


def test_a_column_of_the_file_breaks_ties(demur, tmp_path):
    records = [
        {"id": f"q{i}", "gold": "a" if i > 9 else "b", "margin": i, "paths": [{"answer": "a"}]} for i in range(60)
    ]
    write(tmp_path / "c.jsonl", *records)
    demur("calibrate", "c.jsonl", "--alpha", 0.1, "--tie-break", "column:margin", "-o", "policy.json")
    answered = [d["id"] for d in demur("decide", "c.jsonl", "--policy", "policy.json", "--json").json["decisions"]
                if d["decision"] == "answer"]  # fmt: skip
    assert answered == [f"q{i}" for i in range(5, 60)]  # k = 6: the sixth largest wrong margin is 4


@pytest.mark.parametrize("guarantee", [["--delta", "0.1"], ["--smoothed", "--seed", "5"], []])
def test_each_guarantee_goes_through_the_files(demur, pools, guarantee):
    assert demur("calibrate", pools, "--score", "simulated", "--alpha", 0.1, "-o", "p.json", *guarantee).code == 0
    assert demur("decide", pools, "--policy", "p.json").code == 0


def test_help_has_runnable_examples_and_the_version_is_there(demur):
    for verb in ("simulate", "calibrate", "evaluate", "decide"):
        ran = demur(verb, "--help")
        assert ran.code == 0
        assert f"demur {verb}" in ran.out
    assert demur("--version").out.startswith("demur 0.")
    assert "calibrate" in demur("--help").out


def test_duplicates_and_clusters_are_mentioned_in_an_audit(demur, tmp_path):
    def records(name, clusters):
        return [
            {"id": f"{name}{i}", "cluster": f"{clusters}{i // 2}", "gold": "a", "paths": [{"answer": "a"}]}
            for i in range(60)
        ]

    write(tmp_path / "a.jsonl", *records("a", "c"))
    write(tmp_path / "b.jsonl", *records("b", "d"))
    write(tmp_path / "same.jsonl", *records("s", "c"))
    demur("calibrate", "a.jsonl", "--alpha", 0.1, "-o", "policy.json")
    assert "30 more share a cluster" in demur("audit", "b.jsonl", "--policy", "policy.json").out
    assert demur("audit", "b.jsonl", "--policy", "policy.json", "--json").json["duplicates"] == 30
    demur("calibrate", "a.jsonl", "--alpha", 0.1, "--hold-out", 0.5, "-o", "half.json")
    audit = demur("audit", "a.jsonl", "--policy", "half.json", "--json").json
    assert (audit["left_out"], audit["n"], audit["duplicates"]) == (30, 15, 15)  # clusters were split whole
    leaked = demur("audit", "same.jsonl", "--policy", "policy.json")
    assert leaked.code == 2
    assert "60 of 60 problems calibrated this policy" in leaked.err


def test_a_ragged_file_can_be_held_out_and_audited_whatever_the_seed(demur, tmp_path):
    records = [{"id": f"q{i}", "gold": "a", "paths": [{"answer": "a"}] * (3 if i else 2)} for i in range(60)]
    write(tmp_path / "ragged.jsonl", *records)
    for seed in range(6):
        demur("calibrate", "ragged.jsonl", "--alpha", 0.1, "--hold-out", 0.5, "--seed", seed, "-o", "policy.json")
        assert demur("audit", "ragged.jsonl", "--policy", "policy.json").code == 0


def test_what_breaks_ties_is_shown(demur, pools):
    demur("calibrate", pools, "--score", "simulated", "--tie-break", "mean_score", "--alpha", 0.1, "-o", "policy.json")
    facts = demur("decide", pools, "--policy", "policy.json", "--json").json["decisions"][0]
    assert len(facts["threshold_key"]) == 3
    assert list(facts["key"]) == ["share", "mean_score", "jitter"]
    assert "in mean score" in demur("decide", pools, "--policy", "policy.json").out


def test_suspicious_spellings_are_mentioned(demur, tmp_path):
    write(tmp_path / "n.jsonl", *({"id": f"q{i}", "gold": "a", "paths": [{"answer": "None"}]} for i in range(30)))
    ran = demur("calibrate", "n.jsonl", "--alpha", 0.1, "--missing", "nothing")
    assert "note: 30 paths answer 'None'" in ran.err
    assert "note: no path answers 'nothing'" in ran.err
