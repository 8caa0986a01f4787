"""Errors carry a remedy: in Python's terms from the library, in flags from the command line."""

from __future__ import annotations

import sys

import pytest

from demur.cli import output
from demur.errors import BackendError, DemurError, MissingExtra, install_command


@pytest.mark.parametrize(
    ("remedy", "python", "flags"),
    [
        ("give {base_url} or set X", "give base_url or set X", "give --base-url or set X"),
        ("calibrate with {hold_out=0.5}", "calibrate with hold_out=0.5", "calibrate with --hold-out 0.5"),
        ("sample with {logprobs=False}", "sample with logprobs=False", "sample with --no-logprobs"),
        ("{judge.model=NAME} says which", "judge.model=NAME says which", "--set judge.model=NAME says which"),
        ("{n_paths}", "n_paths", "--paths"),
        ("use {x {y", "use {x {y", "use {x {y"),
        ("", "", ""),
    ],
)
def test_a_remedy_is_told_in_the_listeners_terms(remedy, python, flags):
    error = BackendError("it broke {base_url}", remedy)
    tail = f"; {python}" if python else ""
    assert str(error) == f"it broke {{base_url}}{tail}"
    assert output.told(error) == "it broke {base_url}" + (f"; {flags}" if flags else "")


def test_a_missing_extra_names_the_command_for_this_very_installation():
    told = str(MissingExtra("a server needs aiohttp", "http"))
    assert told == f"a server needs aiohttp; install it with: {sys.executable} -m pip install 'aiohttp>=3.10'"
    assert "demur" not in install_command("postgres").rpartition("install ")[2]
    assert install_command("local").count("'") == 6  # three packages


def test_without_pip_or_an_installation_there_is_still_a_way(monkeypatch):
    monkeypatch.setattr("demur.errors.find_spec", lambda name: None)
    assert install_command("http").startswith(f"uv pip --python {sys.executable} install ")

    def nowhere(name):
        from importlib.metadata import PackageNotFoundError

        raise PackageNotFoundError

    monkeypatch.setattr("demur.errors.metadata.requires", nowhere)
    assert install_command("http").endswith("install '.[http]'")


def test_every_error_is_one_family():
    assert issubclass(MissingExtra, DemurError)
    assert str(DemurError("only this")) == "only this"
