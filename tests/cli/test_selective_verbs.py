"""`calibrate --selective`, `decide --fdr`, and `audit` of a promise about answers."""

from __future__ import annotations

import pytest


@pytest.fixture
def policy(demur, pools):
    ran = demur("calibrate", pools, "--selective", "--alpha", "0.1", "--delta", "0.1", "-o", "policy.json")
    assert (ran.code, ran.err.count("error")) == (0, 0)
    return "policy.json"


@pytest.fixture
def new(demur, tmp_path):
    """Pools like those that calibrated, and others."""
    assert demur("simulate", "-o", "new.jsonl", "-n", 300, "-m", 8, "--seed", 4).code == 0
    renamed = (tmp_path / "new.jsonl").read_text().replace('"id": "', '"id": "new-').replace('"id":"', '"id":"new-')
    (tmp_path / "new.jsonl").write_text(renamed)
    return tmp_path / "new.jsonl"


def test_calibrate_says_what_is_promised_of_the_answers_and_what_it_costs(demur, pools):
    ran = demur("calibrate", pools, "--selective", "--alpha", "0.1", "--delta", "0.1")
    assert "of the answers given to new questions like them at most a share 0.1 is wrong" in ran.out
    assert "It is paid for with answers" in ran.out
    assert "nor that a share 1 − alpha of the answers given are" not in ran.out
    facts = demur("calibrate", pools, "--selective", "--alpha", "0.1", "--delta", "0.1", "--json").json
    (point,) = facts["points"]
    assert (point["guarantee"], point["delta"], point["among_answers"]) == ("selective", 0.1, True)
    marginal = demur("calibrate", pools, "--alpha", "0.1", "--json").json["points"][0]
    assert 0 < point["forecast"]["answered"] < marginal["forecast"]["answered"]


def test_it_needs_a_delta_and_no_other_guarantee(demur, pools):
    ran = demur("calibrate", pools, "--selective", "--alpha", "0.1")
    assert (ran.code, ran.out) == (2, "")
    assert "--delta 0.1" in ran.err
    ran = demur("calibrate", pools, "--selective", "--smoothed", "--delta", "0.1")
    assert "--selective and --smoothed are two guarantees; choose one" in ran.err
    ran = demur("calibrate", pools, "--selective", "--delta", "1.5")
    assert "delta must lie strictly between 0 and 1, got 1.5" in ran.err


def test_errors_that_are_too_many_everywhere_are_told_with_a_way_out(demur, pools):
    ran = demur("calibrate", pools, "--selective", "--alpha", "0.012", "--delta", "0.1")
    assert ran.code == 0
    assert "never answers" in ran.out
    assert "At no threshold are errors few enough" in ran.out


def test_decide_takes_a_file_as_one_batch(demur, policy, new):
    ran = demur("decide", new, "--policy", policy, "--fdr", "0.1", "-o", "answers.jsonl")
    assert ran.code == 0
    assert "Selection at fdr 0.1: of this batch, p-values up to" in ran.out
    assert "Of the answers given in this batch of 300 questions" in ran.out
    facts = demur("decide", new, "--policy", policy, "--fdr", "0.1", "--json").json
    assert (facts["fdr"], facts["guarantee"]) == (0.1, "batch_selection")
    answered = [line for line in facts["decisions"] if line["decision"] == "answer"]
    assert facts["n_answered"] == len(answered) > 0
    assert all(line["p_value"] <= facts["cut_off"] for line in answered)
    assert "not for one question" in facts["promise"]
    single = demur("decide", new, "--policy", policy, "--json").json
    assert single["n_answered"] <= facts["n_answered"]  # the price of a promise for all but a share delta


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--fdr", "0"], "fdr must lie strictly between 0 and 1, got 0"),
        (["--fdr", "1.5"], "fdr must lie strictly between 0 and 1, got 1.5"),
        (["--fdr", "0.1", "--alpha", "0.1"], "leave --alpha and --guarantee out"),
        (["--fdr", "0.1", "--guarantee", "selective"], "leave --alpha and --guarantee out"),
    ],
)
def test_decide_refuses_what_is_no_level_and_what_is_another_promise(demur, policy, new, flags, told):
    ran = demur("decide", new, "--policy", policy, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_decide_refuses_a_batch_with_calibration_problems(demur, policy, pools):
    ran = demur("decide", pools, "--policy", policy, "--fdr", "0.1")
    assert (ran.code, ran.out) == (2, "")
    assert "400 of 400 problems calibrated this policy" in ran.err


def test_an_audit_judges_the_answers(demur, policy, new):
    ran = demur("audit", new, "--policy", policy)
    assert ran.code == 0
    assert "Consistent with the promise" in ran.out
    assert "answers (" in ran.out
    ran = demur("audit", policy, "--errors", "13", "--of", "500")
    assert (ran.code, ran.out) == (2, "")
    assert "--answered" in ran.err
    ran = demur("audit", policy, "--errors", "13", "--of", "500", "--answered", "200")
    assert "13 wrong answers among 200 answers (0.065 against alpha = 0.1" in ran.out
    ran = demur("audit", policy, "--errors", "60", "--of", "500", "--answered", "200")
    assert "Not consistent with the promise: 60 wrong answers among 200 answers" in ran.out
    for flags in (["--of", "500", "--errors", "3", "--answered", "501"], ["--policy", policy, "--answered", "3"]):
        assert "--answered goes with --errors and --of" in demur("audit", policy, *flags).err
    assert "got 501 of 500" in demur("audit", policy, "--of", "500", "--errors", "3", "--answered", "501").err
