"""Labelled pairs from public graders' own test suites: more of them right than math-verify gets, on the same rows."""

from __future__ import annotations

import json

import pytest

from demur import answers


@pytest.mark.real_data
def test_more_labels_right_than_math_verify_and_at_least_92_in_100(recorded_pools):
    with open(recorded_pools.parent / "answer_pairs.jsonl", encoding="utf-8") as stream:
        rows = [row for row in map(json.loads, stream) if "a_ans" in row]
    ours = sum(answers.equivalent(row["a_ans"], row["b_ans"]) == row["equal"] for row in rows)
    with answers.SlowPath(seconds=10) as math_verify:  # in a child that can be killed: a pair may take it for ever
        theirs = sum(math_verify.same(row["a_ans"], row["b_ans"]) == row["equal"] for row in rows)
    assert ours / len(rows) >= 0.92
    assert ours > theirs
