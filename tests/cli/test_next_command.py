"""What `sample` says comes next can be pasted into a shell, whatever the store's address, and shows no password."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from loopback import choice, reply


@pytest.fixture
def sampled(demur, server):
    """Sample into a place; the command that comes next, and all that was said."""

    def sample(place, *more):
        server.behave = lambda n, body, r: reply(*(choice("\\boxed{1}", [-0.5]) for _ in range(body.get("n", 1))))
        asked = ["sample", "builtin:addition", "--limit", 12, "-m", 2, "--base-url", server.url, "--model", "m"]
        ran = demur(*asked, "-o", place, *more)
        assert ran.code == 0, ran.err
        return next(line for line in ran.out.splitlines() if line.startswith("Next: ")).removeprefix("Next: "), ran.out

    return sample


def pasted(command, **environment):
    """Run a line in a shell, with this demur as the command `demur`."""
    runner = f'demur() {{ {shlex.quote(sys.executable)} -m demur "$@"; }}\n{command}'
    known = {name: value for name, value in os.environ.items() if name != "PGPASSWORD"}
    return subprocess.run(
        ["sh", "-c", runner], env={**known, **environment}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("name", ["run.db", "my run's.db", "a?b#c%20.db", "$HOME & more.db"])
def test_a_file_of_any_name(sampled, name):
    command, _ = sampled(name)
    assert pasted(command).returncode == 0


def test_a_server_at_a_socket(sampled, postgres_url):
    assert "host=" in postgres_url, "the package's server listens at a socket"
    command, said = sampled(postgres_url)
    assert pasted(command).returncode == 0
    assert "PGPASSWORD" not in said


def test_one_of_several_runs(sampled, postgres_url):
    sampled(postgres_url)
    command, _ = sampled(postgres_url, "--run", "another one")
    assert "--run 'another one'" in command
    assert pasted(command).returncode == 0


def test_a_password_is_not_shown_and_can_be_given_apart(sampled, postgres_url):
    url = make_url(postgres_url)
    engine = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text('DROP ROLE IF EXISTS "odd me"'))
        connection.execute(text("CREATE ROLE \"odd me\" LOGIN SUPERUSER PASSWORD 'hunter2'"))
    engine.dispose()
    command, said = sampled(url.set(username="odd me", password="hunter2").render_as_string(hide_password=False))
    assert "hunter2" not in said
    assert "***" not in command
    assert "set PGPASSWORD to it first" in said
    assert pasted(command, PGPASSWORD="hunter2").returncode == 0
