"""Promises per group on the command line: `--by-group`, `--group-field`, `--small-groups`, and a row per group."""

from __future__ import annotations

import json

import pytest

NAMES = ["algebra", "geometry", "algebra", ["geometry", "spoken"]]


def in_groups(file, target, field="category", prefix=""):
    """The same pools, with groups in a field of their own."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    pools = [line for line in lines if "paths" in line]
    for row, line in enumerate(pools):
        line[field] = NAMES[row % 4] if row % 50 else "rare"
        line["id"] = f"{prefix}{line['id']}"
    target.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return target


@pytest.fixture
def grouped(pools, tmp_path):
    return in_groups(pools, tmp_path / "grouped.jsonl")


HOW = ("--by-group", "--group-field", "category", "--alpha", "0.1")


def test_a_policy_per_group_is_calibrated_decides_and_is_audited(demur, grouped, tmp_path):
    ran = demur("calibrate", grouped, *HOW, "--hold-out", "0.5", "-o", "policy.json")
    assert ran.code == 0
    assert "By group, alpha 0.1" in ran.out
    assert "For each group of at least 9 calibration questions by itself" in ran.out
    assert "questions of the groups rare" in ran.out + ran.err
    facts = demur("calibrate", grouped, *HOW, "--json").json
    (point,) = facts["points"]
    assert point["guarantee"] == "grouped_marginal"
    assert [row["group"] for row in point["groups"]] == ["algebra", "geometry", "rare", "spoken"]
    assert facts["pipeline"]["answers"]["group_field"] == "category"
    audit = demur("audit", grouped, "--policy", "policy.json", "--json").json["points"][0]
    assert [row["group"] for row in audit["groups"]] == ["algebra", "geometry", "spoken", "(others)"]
    assert "usual, at most (95 %)" in demur("audit", grouped, "--policy", "policy.json").out
    decided = demur("decide", grouped, "--policy", "policy.json", "--json").json
    assert set(decided["by_group"]) == {"algebra", "geometry", "spoken"}
    assert decided["of_small_group"] == 8
    assert {tuple(line["groups"]) for line in decided["decisions"]} >= {("algebra",), ("geometry", "spoken")}
    refused = demur("audit", "policy.json", "--errors", 3, "--of", 90)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "a threshold for each group" in refused.err


def test_small_groups_take_the_threshold_of_all_only_if_that_is_said(demur, grouped):
    (point,) = demur("calibrate", grouped, *HOW, "--small-groups", "pooled", "--json").json["points"]
    assert point["fallback"] == "pooled"
    assert [row["stand_in"] for row in point["groups"]] == [False, False, True, False]
    assert "not of them by themselves" in point["promise"]


def test_splits_are_measured_group_by_group(demur, grouped):
    ran = demur("evaluate", grouped, *HOW, "--splits", 5)
    assert ran.code == 0
    assert "By group, mean ± standard error over splits" in ran.out
    assert "With abstention, one threshold for all groups" in ran.out
    assert "one threshold for all groups" not in demur("evaluate", grouped, "--alpha", "0.1", "--splits", 5).out
    assert "there is no exact law here" in ran.out  # some questions are of two groups
    groups = demur("evaluate", grouped, *HOW, "--splits", 5, "--json").json["groups"]
    assert {row["guarantee"] for row in groups} == {"marginal", "grouped_marginal"}


def test_labels_from_the_top_are_asked_for_every_group(demur, grouped):
    asked = demur("label", grouped, *HOW, "-o", "labels.jsonl", "--json").json
    assert [point["guarantee"] for point in asked["points"]] == ["grouped_marginal"]
    plain = demur("label", grouped, "--group-field", "category", "--alpha", "0.1", "-o", "labels.jsonl", "--json")
    assert plain.code == 2
    assert "was begun for alpha = 0.1 (grouped marginal)" in plain.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--by-group"], "a promise per group needs the groups of the questions, and none has one; name the field"),
        (["--by-group", "--group-field", "categories"], "did you mean 'category'?"),
        (["--small-groups", "pooled"], "give --by-group with it"),
        ([*HOW, "--small-groups", "guess"], "--small-groups is one of abstain, pooled, got 'guess'"),
        ([*HOW, "--selective", "--delta", "0.1"], "a larger threshold need not have a smaller rate"),
    ],
)
def test_what_cannot_be_promised_is_one_line(demur, grouped, flags, told):
    ran = demur("calibrate", grouped, *flags)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert told in ran.err


def test_new_pools_without_groups_are_refused_by_a_promise_per_group(demur, grouped, pools, tmp_path):
    assert demur("calibrate", grouped, *HOW, "-o", "policy.json").code == 0
    ran = demur("decide", pools, "--policy", "policy.json")
    assert ran.code == 2
    assert "these votes have none" in ran.err
