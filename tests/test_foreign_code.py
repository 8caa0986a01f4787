"""Children take no code from the current folder and hold no keys."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from demur.answers import SlowPath
from demur.backends.chat_template import ChatTemplate
from demur.foreign_code import isolated_python, without_secrets

TRAP = "open({mark!r}, 'w').write('ran')\nraise SystemExit(1)\n"


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """A folder whose modules have the names of those that children import."""
    mark = tmp_path / "ran"
    for name in ("json", "logging", "resource", "pip", "math_verify", "sympy", "functools", "jinja2"):
        (tmp_path / f"{name}.py").write_text(TRAP.format(mark=str(mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return mark


def test_the_slow_path_runs_nothing_that_lies_in_the_folder(trapped):
    with SlowPath() as slow:
        assert slow.same("0.5", "\\frac12")
    assert not trapped.exists()


def test_a_chat_template_runs_nothing_that_lies_in_the_folder(trapped):
    assert ChatTemplate("{{ messages[0].content }}", "a model", extra="local").render([{"content": "yes"}]) == "yes"
    assert not trapped.exists()


def test_pip_is_the_installed_one(trapped):
    ran = subprocess.run(isolated_python("-m", "pip", "--version"), capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("pip ")
    assert not trapped.exists()


def test_the_trap_would_spring(trapped):
    """Negative control: without isolation the folder comes first."""
    subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    assert trapped.exists()


def test_no_key_reaches_a_child(monkeypatch):
    secrets = ("OPENAI_API_KEY", "HF_TOKEN", "JUDGE_API_KEY", "MY_PASSWORD", "aws_secret_access", "X_AUTHORIZATION")
    for name in secrets:
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("PIP_CONSTRAINT", "x")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    ran = subprocess.run(
        isolated_python("-c", code), capture_output=True, text=True, check=True, env=without_secrets("PIP_CONSTRAINT")
    )
    seen = json.loads(ran.stdout)
    assert "hush" not in seen.values()
    assert "PIP_CONSTRAINT" not in seen
    assert "PATH" in seen
