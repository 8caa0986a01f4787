"""`decide -o FOLDER/`: a table of decisions per shard, written whole; and outputs at addresses, here by `file://`."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import demur as dm
from demur.cli import decision_files
from demur.pools.parquet import write_parquet


@pytest.fixture
def shards(demur, pools):
    """The pools of `pools.jsonl` in three files, and a policy on others."""
    read = list(dm.read_pools("pools.jsonl").pools)
    Path("shards").mkdir()
    for number, part in enumerate((read[:100], read[100:250], read[250:])):
        write_parquet(part, f"shards/part-{number}.parquet")
    assert demur("simulate", "-o", "calibration.jsonl", "-n", 400, "-m", 8, "--seed", 4).code == 0
    assert (
        demur("calibrate", "calibration.jsonl", "--score", "simulated", "--alpha", 0.1, "-o", "policy.json").code == 0
    )
    return "shards"


def decide(demur, place, out, *more):
    return demur("decide", place, "--policy", "policy.json", "-o", out, *more)


def rows(place):
    return pyarrow.parquet.read_table(place).to_pylist()


def refused(ran, *told):
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    for words in told:
        assert words in ran.err


@pytest.mark.parametrize("folder", ["decided/", "some/where/decided/", "file://{}/decided/"])
def test_a_folder_of_decisions_says_what_one_table_says(demur, shards, tmp_path, folder):
    out = folder.format(tmp_path)
    ran = decide(demur, shards, out)
    assert ran.code == 0, ran.err
    assert f"Wrote 3 of 3 files to {out}." in ran.out
    assert decide(demur, shards, "one.parquet").code == 0
    here = Path(out.removeprefix("file://"))
    assert rows(here) == rows("one.parquet")
    for number, many in ((0, 100), (1, 150), (2, 150)):
        assert len(rows(here / f"part-{number}.parquet")) == many


def test_a_command_that_was_ended_goes_on_behind_the_last_table(demur, shards, monkeypatch):
    write, written = decision_files._write_tables, []

    def ending(tables, out, *how):
        def ended(types):
            next(tables(types))
            raise KeyboardInterrupt
            yield

        write(ended if written else tables, out, *how)
        written.append(out)

    monkeypatch.setattr(decision_files, "_write_tables", ending)
    assert decide(demur, shards, "decided/").code == 130
    assert [path.name for path in Path("decided").glob("*.parquet")] == ["part-0.parquet"]
    monkeypatch.setattr(decision_files, "_write_tables", write)
    before = Path("decided/part-0.parquet").stat().st_mtime_ns
    assert "Wrote 2 of 3 files to decided/; the others were there." in decide(demur, shards, "decided/").out
    assert Path("decided/part-0.parquet").stat().st_mtime_ns == before
    decide(demur, shards, "one.parquet")
    assert rows("decided") == rows("one.parquet")


def test_a_table_that_cannot_be_written_to_its_end_is_not_there(demur, shards, monkeypatch):
    write = decision_files._write_tables

    def broken(tables):
        yield next(tables)
        raise OSError(28, "No space left on device")

    def breaking(tables, *how):
        write(lambda types: broken(tables(types)), *how)

    monkeypatch.setattr(decision_files, "_write_tables", breaking)
    for out in ("decided/", f"file://{Path.cwd()}/decided/", "one.parquet", f"file://{Path.cwd()}/one.parquet"):
        refused(decide(demur, shards, out), "No space left on device", f"cannot write {out}")
        assert not [*Path("decided").glob("[!.]*"), *Path().glob("*one*")]


def test_only_a_shard_that_was_changed_is_decided_again(demur, shards):
    assert decide(demur, shards, "decided/").code == 0
    pools = list(dm.read_pools("shards/part-1.parquet").pools)
    write_parquet(pools[:20], "shards/part-1.parquet")
    assert "Wrote 1 of 3 files to decided" in decide(demur, shards, "decided").out
    assert len(rows("decided/part-1.parquet")) == 20


def test_of_a_batch_every_decision_hangs_on_every_shard(demur, shards):
    assert decide(demur, shards, "decided/", "--fdr", "0.1").code == 0
    assert "Wrote 0 of 3" in decide(demur, shards, "decided/", "--fdr", "0.1").out
    os.utime("shards/part-1.parquet")
    refused(decide(demur, shards, "decided/", "--fdr", "0.1"), "was decided another way")


def test_decisions_of_two_policies_are_not_put_into_one_folder(demur, shards):
    assert decide(demur, shards, "decided/").code == 0
    refused(
        decide(demur, shards, "decided/", "--fdr", "0.1"), "decided/part-0.parquet was decided another way", "remove"
    )
    calibrated = ("calibrate", shards, "--score", "simulated", "--alpha", 0.2, "-o", "policy.json")
    assert demur(*calibrated).code == 0
    refused(decide(demur, shards, "decided/"), "by another policy", "choose another folder")


def test_what_is_no_folder_of_these_decisions_stays_as_it_is(demur, shards, tmp_path):
    Path("file").write_text("notes\n")
    Path("other").mkdir()
    assert decide(demur, shards, "other/one.parquet").code == 0
    assert decide(demur, "shards/part-1.parquet", "part/").code == 0
    Path("pools").mkdir()
    write_parquet(list(dm.read_pools("pools.jsonl").pools)[:3], "pools/part-0.parquet")
    for place, out, told in (
        (shards, "shards/", "shards/ holds shards/part-0.parquet, an input of this command"),
        (shards, f"file://{tmp_path}/shards/", "an input of this command; choose another folder"),
        ("shards/part-0.parquet", "shards/", "an input of this command"),
        (shards, "other/", "other/one.parquet is there already and is not of a folder of decisions"),
        (shards, "pools/", "pools/part-0.parquet is there already and is not of a folder of decisions"),
        ("shards/part-2.parquet", "part/", "part/part-1.parquet decides on a file that shards/part-2.parquet"),
        (shards, "file/", "file/ is named like a folder, and is a file"),
        ("pools.jsonl", "new/", "pools.jsonl is none; name a .jsonl or .parquet file"),
        ("run.db", "new/", "run.db is none; name a .jsonl or .parquet file"),
        (shards, "", "'' is not a file name"),
    ):
        refused(decide(demur, place, out), told)
    assert not Path("new").exists()


def test_a_cascade_writes_one_file(demur, shards):
    stages = ("cascade", "pools.jsonl", "pools.jsonl", "--alpha", 0.2, "-o", "cascade.json")
    ran = demur(*stages)
    assert ran.code == 0, ran.err
    refused(demur("decide", shards, "--cascade", "cascade.json", "-o", "decided/"), "decided/ is a folder; name a file")


def test_tables_are_written_to_an_address_and_nothing_else_is(demur, shards, tmp_path):
    address = f"file://{tmp_path}"
    assert decide(demur, shards, f"{address}/one.parquet").code == 0
    assert decide(demur, shards, f"{address}/one.parquet").code == 0
    assert decide(demur, shards, "two.parquet").code == 0
    assert rows("one.parquet") == rows("two.parquet")
    assert demur("answers", shards, "-o", f"{address}/keyed.parquet").code == 0
    assert demur("simulate", "-n", 5, "-o", f"{address}/simulated.parquet").code == 0
    assert demur("import", "pools.jsonl", "-o", "run.db").code == 0
    prepared = ("sample", "builtin:addition", "--limit", 2, "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert demur(*prepared, "--prepare", "-o", "prepared.db").code == 0
    assert demur("export", "run.db", "-o", f"{address}/exported.parquet").code == 0
    assert len(dm.read_pools("keyed.parquet").pools) == len(dm.read_pools("exported.parquet").pools) == 400
    for verb in (
        ("decide", shards, "--policy", "policy.json"),
        ("answers", shards),
        ("export", "run.db"),
        ("simulate", "-n", 5),
    ):
        refused(demur(*verb, "-o", "s3://bucket/new.jsonl"), "s3://bucket/new.jsonl is not named .parquet")
        refused(demur(*verb, "-o", "postgresql://host/new.parquet"), "cannot write", "postgresql://host/new.parquet")
    for verb in (("calibrate", shards, "--score", "simulated"), ("report", shards, "--score", "simulated")):
        refused(demur(*verb, "-o", "s3://bucket/new.json"), "to s3://bucket/new.json, only to a file here")
    refused(demur("decide", shards, "--policy", "policy.json", "-o", "s3://bucket/new"), "or end it in / for a folder")
    refused(demur("export", "prepared.db", "--batch", "s3://bucket/r.jsonl"), "to s3://bucket/r.jsonl, only to a file")
    refused(decide(demur, shards, f"{address}/keyed.parquet"), "holds a Parquet file, which a table of decisions")
    refused(decide(demur, shards, f"{address}/shards/x.parquet"), "would be one of the files of shards")
    refused(demur("answers", "two.parquet", "-o", f"{address}/two.parquet"), "is an input of this command")
    refused(decide(demur, shards, f"{address}/no/where.parquet"), "cannot write", "No such file or directory")
    refused(decide(demur, shards, f"{address}/shards"), "is not named .parquet")
