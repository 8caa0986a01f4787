"""`demur import` of several files at once, and of tables at addresses."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def halves(demur, pools):
    """The same pools in two files."""
    lines = pools.read_text().splitlines(keepends=True)
    Path("a.jsonl").write_text("".join(lines[:150]))
    Path("b.jsonl").write_text("".join(lines[150:]))
    return "a.jsonl", "b.jsonl"


def test_several_files_are_told_of_in_one_json_object(demur, halves):
    told = demur("import", *halves, "-o", "run.db", "--json").json
    counts = {"new_paths": 150 * 8, "problems": 150, "scores": ["simulated"]}
    assert told == {
        "run": "run",
        "files": [
            {"file": "a.jsonl", **counts},
            {"file": "b.jsonl", **counts, "new_paths": 250 * 8, "problems": 250},
        ],
    }
    assert demur("import", "a.jsonl", "-o", "run.db", "--json").json == {"run": "run", **counts, "new_paths": 0}


def test_a_table_at_an_address_is_imported_like_the_file(demur, pools, tmp_path):
    pytest.importorskip("pyarrow", reason="tables need the extra parquet")
    Path("shards").mkdir()
    assert demur("answers", pools, "-o", "shards/one.parquet").code == 0
    for number, place in enumerate(("shards/one.parquet", "shards")):
        ran = demur("import", f"file://{tmp_path}/{place}", "-o", f"{number}.db", "--json")
        assert ran.json == {"run": "run", "problems": 400, "new_paths": 3200, "scores": ["simulated"]}, ran.err
    ran = demur("import", f"file://{tmp_path}/none.parquet", "-o", "run.db")
    assert (ran.code, ran.out) == (2, "")
    assert f"there is no file file://{tmp_path}/none.parquet" in ran.err
