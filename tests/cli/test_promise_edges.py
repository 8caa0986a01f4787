"""What the command line says where the promise has an edge: rare sizes, clusters, unscored pools, learned columns."""

from __future__ import annotations

import json
import random

import pytest

import demur as dm


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def record(row, paths=4, *, right=None, **fields):
    right = row % 5 != 0 if right is None else right
    answers = ["a" if right else "b"] * (paths - row % 2) + ["c"] * (row % 2)
    drawn = [{"answer": answer, "scores": {"s": row / 100 + place}} for place, answer in enumerate(answers)]
    return {"id": f"q{row}", "question": f"Question {row}", "gold": "a", **fields, "paths": drawn}


@pytest.fixture
def ragged(tmp_path):
    return write(tmp_path / "ragged.jsonl", [record(row, 2 if row < 4 else 4) for row in range(200)])


def test_sizes_that_are_too_rare_are_told_when_calibrating_and_counted_when_deciding(demur, ragged, tmp_path):
    ran = demur("calibrate", ragged, "--alpha", 0.3, "--alpha", 0.1, "-o", "policy.json")
    assert "Paths per pool (pools): 2 (4), 4 (196)" in ran.out
    assert "pools of 2 paths are not answered at alpha = 0.1: fewer than 9 calibrated each" in ran.out
    assert "at alpha = 0.3" not in ran.out  # which needs 3 only
    facts = demur("calibrate", ragged, "--alpha", 0.1, "--json").json
    assert facts["sizes"] == {"2": 4, "4": 196}
    new = write(tmp_path / "new.jsonl", [record(row, 2 if row % 2 else 4, right=True) for row in range(300, 310)])
    decided = demur("decide", new, "--policy", "policy.json")
    assert decided.code == 0
    assert "warning: 5 pools have 2 paths, which too few calibration pools have for alpha = 0.1" in decided.out
    assert "sample again to draw the rest" in decided.out
    told = demur("decide", new, "--policy", "policy.json", "--json").json
    assert told["of_rare_size"] == 5
    assert [line["decision"] for line in told["decisions"]][1::2] == ["abstain"] * 5


def test_sizes_may_be_declared_to_vary_by_chance(demur, ragged):
    facts = demur("calibrate", ragged, "--alpha", 0.3, "--sizes-by-chance", "-o", "policy.json", "--json").json
    assert facts["sizes_by_chance"] is True
    assert "by_size" not in facts["points"][0]
    assert dm.Policy.load("policy.json").strata.by_chance


def test_clusters_are_named_in_the_promise_and_both_rates_are_shown(demur, tmp_path):
    records = [record(row, cluster=f"c{row // 2 if row < 100 else row}") for row in range(200)]
    pools = write(tmp_path / "clustered.jsonl", records)
    ran = demur("calibrate", pools, "--alpha", 0.3, "-o", "policy.json")
    assert "150 calibration clusters (50 more share a cluster or question with one of them" in ran.out
    assert "On one question of a new cluster, exchangeable with the 150 calibration clusters" in ran.out
    assert "of all questions there" in ran.out
    point = demur("calibrate", pools, "--alpha", 0.3, "--json").json["points"][0]
    assert (
        point["per_question"]["confident_error"]
        == dm.Policy.load("policy.json").forecast_per_question().confident_error
    )
    new = [record(row, cluster=f"n{row // 2}") for row in range(400, 500)]
    audit = demur("audit", write(tmp_path / "new.jsonl", new), "--policy", "policy.json")
    assert "50 clusters the policy has not seen" in audit.out
    assert "of all 100 questions" in audit.out


