"""The files of a service's store are for their owner alone: keys, questions and answers are in them."""

from __future__ import annotations

import os
import stat

import pytest

from demur.store import Store
from demur.store.service import ServiceStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of files are of POSIX")


@pytest.fixture(params=[0o022, 0o002, 0o000], ids=oct, autouse=True)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder):
    return {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in folder.iterdir()}


def test_a_new_store_and_the_files_next_to_it_are_its_owners(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        store.keys.create("k", ["ask"], 1)
        assert modes(tmp_path) == dict.fromkeys(("service.db", "service.db-wal", "service.db-shm"), "0o600")
    with ServiceStore(tmp_path / "service.db") as store:
        store.check_writing()
        assert set(modes(tmp_path).values()) == {"0o600"}


def test_a_file_that_is_there_keeps_its_mode(tmp_path):
    Store(tmp_path / "runs.db", create=True).close()
    (tmp_path / "runs.db").chmod(0o660)
    with ServiceStore(tmp_path / "runs.db", create=True) as store:
        store.keys.create("k", ["ask"], 1)
        assert set(modes(tmp_path).values()) == {"0o660"}
