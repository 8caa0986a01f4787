"""`demur plan`: from nothing, from a guess, from a pilot; text and JSON say the same; what is refused."""

from __future__ import annotations

import json

import pytest

import demur as dm


def test_from_alpha_alone(demur):
    ran = demur("plan", "--alpha", 0.05, "--delta", 0.1)
    assert (ran.code, ran.err) == (0, "")
    assert "Planned from alpha alone." in ran.out
    assert "alpha = 0.05 needs 19 labels (marginal)" in ran.out
    assert "alpha = 0.05 needs 45 labels (high probability 0.1)" in ran.out
    assert "answered" not in ran.out.split("What labels will bring")[1].splitlines()[2]
    facts = demur("plan", "--alpha", 0.05, "--delta", 0.1, "--json").json
    assert facts["source"] == "nothing"
    assert facts["feasibility"] == []
    assert [row["n"] for row in facts["rows"][:5]] == [19, 99, 199, 499, 999]
    assert facts["rows"][0]["answered"] is None
    assert facts["rows"][-1]["delta"] == 0.1


def test_from_a_guess(demur):
    ran = demur("plan", "--accuracy", 0.8, "-m", 8)
    assert ran.code == 0
    assert ran.out.startswith("A guess: simulated votes of 8 paths, 80.0 % of them right; ")
    assert "Yields are a guess" in ran.out
    facts = demur("plan", "--accuracy", 0.8, "-m", 8, "--json").json
    assert (facts["source"], facts["accuracy"], facts["paths"]) == ("guess", 0.8, 8)
    assert facts["feasibility"][0]["vote_accuracy"]["estimate"] == pytest.approx(0.8, abs=0.02)
    assert all(row["standard_error"] is None for row in facts["rows"])


def test_from_a_pilot_the_command_says_what_python_says(demur, pools):
    flags = ["--score", "simulated", "--tie-break", "mean_score", "--alpha", 0.05, "--alpha", 0.1, "--delta", 0.1]
    ran, facts = demur("plan", pools, *flags), demur("plan", pools, *flags, "--json").json
    voted = dm.vote_pools(
        dm.read_pools(pools),
        dm.FieldChoice(score="simulated"),
        dm.read_pools(pools).recipe("simulated", tie_break="mean_score"),
    )
    planned = dm.plan(voted, alpha=[0.05, 0.1], delta=0.1)
    assert facts["rows"] == planned.document()["rows"]
    assert facts["pilot"] == 400
    assert "Planned from a pilot of 400 labelled questions." in ran.out
    for row in planned.rows:
        assert f"{100 * row.expected.answered:.1f} % ± {100 * row.expected.answered_sd:.1f}" in ran.out
        assert f"{row.expected.labels:.0f} ± {row.expected.labels_sd:.0f}" in ran.out
    assert "may not calibrate as well" in ran.out
    assert ran.out.count("│█") >= len(planned.rows) - 2  # a bar each


def test_a_run_is_a_pilot_too(demur, pools):
    assert demur("import", pools, "-o", "run.db").code == 0
    facts = demur("plan", "run.db", "--score", "simulated", "--json").json
    assert facts["rows"] == demur("plan", pools, "--score", "simulated", "--json").json["rows"]


def test_sizes_of_ones_own(demur, pools):
    facts = demur("plan", pools, "--n", 200, "--n", 50, "--smoothed", "--json").json
    assert [(row["guarantee"], row["n"]) for row in facts["rows"]] == [
        ("marginal", 50),
        ("marginal", 200),
        ("smoothed", 50),
        ("smoothed", 200),
    ]
    assert [row["friendly"] for row in facts["rows"]] == [False, False, True, True]


def test_ties_that_leave_no_threshold_are_named_with_a_flag_to_try(demur, tmp_path):
    twice = [{"answer": "1"}, {"answer": "1"}]
    pools = [{"id": str(n), "question": f"Q{n}?", "gold": str(int(n % 5 > 0)), "paths": twice} for n in range(60)]
    lines = [json.dumps(pool) for pool in pools]
    (tmp_path / "sure.jsonl").write_text("\n".join(lines))
    assert "no threshold can answer" not in demur("plan", "sure.jsonl", "--alpha", 0.1).out
    ran = demur("plan", "sure.jsonl", "--alpha", 0.1, "--tie-break", "none")
    assert "20.0% unanimous and wrong" in ran.out
    assert "no threshold can answer" in ran.out
    assert "What to change: break ties" in ran.out
    assert "(without --tie-break none)" in ran.out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--alpha", 0], "alpha must lie strictly between 0 and 1, got 0"),
        (["--alpha", 1], "alpha must lie strictly between 0 and 1, got 1"),
        (["--alpha", "x"], "'x' is neither a number nor a fraction"),
        (["--delta", 1.5], "delta must lie strictly between 0 and 1, got 1.5"),
        (["--accuracy", 1.2], "accuracy must lie strictly between 0 and 1, got 1.2; guess which share"),
        (["--accuracy", 0], "accuracy must lie strictly between 0 and 1, got 0;"),
        (["--accuracy", "nan"], "accuracy must lie strictly between 0 and 1, got nan"),
        (["--accuracy", 0.8, "--paths", 0], "n_paths must be at least 1, got 0; give --paths"),
        (["--n", 0], "n must be at least 1, got 0"),
        (["--n", -5], "n must be at least 1, got -5"),
        (["--score", "judge"], "--score: said of pools, and none are given; name them: demur plan POOLS"),
        (["--tie-break", "jitter:0", "--partial"], "--tie-break, --partial: said of pools, and none are given"),
        (["--paths", 8], "--paths 8 is about a guess; give --accuracy too"),
        (["--separation", 1.5], "--separation 1.5 is about a guess; give --accuracy too"),
        (["pools.jsonl", "--separation", 1], "--separation is a guess, and pools.jsonl is a pilot that tells"),
        (["--delta", 0.1, "--smoothed"], "--delta and --smoothed are two guarantees"),
        (["pools.jsonl", "--accuracy", 0.8], "--accuracy is a guess, and pools.jsonl is a pilot that tells"),
        (["pools.jsonl", "--alpha", 0.001], "a pilot of 400 labelled votes is too small to plan alpha = 0.001: it "
         "takes 1000; label more, raise --alpha, or plan without a pilot by a guessed --accuracy"),
        (["nothing.jsonl"], "nothing.jsonl"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_that_names_the_value_and_the_way_out(demur, pools, flags, said):
    ran = demur("plan", *flags)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert said in ran.err
