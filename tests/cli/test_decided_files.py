"""Files of decisions: every row is the decision on its pool, whatever is made for many rows at once."""

from __future__ import annotations

import json

import pyarrow.parquet

import demur as dm
from demur.cli.decide import decision_line


def test_rows_of_a_file_are_the_decisions_on_single_pools(demur, tmp_path):
    demur("simulate", "-o", "pools.jsonl", "-n", 300, "-m", 6, "--seed", 3)
    demur("answers", "pools.jsonl", "-o", "pools.parquet")
    demur("calibrate", "pools.parquet", "--score", "simulated", "--alpha", 0.2, "-o", "policy.json")
    policy = dm.Policy.load(tmp_path / "policy.json")
    decided = policy.decide_votes(policy.vote(dm.read_pools(tmp_path / "pools.parquet")).votes)
    assert list(decided) == [decided[row] for row in range(300)]
    expected = [decision_line(decided[row], policy.recipe.names) for row in range(300)]
    for out in ("decided.jsonl", "decided.parquet"):
        assert demur("decide", "pools.parquet", "--policy", "policy.json", "-o", out).code == 0
    lines = [json.loads(line) for line in (tmp_path / "decided.jsonl").read_text().splitlines()]
    assert lines == [
        json.loads(json.dumps(line).replace("-Infinity", "null").replace("Infinity", "null")) for line in expected
    ]
    rows = pyarrow.parquet.read_table(tmp_path / "decided.parquet").to_pylist()
    for row, line in zip(rows, expected, strict=True):
        assert (row["support"], row["answer_set"]) == (json.dumps(line["support"]), None)
        for name in ("id", "decision", "answer", "confidence", "p_value", "without_answer", "explanation"):
            assert row[name] == line[name]
        assert row["threshold_key"] == list(line["threshold_key"])
        assert row["key.share"] == line["key"]["share"]
