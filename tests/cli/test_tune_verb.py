"""`demur tune`, `calibrate --tuned`, `--chosen-from` and `--simultaneous`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def tuned(demur, pools):
    assert demur("tune", pools, "--alpha", "0.1", "-o", "tuned.json").code == 0
    return "tuned.json"


def test_tune_then_calibrate_just_works_on_a_run(demur, pools):
    assert demur("import", pools, "-o", "run.db").code == 0
    ran = demur("tune", "run.db", "--alpha", "0.1", "-o", "tuned.json")
    assert (ran.code, "error" in ran.err) == (0, False)
    assert "ways to vote were ranked by the labels of 120 questions" in ran.out
    assert "to calibrate on the same ones would break the promise" in ran.out
    assert "±" in ran.out
    ran = demur("calibrate", "run.db", "--tuned", "tuned.json", "--alpha", "0.1", "-o", "policy.json")
    assert ran.code == 0, ran.err
    assert "120 problems that the way to vote was chosen on are left out" in ran.out
    assert "280 calibration questions" in ran.out
    ran = demur("audit", "run.db", "--policy", "policy.json")
    assert (ran.code, "calibrated this policy" in ran.err) == (2, True)


def test_a_run_is_tuned_on_all_that_its_file_holds(demur, tmp_path):
    """Sources and texts too: two of eight models are good."""
    rng, skill = np.random.default_rng(0), np.array([0.9, 0.85, 0.4, 0.4, 0.35, 0.35, 0.3, 0.3])
    with (tmp_path / "models.jsonl").open("w") as lines:
        for row in range(500):
            right = rng.random(8) < 1 / (1 + np.exp(-np.log(skill / (1 - skill)) - rng.normal()))
            answers = np.where(right, row, row + rng.integers(1, 4, 8)).tolist()
            paths = [{"answer": str(one), "text": f"So {one}.", "src": f"m{at}"} for at, one in enumerate(answers)]
            print(json.dumps({"id": f"p{row}", "question": f"{row}?", "gold": str(row), "paths": paths}), file=lines)
    assert demur("import", "models.jsonl", "-o", "run.db").code == 0
    facts = {name: demur("tune", name, "--alpha", "0.1", "--json").json for name in ("models.jsonl", "run.db")}
    assert facts["run.db"]["rows"] == facts["models.jsonl"]["rows"]
    assert facts["run.db"]["chosen"] == "learned key of majority vote"
    assert demur("tune", "run.db", "--alpha", "0.1", "-o", "tuned.json").code == 0
    points = [
        demur("calibrate", name, *how, "--alpha", "0.1", "--json").json["points"]
        for how in (["--tuned", "tuned.json"], ["--tie-break", "mean_score:length"])
        for name in ("models.jsonl", "run.db")
    ]
    assert (points[0], points[2]) == (points[1], points[3])


def test_text_and_json_tell_the_same(demur, pools, tuned):
    facts = demur("tune", pools, "--alpha", "0.1", "--json").json
    assert (facts["n"], facts["n_cal"], facts["alphas"]) == (120, 280, [0.1])
    (chosen,) = [row for row in facts["rows"] if row["chosen"]]
    assert chosen["name"] == facts["chosen"]
    assert json.loads(Path(tuned).read_text())["pipeline"] == facts["pipeline"]
    calibrated = demur("calibrate", pools, "--tuned", tuned, "--alpha", "0.1", "--json").json
    assert (calibrated["tuned_on"], calibrated["n"]) == (120, 280)
    assert calibrated["pipeline"] == facts["pipeline"]


def test_what_is_kept_back_is_kept_from_the_rest(demur, pools, tuned):
    ran = demur(
        "calibrate", pools, "--tuned", tuned, "--alpha", "0.1", "--hold-out", "0.5", "-o", "policy.json", "--json"
    )
    assert (ran.json["n"], ran.json["held_out"]) == (140, 140)
    assert demur("audit", pools, "--policy", "policy.json", "--json").json["n"] == 140


def test_the_same_seed_tunes_on_the_same_problems(demur, pools, tuned):
    demur("tune", pools, "--alpha", "0.1", "-o", "again.json")
    demur("tune", pools, "--alpha", "0.1", "--seed", "1", "-o", "other.json")
    ids = [json.loads(Path(name).read_text())["tuned_on"]["ids"] for name in (tuned, "again.json", "other.json")]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--score", "simulated"], "--score and --tuned exclude each other"),
        (["--weight", "linear", "--task", "math"], "--weight, --task and --tuned exclude each other"),
    ],
)
def test_flags_do_not_change_what_was_tuned(demur, pools, tuned, flags, said):
    ran = demur("calibrate", pools, "--tuned", tuned, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--share", "0"], "share must lie strictly between 0 and 1"),
        (["--share", "1.2"], "share must lie strictly between 0 and 1"),
        (["--alpha", "0.001"], "too few to split: 120 to choose on"),
        (["--alpha", "0.001"], "--chosen-from J"),
        (["--score", "absent"], "no pool has the score 'absent'"),
        (["--weight", "cubic"], "unknown weight 'cubic'"),
    ],
)
def test_bad_input_is_one_line_that_names_it(demur, pools, flags, said):
    ran = demur("tune", pools, *flags)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


def test_a_policy_or_pools_are_no_tuned_file_and_are_not_replaced_by_one(demur, pools):
    demur("calibrate", pools, "--alpha", "0.1", "-o", "policy.json")
    assert "is not a file of a tuned vote" in demur("calibrate", pools, "--tuned", "policy.json").err
    assert "holds a policy, which a tuned vote would replace" in demur("tune", pools, "-o", "policy.json").err
    assert "is an input of this command" in demur("tune", pools, "-o", pools).err


# --- choosing on the labels that calibrate -----------------------------------------------------------------------


def test_a_choice_by_the_same_labels_is_paid_for_and_said(demur, pools):
    flags = ("calibrate", pools, "--score", "simulated", "--alpha", "0.1")
    ran = demur(*flags, "--chosen-from", "10", "-o", "policy.json")
    assert "whichever of 10 ways to vote that were fixed beforehand was chosen by the same labels" in ran.out
    assert "Choosing one of 10 ways to vote by these labels costs" in ran.out
    (point,) = demur(*flags, "--chosen-from", "10", "--json").json["points"]
    (plain,) = demur(*flags, "--json").json["points"]
    assert point["price"] == pytest.approx(plain["forecast"]["answered"] - point["forecast"]["answered"])
    assert (point["choices"], "choices" in plain, "price" in plain) == (10, False, False)
    ran = demur("decide", pools, "--policy", "policy.json", "--fdr", "0.1")
    assert "chosen from 10 by the labels that calibrated it" in ran.err
    ran = demur(*flags, "--chosen-from", "10", "--answer-sets", "0.1")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "answer sets know no correction for a choice from 10 ways" in ran.err


def test_a_choice_is_paid_for_with_labels_from_a_file_too(demur, pools):
    demur("label", pools, "--alpha", "0.1", "-o", "labels.jsonl", "--json")
    flags = ("calibrate", pools, "--label-file", "labels.jsonl", "--json")
    assert [(one["alpha"], one.get("choices")) for one in demur(*flags).json["points"]] == [(0.1, None)]
    (point,) = demur(*flags, "--chosen-from", "3", "--alpha", "0.1").json["points"]
    assert (point["alpha"], point["choices"]) == (0.1, 3)
    (point,) = demur(*flags, "--chosen-from", "3").json["points"]
    assert point["choices"] == 3


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--chosen-from", "0"], "choices must be a whole number from 1 to 1,000,000, got 0"),
        (["--chosen-from", "3", "--smoothed"], "--smoothed knows no correction for a choice"),
        (["--simultaneous"], "--simultaneous promises every alpha at once"),
        (["--simultaneous", "--delta", "1.5"], "delta must lie strictly between 0 and 1, got 1.5"),
        (["--simultaneous", "--selective", "--delta", "0.1"], "--selective and --simultaneous are two guarantees"),
    ],
)
def test_flags_about_choices_that_make_no_sense_are_refused(demur, pools, flags, said):
    ran = demur("calibrate", pools, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_any_alpha_may_be_decided_by_after_looking(demur, pools):
    ran = demur("calibrate", pools, "--simultaneous", "--delta", "0.1", "--alpha", "0.1", "-o", "policy.json")
    assert "any of these alphas" in ran.out
    assert "Choosing alpha by these labels costs" in ran.out
    facts = demur("decide", pools, "--policy", "policy.json", "--alpha", "0.17", "--json").json
    assert (facts["alpha"], facts["guarantee"]) == (0.17, "simultaneous")
    assert "at this threshold the bound is at most 0.17" in facts["promise"]
    columns = demur("calibrate", pools, "--simultaneous", "--delta", "0.1", "--json").json["bounds"]
    assert columns["answered"] == sorted(columns["answered"])
