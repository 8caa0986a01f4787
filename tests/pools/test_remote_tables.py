"""Pools on a filesystem that Arrow knows: an S3 server on loopback, moto's, in a process of its own.

moto wants versions of other packages than the project pins, so it is no part of the development environment: `make
test-neighbours` installs it into one of its own, and names its `moto_server` in MOTO_SERVER.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time

import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pipeline.sources import is_store
from demur.pools.jsonl import write_pools
from demur.pools.parquet import write_parquet
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
            for _ in range(300):
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
            process.wait(timeout=20)


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


def test_addresses_of_databases_are_stores_and_those_of_filesystems_are_not():
    assert is_store("postgresql://localhost/runs")
    assert is_store("sqlite:///run.db")
    assert not is_store("s3://bucket/pools")
    assert not is_store("gs://bucket/pools.parquet")


def test_only_parquet_is_read_from_afar():
    with pytest.raises(InvalidValue, match="only Parquet is read"):
        dm.read_pools("s3://bucket/pools.jsonl")
