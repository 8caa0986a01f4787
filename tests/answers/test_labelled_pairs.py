"""Labelled pairs from public graders' own test suites: more of them right than math-verify gets, on the same rows."""

from __future__ import annotations

import json
import logging

import pytest

from demur import answers


@pytest.mark.real_data
def test_more_labels_right_than_math_verify_and_at_least_nine_in_ten(recorded_pools):
    from math_verify import parse, verify

    with open(recorded_pools.parent / "answer_pairs.jsonl", encoding="utf-8") as stream:
        rows = [row for row in map(json.loads, stream) if "a_ans" in row]
    logging.disable(logging.CRITICAL)
    try:
        ours = sum(answers.equivalent(row["a_ans"], row["b_ans"]) == row["equal"] for row in rows)
        theirs = 0
        for row in rows:
            a, b = (parse(f"${row[side]}$") for side in ("a_ans", "b_ans"))
            theirs += bool(verify(a, b) or verify(b, a)) == row["equal"]
    finally:
        logging.disable(logging.NOTSET)
    assert ours / len(rows) >= 0.9
    assert ours > theirs
