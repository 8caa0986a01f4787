"""The command line, run in this process: exit code, standard output, standard error."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pytest

from demur.answers import SlowPath
from demur.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _no_width(monkeypatch):
    """Whatever terminal the tests run in, tables are as wide as pipes have them."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _slow_machine(monkeypatch):
    """On a busy machine math-verify may think for longer than the usual two seconds."""
    monkeypatch.setitem(SlowPath.__init__.__kwdefaults__, "seconds", 60.0)


@pytest.fixture
def demur(capsys, monkeypatch, tmp_path):
    """Run `demur …` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments) -> Ran:
        monkeypatch.setattr(sys, "argv", ["demur", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def pools(demur, tmp_path):
    """A file of simulated pools."""
    assert demur("simulate", "-o", "pools.jsonl", "-n", 400, "-m", 8, "--seed", 3).code == 0
    return tmp_path / "pools.jsonl"
