"""Files of decisions: every row is the decision on its pool, whatever is made for many rows at once."""

from __future__ import annotations

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import demur as dm
from demur.cli import decision_files
from demur.cli.decide import decision_line
from demur.cli.decision_columns import DecisionColumns


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


WORDS = ["Zürich", "zürich", 'a "b"\\', "日本", "50%", "n/a", " ", "x\ny", "1/2", "0.5", "2", "10"]


def write_table(path, *, ragged, respelled=False, seed=1, pools=400):
    """Pools with ties, paths without an answer, and answers whose JSON needs escapes."""
    rng = np.random.default_rng(seed)
    words = WORDS if respelled else [word for word in WORDS if word not in ("zürich", "0.5")]
    columns = {"id": [], "path": [], "answer": [], "gold": [], "score.rm": []}
    for pool in range(pools):
        size = (3 if pool in (120, 121) else int(rng.choice([6, 9]))) if ragged else 6
        near = rng.choice(len(words), 3, replace=False)
        for at in range(size):
            gave = None if pool == 7 or rng.random() < 0.1 else words[near[min(int(rng.exponential(1)), 2)]]
            gave = words[near[at]] if size == 3 else gave  # of a rare size, and as confident as others
            score = None if pool == 9 else float(rng.integers(4)) if pool % 2 else float(rng.random())
            row = (f'"é{pool}"', at, gave, words[near[0]].strip() or "2", score)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def as_records(decided, names, out):
    lines = (decision_line(decision, names) for decision in decided)
    decision_files.write_decisions(lines, str(out), key=names)


@pytest.mark.parametrize(
    ("ragged", "sizes", "respelled"), [(False, [], False), (True, [], False), (True, ["--sizes-by-chance"], True)]
)
@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--score", "rm", "--drop-unscored"],
        ["--score", "rm", "--drop-unscored", "--weight", "uniform"],
        ["--score", "rm", "--drop-unscored", "--weight", "linear"],
        ["--score", "rm", "--fill-unscored", 0.5, "--normaliser", "pool_z", "--tie-break", "none"],
        ["--score", "rm", "--drop-unscored", "--delta", 0.1],
        ["--score", "rm", "--drop-unscored", "--selective", "--delta", 0.2],
        ["--chosen-from", 4, "--missing", "n/a"],
        ["--smoothed", "--seed", 3],
        ["--alpha", 0.001],
    ],
    ids=str,
)
def test_plain_decisions_are_written_by_column_as_records_would_be(
    demur, tmp_path, monkeypatch, flags, ragged, sizes, respelled
):
    monkeypatch.setattr(decision_files, "_AT_ONCE", 150)
    write_table(tmp_path / "pools.parquet", ragged=ragged, respelled=respelled)
    alpha = [] if "--alpha" in flags else ["--alpha", 0.15]
    made = demur("calibrate", "pools.parquet", *flags, *alpha, *sizes, "-o", "policy.json")
    assert made.code == 0, made
    policy = dm.Policy.load(tmp_path / "policy.json")
    decided = policy.decide_votes(policy.vote(dm.read_pools(tmp_path / "pools.parquet")).votes)
    columns = DecisionColumns.of(decided)
    assert columns is not None
    assert (len(columns.some(0, len(decided)).odd) > 1) == respelled
    for name in ("jsonl", "jsonl.gz", "parquet"):
        assert demur("decide", "pools.parquet", "--policy", "policy.json", "-o", f"found.{name}").code == 0
        as_records(decided, policy.recipe.names, tmp_path / f"expected.{name}")
    found, expected = ((tmp_path / f"{which}.jsonl").read_text() for which in ("found", "expected"))
    assert found.splitlines() == expected.splitlines()
    tables = (pyarrow.parquet.read_table(tmp_path / f"{which}.parquet") for which in ("found", "expected"))
    assert next(tables).equals(next(tables), check_metadata=True)
