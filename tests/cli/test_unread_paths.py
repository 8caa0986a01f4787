"""A path that came is stored before it is read: what hangs or fails there costs no path."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from demur.answers.relations import Relation
from demur.backends import Scripted
from demur.engine import unread
from demur.errors import StoreError
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from demur.store import Store
from patience import wait_until
from processes import Process

MENDED = "def answer(text):\n    return text.split()[-1]\n"
HANGS = "import re\ndef answer(text):\n    return re.fullmatch('(a+)+b', 'a' * 5000)\n"
FAILS = "def answer(text):\n    return 7\n"
N_PATHS, PROBLEMS = 2, 4


def paths(place):
    with closing(Store(place)) as store:
        return [path for pool in store.run().pools(complete=False, with_texts=True) for path in pool.paths]


def kept(place):
    try:
        with closing(Store(place)) as store:
            return len(store.run().unread())
    except StoreError:  # it is being made
        return 0


@pytest.fixture
def sample(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    questions = ("builtin:addition", "--limit", str(PROBLEMS), "-m", str(N_PATHS))
    how = ("--model", "m", "--base-url", server.url, "--extract", "reader:answer", "-o", "run.db")
    command = [sys.executable, "-m", "demur", "sample", *questions, *how]

    def run(reader, end=None):
        (tmp_path / "reader.py").write_text(reader)
        process = Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if end is not None:
            wait_until(lambda: process.poll() is not None or kept("run.db"))
            assert process.poll() is None, process.communicate()
            process.send_signal(end)
        _, err = process.communicate(timeout=300)
        return process.returncode, err

    return run


def test_what_a_function_hangs_on_is_stored_and_read_by_the_next_command(sample, server):
    """It holds the whole process, so that nothing but kill -9 ends it."""
    assert sample(HANGS, signal.SIGKILL)[0] == -signal.SIGKILL
    assert (asked := kept("run.db")) > 0
    assert paths("run.db") == []
    came = len(server.requests)
    assert sample(MENDED)[0] == 0
    assert len(paths("run.db")) == N_PATHS * PROBLEMS
    assert all(path.answer and path.extra["seed"] is not None for path in paths("run.db"))
    drawn = sum(body.get("n", 1) for body in server.requests[came:])
    assert drawn <= N_PATHS * PROBLEMS - asked, "what was stored is not asked for again"
    assert kept("run.db") == 0


def test_what_a_function_fails_on_is_stored(sample):
    code, err = sample(FAILS)
    assert (code, len(err.strip().splitlines()[-1:])) == (2, 1)
    assert "must return a string or None" in err
    assert kept("run.db") > 0
    assert sample(MENDED)[0] == 0
    assert len(paths("run.db")) == N_PATHS * PROBLEMS
    assert kept("run.db") == 0


def test_a_text_that_takes_long_is_stored_meanwhile(place, monkeypatch):
    monkeypatch.setattr(unread, "_SECONDS", 0.01)
    go_on, usual = threading.Event(), Relation.extract

    def slowly(relation, text, *given, **named):
        assert go_on.wait(300)
        return usual(relation, text, *given, **named)

    monkeypatch.setattr(Relation, "extract", slowly)
    backend = Scripted(lambda prompt, wanted: "so " * 1000 + "\\boxed{7}")
    problems = [Problem("q", "What is 3 + 4?", ("7",), extra={"task": "math"})]
    pipeline = Pipeline(backend, N_PATHS, score=None)
    sampling = threading.Thread(target=pipeline.run, args=(problems, place))
    sampling.start()
    try:
        wait_until(lambda: kept(place))
        assert paths(place) == []
    finally:
        go_on.set()
    sampling.join(300)
    assert [path.answer for path in paths(place)] == ["7"] * N_PATHS
    assert kept(place) == 0