def test_unscored_pools_are_left_out_by_name_counted_and_abstained_on(demur, tmp_path):
    records = [record(row) for row in range(100)]
    for row in (3, 50):
        del records[row]["paths"][1]["scores"]
    pools = write(tmp_path / "pools.jsonl", records)
    refused = demur("calibrate", pools, "--score", "s", "--alpha", 0.3)
    assert refused.code == 2
    assert "2 of 100 pools lack the score 's' in some path: 'q3', 'q50'" in refused.err
    assert "--drop-unscored" in refused.err
    assert "--fill-unscored VALUE" in refused.err
    how = ("calibrate", pools, "--score", "s", "--alpha", 0.3, "-o", "policy.json")
    assert "98 calibration questions, 2 pools left out for want of a score" in demur(*how, "--drop-unscored").out
    new = [record(row, right=True) for row in range(300, 310)]
    del new[4]["paths"][0]["scores"]["s"]
    told = demur("decide", write(tmp_path / "new.jsonl", new), "--policy", "policy.json", "--json").json
    assert told["unscored"] == 1
    assert told["decisions"][4]["decision"] == "abstain"
    assert "has no score" in told["decisions"][4]["explanation"]
    filled = demur(*how, "--fill-unscored", -1.5, "--json").json
    assert (filled["n"], filled["pipeline"]["score"]["unscored"]) == (100, -1.5)
    assert "two ways" in demur(*how, "--fill-unscored", 0, "--drop-unscored").err


def test_problems_that_a_learned_column_was_fitted_on_may_not_calibrate(demur, tmp_path):
    pools = write(tmp_path / "pools.jsonl", [record(row, learned=row / 7) for row in range(60)])
    ids = tmp_path / "fitted.txt"
    ids.write_text("q3\n\nq999\n")
    how = ("calibrate", pools, "--tie-break", "column:learned", "--alpha", 0.3)
    assert demur(*how).code == 0
    for verb in (how, ("evaluate", *how[1:]), ("report", *how[1:])):
        ran = demur(*verb, "--fitted-on", ids)
        assert ran.code == 2
        assert "fitted on 1 of the calibration problems (the first is 'q3')" in ran.err
    ids.write_text('{"id": "t1"}\n{"id": 7}\n')
    assert demur(*how, "--fitted-on", ids).code == 0
    ids.write_text('{"name": "t1"}\n')
    assert "cannot read ids of problems" in demur(*how, "--fitted-on", ids).err


@pytest.mark.parametrize("alpha", ["1/0", "x", "1e-99999999", "0x1p-3", "-0.1"])
def test_an_alpha_is_a_number_or_a_fraction(demur, ragged, alpha):
    ran = demur("calibrate", ragged, "--alpha", alpha)
    assert ran.code == 2
    assert "alpha" in ran.err


def test_a_third_is_a_third(demur, ragged):
    demur("calibrate", ragged, "--alpha", "1/3", "-o", "policy.json")
    assert dm.Policy.load("policy.json").point().guarantee.level.denominator == 3
    for verb in (("decide", ragged), ("evaluate", ragged)):
        flags = ("--policy", "policy.json") if verb[0] == "decide" else ()
        assert "1/3" in demur(*verb, *flags, "--alpha", "1/3").out or verb[0] == "evaluate"


def _sized_pools(name, sizes, first=0):
    """Pools of some sizes, with gold, of which most vote right."""
    rng = random.Random(len(sizes) + first)
    with open(name, "w", encoding="utf-8") as file:
        for row, size in enumerate(sizes, start=first):
            paths = [{"answer": "a" if rng.random() < 0.8 else "b"} for _ in range(size)]
            record = {"id": f"q{row}", "question": f"Number {row} of all?", "gold": "a", "paths": paths}
            file.write(json.dumps(record) + "\n")
    return name


def test_sizes_that_were_declared_by_chance_and_are_not_are_warned_about(demur):
    _sized_pools("calibration.jsonl", [3, 9] * 100)
    _sized_pools("small.jsonl", [3] * 120, first=1000)
    _sized_pools("same.jsonl", [3, 9] * 60, first=2000)
    made = demur("calibrate", "calibration.jsonl", "--alpha", 0.1, "--sizes-by-chance", "-o", "p.json")
    assert made.code == 0, made.err
    for verb in ("decide", "audit"):
        told = demur(verb, "small.jsonl", "--policy", "p.json")
        assert (told.code, told.out.count("warning: pool sizes differ from calibration's")) == (0, 1), told.err
        assert "100.0% of these 120 pools have 3 paths, 50.0% in calibration" in told.out
        assert "pool sizes" not in demur(verb, "same.jsonl", "--policy", "p.json").out
        known = demur(verb, "small.jsonl", "--policy", "p.json", "--json").json
        assert known["size_shift"].startswith("pool sizes differ")
        assert "size_shift" not in demur(verb, "same.jsonl", "--policy", "p.json", "--json").json
