"""Ctrl-C and SIGTERM end every verb, whatever it is doing, without a traceback."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from shutil import which

import psutil
import pytest

from loopback import when
from patience import wait_until
from processes import Process

HANGS = """
import time
from pathlib import Path

def in_python(text):
    Path("reached").touch()
    while True:
        pass

def in_a_call(pool):
    Path("reached").touch()
    time.sleep(1e6)
"""
HOW = {"sample": ("--extract", "hangs:in_python"), "score": ("--score", "hangs:in_a_call")}
QUESTIONS = ("builtin:addition", "--limit", "4", "-m", "2", "--model", "m")


@pytest.fixture
def start(server, tmp_path, monkeypatch):
    (tmp_path / "hangs.py").write_text(HANGS)
    monkeypatch.chdir(tmp_path)

    def started(*arguments):
        command = [sys.executable, "-m", "demur", *map(str, arguments)]
        return Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return started


def ends(process, told_to, *codes):
    process.send_signal(told_to)
    _, err = process.communicate(timeout=120)
    assert process.returncode in codes
    assert "Traceback" not in err
    return err


both = pytest.mark.parametrize("told_to", [signal.SIGINT, signal.SIGTERM])


@both
def test_who_waits_for_a_silent_server(server, start, told_to):
    server.behave = when(lambda: False)
    process = start("sample", *QUESTIONS, "--base-url", server.url, "-o", "run.db")
    wait_until(lambda: server.requests or process.poll() is not None)
    ends(process, told_to, 130, 143)


@both
@pytest.mark.parametrize("verb", ["sample", "score"])
def test_who_waits_for_a_function_of_the_user_that_never_returns(server, start, demur, told_to, verb, tmp_path):
    sample = ("sample", *QUESTIONS, "--base-url", server.url, "-o", "run.db")
    if verb == "score":
        assert demur(*sample).code == 0
    process = start(*(sample if verb == "sample" else ("score", "run.db")), *HOW[verb])
    wait_until(lambda: (tmp_path / "reached").exists() or process.poll() is not None)
    err = ends(process, told_to, 128 + told_to)
    assert err.splitlines()[-1] == "Stopped at once; what was saved before is safe."


@both
def test_who_is_still_being_loaded(start, told_to, tmp_path):
    (tmp_path / "typer.py").write_text("import pathlib, time\npathlib.Path('reached').touch()\ntime.sleep(1e6)\n")
    process = start("--version")
    wait_until(lambda: (tmp_path / "reached").exists() or process.poll() is not None)
    assert ends(process, told_to, -told_to) == ""


CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


@pytest.mark.skipif(
    which("unshare") is None or subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode != 0,
    reason="processes cannot be numbered anew here, as in a container",
)
def test_the_first_process_of_a_container_ends_too(tmp_path):
    """The system gives it no signal that it does not handle."""
    command = [*CONTAINER, sys.executable, "-m", "demur", "simulate", "-n", "2000000", "-o", "pools.jsonl"]
    outer = Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    [inner] = wait_until(lambda: psutil.Process(outer.pid).children())
    wait_until(lambda: handles(inner.pid, signal.SIGTERM) or outer.poll() is not None, seconds=60)
    inner.terminate()
    _, err = outer.communicate(timeout=120)
    assert (outer.returncode, err) == (128 + signal.SIGTERM, "")


def handles(process, number):
    [caught] = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{process}/status").read_text())
    return int(caught, 16) >> (number - 1) & 1
