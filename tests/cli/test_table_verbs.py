"""Verbs on folders of Parquet files: the figures of the same pools as JSON lines, and tables out."""

from __future__ import annotations

import json

import pyarrow.parquet
import pytest

import demur as dm
from demur.pools.parquet import write_parquet
from demur.pools.provenance import Provenance


@pytest.fixture
def shards(demur, pools):
    """The pools of `pools.jsonl` in two files."""
    from pathlib import Path

    read = list(dm.read_pools("pools.jsonl").pools)
    Path("shards").mkdir()
    for number, part in enumerate((read[:150], read[150:])):
        write_parquet(part, f"shards/part-{number}.parquet")
    return "shards"


def test_every_verb_that_reads_pools_reads_a_folder_with_the_same_figures(demur, shards):
    verbs = [
        ("calibrate", "{}", "--score", "simulated", "--alpha", 0.1, "--hold-out", 0.5, "-o", "policy.json", "--json"),
        ("evaluate", "{}", "--score", "simulated", "--alpha", 0.1, "--splits", 20, "--json"),
        ("audit", "{}", "--policy", "policy.json", "--json"),
        ("decide", "{}", "--policy", "policy.json", "--json"),
        ("score", "{}", "--list", "--json"),
    ]
    for verb in verbs:
        ran = [demur(*(place if part == "{}" else part for part in verb)) for place in ("pools.jsonl", shards)]
        assert [one.code for one in ran] == [0, 0], ran[1].err
        assert ran[0].json == ran[1].json, verb[0]
    ran = demur("report", shards, "--score", "simulated", "--alpha", 0.1, "-o", "page.html")
    assert ran.code == 0, ran.err


def test_decisions_as_a_table_are_those_of_the_lines(demur, shards):
    assert demur("calibrate", shards, "--score", "simulated", "--alpha", 0.1, "-o", "policy.json").code == 0
    for name in ("decisions.jsonl", "decisions.parquet"):
        assert demur("decide", shards, "--policy", "policy.json", "-o", name).code == 0
    with open("decisions.jsonl", encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream]
    rows = pyarrow.parquet.read_table("decisions.parquet").to_pylist()
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        for name in ("id", "decision", "answer", "confidence", "p_value", "alpha", "n_paths", "threshold_key"):
            assert row[name] == line[name], name
        assert json.loads(row["support"]) == line["support"]
        assert json.loads(row["shares"]) == line["shares"]
        assert {name: row[f"key.{name}"] for name in line["key"]} == line["key"]
    assert demur("decide", shards, "--policy", "policy.json", "-o", "decisions.parquet").code == 0
    over_pools = demur("decide", "shards/part-1.parquet", "--policy", "policy.json", "-o", "shards/part-0.parquet")
    assert over_pools.code == 2
    assert "holds a Parquet file, which a table of decisions would replace" in over_pools.err
    as_pools = demur("calibrate", "decisions.parquet", "--alpha", 0.1)
    assert as_pools.code == 2
    assert "expected an object of the format 'demur-pools'" in as_pools.err
    refused = demur("decide", shards, "--policy", "policy.json", "-o", "policy.json")
    assert refused.code == 2
    assert "is an input of this command" in refused.err


def test_answers_writes_keys_under_the_version_and_makes_them_again_on_request(demur, shards):
    assert demur("answers", shards, "-o", "keyed.parquet").code == 0
    table = pyarrow.parquet.ParquetFile("keyed.parquet")
    known = json.loads(table.metadata.metadata[b"demur"])
    assert known["keys"]["relation"] == "by-task(auto@2)"
    assert "key" in table.schema_arrow.names
    told = [demur("calibrate", place, "--alpha", 0.1, "--json").json for place in (shards, "keyed.parquet")]
    assert told[0]["points"] == told[1]["points"]
    pools = list(dm.read_pools("keyed.parquet").pools)
    write_parquet(pools, "old.parquet", Provenance(keys={**known["keys"], "relation": "by-task(auto@0)"}))
    for verb in (("calibrate", "old.parquet", "--alpha", 0.1), ("answers", "old.parquet", "-o", "new.parquet")):
        ran = demur(*verb)
        assert ran.code == 2
        assert "auto@0" in ran.err
        assert "--rekey" in ran.err
    assert demur("answers", "old.parquet", "--rekey", "-o", "new.parquet").code == 0
    again = pyarrow.parquet.read_table("new.parquet")
    assert again.equals(pyarrow.parquet.read_table("keyed.parquet"))
    assert demur("calibrate", "new.parquet", "--alpha", 0.1).code == 0


@pytest.fixture
def mixed(demur, shards):
    """The folder with keys, of which one file has those of another version; and how they were made."""
    from pathlib import Path

    Path("mixed").mkdir()
    for number in range(2):
        assert demur("answers", f"shards/part-{number}.parquet", "-o", f"mixed/part-{number}.parquet").code == 0
    pools = list(dm.read_pools("mixed/part-0.parquet").pools)
    known = json.loads(pyarrow.parquet.ParquetFile("mixed/part-0.parquet").metadata.metadata[b"demur"])
    write_parquet(pools, "mixed/part-0.parquet", Provenance(keys={**known["keys"], "relation": "by-task(auto@0)"}))
    return "mixed"


def test_a_folder_with_keys_of_several_versions_is_refused_by_file_and_made_again_on_request(demur, shards, mixed):
    for verb in (("calibrate", mixed, "--alpha", 0.1), ("answers", mixed, "-o", "new.parquet"), ("answers", mixed)):
        ran = demur(*verb)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "mixed holds keys of the relation auto@0 in part-0.parquet, of auto@2 in part-1.parquet" in ran.err
        assert "`demur answers mixed` with --rekey and --out" in ran.err
    assert demur("answers", mixed, "--rekey", "-o", "new.parquet").code == 0
    assert demur("answers", shards, "-o", "keyed.parquet").code == 0
    assert pyarrow.parquet.read_table("new.parquet").equals(pyarrow.parquet.read_table("keyed.parquet"))
    assert demur("calibrate", "new.parquet", "--alpha", 0.1).code == 0


def test_keys_that_a_command_does_not_compare_by_may_be_of_several_versions(demur, shards, mixed):
    ran = [demur("calibrate", place, "--relation", "text", "--alpha", 0.1, "--json") for place in (shards, mixed)]
    assert [one.code for one in ran] == [0, 0], ran[1].err
    assert ran[0].json["points"] == ran[1].json["points"]


def test_nothing_is_written_into_the_folder_that_is_read(demur, shards):
    for name in ("part-0.parquet", "new.parquet"):
        ran = demur("answers", shards, "-o", f"shards/{name}")
        assert ran.code == 2
        assert "would be one of the files of shards, which is an input" in ran.err


def test_a_truncated_file_of_a_folder_is_one_line(demur, shards):
    from pathlib import Path

    path = Path("shards/part-1.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    ran = demur("calibrate", shards, "--alpha", 0.1)
    assert ran.code == 2
    assert "shards/part-1.parquet cannot be read as Parquet" in ran.err
    assert len(ran.err.strip().splitlines()) == 1
