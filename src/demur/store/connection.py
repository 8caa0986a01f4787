"""Opening a store: SQLite in WAL mode or PostgreSQL, its version checked before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError

from demur.errors import MissingExtra, StoreError
from demur.store.tables import PREFIX, SCHEMA_VERSION, meta, metadata, scores

_MAGIC = b"SQLite format 3\x00"
_APPLICATION = "demur"
_BUSY_SECONDS = 60
_LOCK = 0x64656D7572  # "demur"


def shown(place: str) -> str:
    """A place as it may be printed: without a password."""
    if "://" not in place:
        return place
    try:
        return make_url(place).set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return place.partition("://")[0] + "://…"


def connect(place: str | os.PathLike[str], *, create: bool) -> Engine:
    """An engine on a store whose schema this version understands; made new where `create` allows."""
    named = os.fspath(place)
    engine = _postgres(named) if "://" in named else _sqlite(Path(named), create=create)
    try:
        with translated(named):
            _check(engine, named, create=create)
    except StoreError:
        engine.dispose()
        raise
    return engine


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Database errors as one line that says what to do; never with the password of a URL."""
    try:
        yield
    except OperationalError as error:
        reason = " ".join(str(error.orig).split())
        hints = {
            "readonly": "the store cannot be written; check its permissions and those of its folder",
            "unable to open": "the store cannot be opened; check its permissions and those of its folder",
            "disk is full": "the disk is full; what was saved is safe: make room and run the same command again",
            "disk I/O": "the disk refused a write; what was saved is safe: check it and run the same command again",
            "locked": "another process holds the store; try again when it has finished",
        }
        hint = next((said for mark, said in hints.items() if mark in reason), "")
        raise StoreError(f"{shown(place)}: {hint or reason}" + (f" ({reason})" if hint else "")) from None
    except DatabaseError as error:
        reason = " ".join(str(error.orig).split())
        raise StoreError(f"{shown(place)} is damaged or not a store of demur: {reason}") from None
    except SQLAlchemyError as error:
        raise StoreError(f"{shown(place)}: {' '.join(str(error).split())}") from None


def _sqlite(path: Path, *, create: bool) -> Engine:
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name a file in it, such as {path / 'run.db'}")
    if path.exists() and path.stat().st_size:
        with path.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                raise StoreError(f"{path} is not a store; a pool file becomes one with: demur import {path} -o run.db")
    elif not create:
        raise StoreError(f"there is no run {path}; `demur sample` or `demur import` make one")
    elif not path.parent.is_dir():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {path.parent}: {error.strerror}") from None
    # A place that cannot be written has no room for the files that SQLite keeps beside a store; it is read as it is.
    still = not create and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1" if still else str(path)
    url = URL.create("sqlite", database=address, query={"uri": "true"} if still else {})
    engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so, below
        connection.execute("PRAGMA synchronous=NORMAL")  # in WAL mode: every commit survives the process

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        """A writer takes its lock first, so that what it read stays true until it commits."""
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def writing(engine: Engine, place: str, *, alone: bool = False) -> Iterator[Connection]:
    """One transaction that writes; `alone`, no other such transaction runs beside it."""
    with translated(place), engine.execution_options(writes=True).begin() as connection:
        if alone and engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        yield connection


@contextmanager
def reading(engine: Engine, place: str) -> Iterator[Connection]:
    """One transaction that reads: all of it sees the same state."""
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with translated(place), engine.connect() as connection:
        yield connection


def _postgres(place: str) -> Engine:
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):
        raise StoreError("the store's address cannot be read; it looks like postgresql://user@host/database") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise StoreError(f"a store is an SQLite file or a postgresql:// address, not {url.drivername}://")
    try:
        return create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg; install it with: pip install 'demur[postgres]'") from None


def _check(engine: Engine, place: str, *, create: bool) -> None:
    """Refuse a newer or foreign store before touching it; make the tables of a new one."""
    if _is_ours(engine, place):
        return
    if not create:
        raise StoreError(f"{shown(place)} holds no runs; `demur sample` or `demur import` make one")
    if engine.dialect.name == "sqlite":
        raw = engine.raw_connection()  # outside of any transaction
        raw.cursor().execute("PRAGMA journal_mode=WAL")  # for good: readers work beside a writer
        raw.close()
    with writing(engine, place, alone=True) as connection:
        if meta.name in inspect(connection).get_table_names():
            return  # another process was quicker
        metadata.create_all(connection)
        connection.execute(
            meta.insert(),
            [{"name": "application", "value": _APPLICATION}, {"name": "schema", "value": str(SCHEMA_VERSION)}],
        )


def _is_ours(engine: Engine, place: str) -> bool:
    """Whether a database holds a store; False where it may become one; raises where it is anything else."""
    names = set(inspect(engine).get_table_names())
    if meta.name in names:
        with engine.connect() as connection:
            held = {row.name: row.value for row in connection.execute(select(meta))}
        if held.get("application") != _APPLICATION:
            raise StoreError(f"{shown(place)} belongs to another program")
        if held.get("schema") == "1":
            _upgrade(engine, place)
        elif held.get("schema") != str(SCHEMA_VERSION):
            raise StoreError(
                f"{shown(place)} has schema {held.get('schema')}, and this demur reads {SCHEMA_VERSION}; "
                "use the version that wrote it, or export and import again"
            )
        return True
    foreign = names if engine.dialect.name == "sqlite" else {name for name in names if name.startswith(PREFIX)}
    if foreign:
        raise StoreError(f"{shown(place)} is a database of another program (it holds {sorted(foreign)[0]!r})")
    return False


def _upgrade(engine: Engine, place: str) -> None:
    """Bring a store of schema 1 up to date: scores got a flag. Nothing in it is changed."""
    with writing(engine, place, alone=True) as connection:
        if connection.execute(select(meta.c.value).where(meta.c.name == "schema")).scalar_one() != "1":
            return  # another process was quicker
        connection.execute(text(f"ALTER TABLE {scores.name} ADD COLUMN flag VARCHAR(20)"))
        connection.execute(meta.update().where(meta.c.name == "schema").values(value=str(SCHEMA_VERSION)))
