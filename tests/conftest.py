"""Shared by all tests: settings, a brute-force vote in fractions, and the recorded pools where they exist."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from processes import end_processes

# Derandomised, so that a run is the same everywhere; no deadline, so that a busy machine changes nothing.
settings.register_profile(
    "demur", derandomize=True, deadline=None, max_examples=150, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("demur")

# A shell starts what runs in the background with interrupts ignored, and children inherit that: the tests send some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "pools"


@pytest.fixture(scope="session")
def recorded_pools() -> Path:
    """The folder of recorded pools; the test is skipped where there is none."""
    if not RECORDED.is_dir():
        pytest.skip("the recorded pools of real models are not on this machine")
    return RECORDED


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """What a test started ends with it."""
    yield
    end_processes()


@pytest.fixture
def server():
    """A well-behaved model server on loopback; tests give it other manners."""
    from loopback import Loopback

    running = Loopback().start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A real PostgreSQL server, from a package that ships its binaries; one per test process."""
    from postgres_servers import running_postgres

    with running_postgres(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture
def postgres_url(postgres):
    """An empty database of its own."""
    from uuid import uuid4

    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url

    from postgres_servers import answering

    name = f"q{uuid4().hex[:12]}"
    server_url = make_url(answering(postgres).get_uri()).set(drivername="postgresql+psycopg")
    engine = create_engine(server_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server_url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a store may be: a file, or a database."""
    return str(tmp_path / "run.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
