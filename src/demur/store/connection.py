"""Opening a store: SQLite in WAL mode or PostgreSQL, its version checked before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Table, create_engine, event, func, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError

from demur.errors import MissingExtra, StoreError
from demur.store._tables import NAMES, PREFIX, SCHEMA_VERSION, meta, metadata

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
        raise MissingExtra("PostgreSQL needs psycopg", "postgres") from None


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
        known = {"application": _APPLICATION, "schema": str(SCHEMA_VERSION)}
        connection.execute(meta.insert(), [{"name": name, "value": value} for name, value in known.items()])


def _is_ours(engine: Engine, place: str) -> bool:
    """Whether a database holds a store; False where it may become one; raises where it is anything else."""
    names = set(inspect(engine).get_table_names())
    if meta.name in names:
        with engine.connect() as connection:
            known = {row.name: row.value for row in connection.execute(select(meta))}
        if known.get("application") != _APPLICATION:
            raise StoreError(f"{shown(place)} belongs to another program")
        if known.get("schema") != str(SCHEMA_VERSION):
            raise StoreError(
                f"{shown(place)} has schema {known.get('schema')}, and this demur reads {SCHEMA_VERSION}; "
                "use the version that wrote it, or export and import again"
            )
        return True
    earlier = next((name for name in names if name.endswith("_meta") and _looks_like_ours(name, names)), None)
    if earlier is not None:
        raise StoreError(
            f"{shown(place)} was written by {earlier.removesuffix('_meta')}, which this program was called before",
            "export its runs with the version that wrote them, then import them here with `demur import`",
        )
    foreign = names if engine.dialect.name == "sqlite" else {name for name in names if name.startswith(PREFIX)}
    if foreign:
        raise StoreError(f"{shown(place)} is a database of another program (it holds {sorted(foreign)[0]!r})")
    return False


def _looks_like_ours(meta_name: str, names: set[str]) -> bool:
    """Whether all the tables of a store are there under another prefix."""
    prefix = meta_name.removesuffix("meta")
    return prefix != PREFIX and all(prefix + name in names for name in NAMES)


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; those whose key is there already stay as they are."""
    if rows:
        connection.execute(_insertion(table, connection.dialect.name), list(rows))


@cache
def _insertion(table: Table, dialect: str) -> Any:
    return (sqlite if dialect == "sqlite" else postgresql).insert(table).on_conflict_do_nothing()
