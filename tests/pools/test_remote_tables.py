"""Pools on a filesystem that Arrow knows: an S3 server on loopback, moto's, in a process of its own.

moto wants versions of other packages than the project pins, so it is no part of the development environment: `make
test-neighbours` installs it into one of its own, and names its `moto_server` in MOTO_SERVER.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pyarrow.parquet
import pytest

import demur as dm
from demur.cli import main
from demur.errors import InvalidValue, PoolFileError
from demur.pipeline.sources import is_store
from demur.pools.jsonl import write_pools
from demur.pools.parquet import write_parquet
from demur.pools.shards import located
from demur.records import Path, Pool, Problem

SERVER = os.environ.get("MOTO_SERVER")


def pools(first, many):
    return [
        Pool(Problem(f"q{at}", f"What is {at}?", ("6",)), (Path("6", None, {"rm": at}), Path("7", None, {"rm": 0.5})))
        for at in range(first, first + many)
    ]


@pytest.fixture(scope="module")
def bucket():
    """An empty bucket; the server ends with the tests."""
    if SERVER is None:
        pytest.skip("MOTO_SERVER names no server: `make test-neighbours` runs this")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([SERVER, "-H", "127.0.0.1", "-p", str(port)], **quiet)
    told = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        try:
            for _ in range(1200):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            from pyarrow import fs

            address = f"127.0.0.1:{port}"
            own = fs.S3FileSystem(
                endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True
            )
            own.create_dir("pools")
            yield "s3://pools"
        finally:
            process.terminate()
            process.wait(timeout=120)


def test_a_folder_of_objects_says_what_a_file_here_says(bucket, tmp_path):
    for number in range(2):
        write_parquet(pools(20 * number, 20), f"{bucket}/run/part-{number}.parquet")
    write_pools(pools(0, 40), tmp_path / "pools.jsonl")
    there, here = dm.read_pools(f"{bucket}/run"), dm.read_pools(tmp_path / "pools.jsonl")
    told = [dm.calibrate(dm.vote_pools(one, dm.FieldChoice(score="rm")), alpha=0.2) for one in (there, here)]
    assert told[0].document() == told[1].document()
    assert list(there.pools) == list(here.pools)
    assert len(dm.read_pools(f"{bucket}/run/part-1.parquet").pools) == 20


def test_an_object_appears_only_when_it_is_whole(bucket):
    def breaking():
        yield from pools(0, 3)
        raise OSError(28, "No space left on device")

    with pytest.raises(PoolFileError, match=r"cannot write s3://pools/half/part.parquet"):
        write_parquet(breaking(), f"{bucket}/half/part.parquet", scores=["rm"])
    with pytest.raises(PoolFileError, match="s3://pools/half"):
        dm.read_pools(f"{bucket}/half/part.parquet")


def test_what_is_not_there_is_said_in_one_line(bucket):
    with pytest.raises(PoolFileError) as caught:
        dm.read_pools(f"{bucket}/nothing/at-all.parquet")
    assert "there is no file s3://pools/nothing/at-all.parquet" in str(caught.value)


@pytest.fixture
def demur(bucket, capsys, monkeypatch, tmp_path):
    """Run `demur …` in an empty folder: the exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["demur", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def decide(demur, bucket):
    """`decide` on two shards of the bucket, by a policy that is here."""
    for number in range(2):
        write_parquet(pools(20 * number, 20), f"{bucket}/new/part-{number}.parquet")
    write_pools(pools(100, 60), "calibration.jsonl")
    assert demur("calibrate", "calibration.jsonl", "--score", "rm", "--alpha", 0.2, "-o", "policy.json")[0] == 0
    return lambda out: demur("decide", f"{bucket}/new", "--policy", "policy.json", "-o", out)


def rows(place):
    """A table of decisions, wherever it lies."""
    filesystem, path = located(place)
    return pyarrow.parquet.read_table(path, filesystem=filesystem).to_pylist()


def test_decisions_go_to_an_object_or_a_folder_of_them(decide, bucket):
    for out, told in (
        ("here.parquet", "Wrote here.parquet."),
        (f"{bucket}/there.parquet", "Wrote s3://pools/there.parquet."),
        (f"{bucket}/there.parquet", "Wrote s3://pools/there.parquet."),
        (f"{bucket}/decided/", "Wrote 2 of 2 files to s3://pools/decided/."),
        (f"{bucket}/decided/", "Wrote 0 of 2 files to s3://pools/decided/; the others were there."),
    ):
        code, said, err = decide(out)
        assert code == 0, err
        assert told in said
    assert len(rows("here.parquet")) == 40
    assert rows(f"{bucket}/there.parquet") == rows(f"{bucket}/decided") == rows("here.parquet")


def test_pools_go_to_an_object(demur, decide, bucket):
    write_pools(pools(0, 5), "few.jsonl")
    assert demur("import", "few.jsonl", "-o", "run.db")[0] == 0
    for verb in (("answers", "few.jsonl"), ("export", "run.db")):
        assert demur(*verb, "-o", f"{bucket}/{verb[0]}/pools.parquet")[0] == 0
        assert len(dm.read_pools(f"{bucket}/{verb[0]}/pools.parquet").pools) == 5


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("s3://nowhere/x.parquet", "cannot write s3://nowhere/x.parquet: there is no bucket 'nowhere'"),
        ("s3://nowhere/x/", "cannot write s3://nowhere/x/: there is no bucket 'nowhere'"),
        ("s3:///x.parquet", "cannot write s3:///x.parquet"),
        ("s3://pools/x.jsonl", "only Parquet is written there"),
        ("s3://pools/new/", "s3://pools/new/part-0.parquet, an input of this command"),
        ("s3://pools/new/x.parquet", "would be one of the files of s3://pools/new, which is an input"),
        ("s3://pools/new/part-0.parquet", "would be one of the files of s3://pools/new, which is an input"),
        ("s3://pools/kept/pools.parquet", "holds a Parquet file, which a table of decisions would replace"),
        ("s3://pools/kept.parquet", "cannot write s3://pools/kept.parquet: it is a folder"),
    ],
)
def test_what_cannot_be_written_is_said_in_one_line_before_the_work(decide, bucket, out, told):
    for place in ("kept/pools.parquet", "kept.parquet/pools.parquet"):
        write_parquet(pools(0, 3), f"{bucket}/{place}")
    code, said, err = decide(out)
    assert (code, said, err.count("\n")) == (2, "", 1)
    assert told in err


def test_a_server_that_does_not_answer_is_said_in_one_line(demur, decide, bucket, monkeypatch):
    write_parquet(pools(0, 20), "here.parquet")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for out in ("s3://pools/x.parquet", "s3://pools/x/"):
        code, said, err = demur("decide", "here.parquet", "--policy", "policy.json", "-o", out)
        assert (code, said, err.count("\n")) == (2, "", 1)
        assert f"cannot write {out}" in err
        assert "or name a file here" in err


def test_addresses_of_databases_are_stores_and_those_of_filesystems_are_not():
    assert is_store("postgresql://localhost/runs")
    assert is_store("sqlite:///run.db")
    assert not is_store("s3://bucket/pools")
    assert not is_store("gs://bucket/pools.parquet")


def test_only_parquet_is_read_from_afar():
    with pytest.raises(InvalidValue, match="only Parquet is read"):
        dm.read_pools("s3://bucket/pools.jsonl")
