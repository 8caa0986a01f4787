"""Opening a store: SQLite in WAL mode or PostgreSQL, its version checked before anything is touched."""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import Connection, Engine, Table, bindparam, create_engine, event, func, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.types import String, Text

from demur.errors import MissingExtra, StoreError, StoreUnreachable
from demur.store._tables import (
    NAMES,
    OF_RUNS,
    OF_RUNS_ALONE,
    OF_SHARING,
    PREFIX,
    READABLE,
    SCHEMA_VERSION,
    SHARING,
    meta,
    metadata,
)
from demur.store.patience import Patience

_MAGIC = b"SQLite format 3\x00"
_APPLICATION = "demur"
_BUSY_SECONDS = 60.0
"""How long another process may hold a file, if the patience of whoever opens it is not shorter."""
UNREADABLE = (zlib.error, ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What taking apart a damaged row ends in."""
_COMPUTED = """SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%'
UNION ALL SELECT 'computed column', c.name FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c WHERE c.hidden > 1
LIMIT 1"""
_LOCK = 0x64656D7572  # "demur"
STALL_SECONDS = 60.0
"""How long a transaction that writes may stand still in PostgreSQL, its process being stopped or its machine asleep.

Its locks are in the way of all others. The server then ends it, and its process does it again when it goes on.
"""
_STALL = "stall_milliseconds"
_ROWS_AT_ONCE = 5000
_CONNECTION = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Seconds after which a silent server is taken to be away, unless the address says otherwise."""


def shown(place: str) -> str:
    """A place as it may be printed: without a password."""
    if "://" not in place:
        return place
    try:
        return _without_secrets(make_url(place)).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return place.partition("://")[0] + "://…"


def pasted(place: str) -> tuple[str, bool]:
    """A place as an argument of a command that can be pasted, without its password; and whether it has one."""
    if "://" not in place:
        return shlex.quote(place), False
    url = make_url(place)
    kept = _without_secrets(url)
    bare = URL.create(url.drivername, url.username, None, url.host, url.port, url.database, kept.query)
    return shlex.quote(bare.render_as_string()), bool(url.password) or kept != url


def _without_secrets(url: URL) -> URL:
    return url.set(query={name: value for name, value in url.query.items() if "password" not in name})


def connect(
    place: str | os.PathLike[str],
    *,
    create: bool,
    patience: Patience,
    stall: float = STALL_SECONDS,
    private: bool = False,
) -> Engine:
    """An engine on a store whose schema this version understands; made new where `create` allows.

    A new file that is `private` can be read by its owner alone, and so can the files that SQLite keeps next to it.

    A server that is not there is an error at once; one that says that it is starting is waited for. `stall` is how long
    a transaction that writes may stand still there, in seconds.
    """
    named = os.fspath(place)
    if "://" in named:
        engine = _postgres(named, stall)
    else:
        engine = _sqlite(Path(named), create=create, patience=patience, private=private)

    def check() -> None:
        with translated(named):
            try:
                _check(engine, named, create=create)
            except UnicodeError as error:
                if engine.dialect.name == "sqlite":
                    raise damaged(named, str(error)) from None
                raise StoreError(f"{shown(named)} cannot be reached by that name: {error}") from None

    try:
        patience.outlast(check, only="the database system is")  # starting up, shutting down, in recovery
    except StoreError:
        engine.dispose()
        raise
    return engine


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Database errors as one line that says what to do; never with the password of a URL."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _told(place, error, getattr(error, "orig", None) or error) from None
    except sqlite3.Error as error:  # outside of any transaction
        raise _told(place, error, error) from None


def _told(place: str, error: Exception, cause: BaseException) -> StoreError:
    reason, where = " ".join(str(cause).split()), shown(place)
    hint = next((said for mark, said in _HINTS.items() if mark in reason), None)
    if hint is not None:
        return StoreError(f"{where}: {hint} ({reason})")
    if isinstance(error, DBAPIError) and _is_passing(error):
        return StoreUnreachable(
            f"{where} went away or cannot be reached: {reason}",
            "what was saved is safe: run the same command again when it is there",
        )
    if isinstance(cause, sqlite3.DatabaseError) and (type(cause) is sqlite3.DatabaseError or "decode" in reason):
        return damaged(place, reason)
    if isinstance(error, (ProgrammingError, IntegrityError)):
        return StoreError(f"{where} cannot be used as a store of demur: {reason}")
    return StoreError(f"{where}: {reason}")


_HINTS = {
    "readonly": "the store cannot be written; check its permissions and those of its folder",
    "unable to open": "the store cannot be opened; check its permissions and those of its folder",
    "disk is full": "the disk is full; what was saved is safe: make room and run the same command again",
    "No space left": "its disk is full; what was saved is safe: make room and run the same command again",
    "disk I/O": "the disk refused to read or write; what was saved is safe: check it and run the same command again",
    "locked": "another process holds the store; try again when it has finished",
}
_PASSING = ("08", "40", "57P", "53300", "25P03")
"""SQLSTATEs that pass, by their beginning: no connection, another transaction in the way, shutting down or starting,
too many, and a transaction of ours that stood still for too long."""
_FINAL = ("authentication failed", "does not exist", "pg_hba.conf", "not permitted", "invalid ")


def _is_passing(error: DBAPIError) -> bool:
    """Whether a server is away for now, or the transaction was in the way of another."""
    if isinstance(error.orig, sqlite3.Error):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if error.connection_invalidated or state is not None:
        return error.connection_invalidated or str(state).startswith(_PASSING)
    return isinstance(error, OperationalError) and not any(mark in str(error.orig) for mark in _FINAL)


def damaged(place: str, what: str) -> StoreError:
    """A store that holds what demur never wrote."""
    salvage = "use a copy of it, or save what can be read: sqlite3 FILE .recover | sqlite3 NEW.db"
    remedy = "use a backup of the database" if "://" in place else salvage
    return StoreError(f"{shown(place)} is damaged: {what}", remedy)


def _sqlite(path: Path, *, create: bool, patience: Patience, private: bool) -> Engine:
    try:
        _refuse_other_files(path, create=create)
        if private and create:
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"the store {path} cannot be opened: {error.strerror or error}") from None
    # A place that cannot be written has no room for the files that SQLite keeps beside a store; it is read as it is.
    still = not create and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1" if still else str(path)
    url = URL.create("sqlite", database=address, query={"uri": "true"} if still else {})
    engine = create_engine(url, connect_args={"timeout": min(_BUSY_SECONDS, max(1.0, patience.seconds))})

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


def _refuse_other_files(path: Path, *, create: bool) -> None:
    """Raise where there is no SQLite file and none may be made; make the folder for a new one."""
    if "\0" in str(path):
        raise StoreError(f"{str(path)!r} is no name of a file")
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name a file in it, such as {path / 'run.db'}")
    if path.exists() and not path.is_file():
        raise StoreError(f"{path} is a pipe or a device; a store is a file, or a postgresql:// address")
    if path.exists() and path.stat().st_size:
        with path.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                to_import = f"demur import {shlex.quote(str(path))} -o run.db"
                raise StoreError(f"{path} is not a store; a pool file becomes one with: {to_import}")
    elif not create:
        raise StoreError(f"there is no run {path}; `demur sample` or `demur import` make one")
    elif not path.parent.is_dir():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {path.parent}: {error.strerror}") from None


@contextmanager
def writing(engine: Engine, place: str, *, alone: bool = False) -> Iterator[Connection]:
    """One transaction that writes; `alone`, no other such transaction runs beside it."""
    with translated(place), engine.connect() as connection, connection.execution_options(writes=True).begin():
        if engine.dialect.name == "postgresql":
            stall = connection.get_execution_options()[_STALL]
            connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {stall:d}")
            if alone:
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        yield connection


@contextmanager
def reading(engine: Engine, place: str) -> Iterator[Connection]:
    """One transaction that reads: all of it sees the same state. Rows that demur cannot have written are refused."""
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with translated(place), engine.connect() as connection:
        try:
            yield connection
        except UNREADABLE as error:
            raise damaged(place, f"it holds what demur never wrote: {error}") from None


def _postgres(place: str, stall: float) -> Engine:
    try:
        url = make_url(place)
        if "\0" in unquote(place):  # the client would cut the address there, and find another server
            raise ValueError("a NUL")
    except (ArgumentError, ValueError):
        raise StoreError("the store's address cannot be read; it looks like postgresql://user@host/database") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise StoreError(
            f"a store is an SQLite file or a postgresql:// address, not {url.drivername}://",
            "name the file itself" if url.get_backend_name() == "sqlite" else "",
        )
    usual = {name: value for name, value in _CONNECTION.items() if name not in url.query}
    options = {_STALL: max(1, round(1000 * stall))}
    try:
        address = url.set(drivername="postgresql+psycopg")
        return create_engine(address, pool_pre_ping=True, connect_args=usual, execution_options=options)
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg", "postgres") from None
    except ArgumentError as error:
        raise StoreError(f"{shown(place)} cannot be used as an address: {error}") from None


def _check(engine: Engine, place: str, *, create: bool) -> None:
    """Refuse a newer or foreign store before touching it; make the tables of a new one."""
    if _is_ours(engine, place):
        return
    if not create:
        raise StoreError(f"{shown(place)} holds no runs; `demur sample` or `demur import` make one")
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with writing(engine, place, alone=True) as connection:
        if meta.name in inspect(connection).get_table_names():
            return  # another process was quicker
        metadata.create_all(connection, tables=[*OF_RUNS, *OF_SHARING])
        known = {"application": _APPLICATION, "schema": str(OF_RUNS_ALONE), SHARING: "1"}
        insert_new(connection, meta, [{"name": name, "value": value} for name, value in known.items()])


def _write_ahead(engine: Engine) -> None:
    """Put a new store into WAL mode for good, where readers work beside a writer.

    SQLite waits for other locks by itself, and not for this one: who makes the same store at the same time has it.
    """
    raw = engine.raw_connection()  # outside of any transaction
    until = time.monotonic() + _BUSY_SECONDS
    try:
        while True:
            try:
                raw.cursor().execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
    finally:
        raw.close()


def _refuse_computed(engine: Engine, place: str) -> None:
    """Raise if a SQLite file computes what it holds: a few bytes of it could be read for ever."""
    with engine.connect() as connection:
        found = connection.exec_driver_sql(_COMPUTED).first()
    if found is not None:
        raise StoreError(f"{shown(place)} holds the {found[0]} {found[1]!r:.60}, and a store holds plain tables alone")


def _is_ours(engine: Engine, place: str) -> bool:
    """Whether a database holds a store; False where it may become one; raises where it is anything else."""
    if engine.dialect.name == "sqlite":
        _refuse_computed(engine, place)
    names = set(inspect(engine).get_table_names())
    if meta.name in names:
        with engine.connect() as connection:
            known = {row.name: row.value for row in connection.execute(select(meta))}
        if known.get("application") != _APPLICATION:
            raise StoreError(f"{shown(place)} belongs to another program")
        if known.get("schema") not in READABLE:
            raise StoreError(
                f"{shown(place)} has schema {known.get('schema')}, and this demur reads up to {SCHEMA_VERSION}; "
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


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert rows; those whose key is there already stay as they are. How many were inserted."""
    if not rows:
        return 0
    if connection.dialect.name == "sqlite":
        return int(connection.execute(insertion(table, "sqlite"), list(rows)).rowcount)
    names, inserted = tuple(rows[0]), 0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        columns = {name: [row[name] for row in part] for name in names}
        inserted += connection.execute(_insertion_of_columns(table, names), columns).rowcount
    return inserted


@cache
def _insertion_of_columns(table: Table, names: tuple[str, ...]) -> Any:
    """The statement that inserts what is new of many rows, given by column, into PostgreSQL.

    Row by row they would go there as a pipeline, and a server that waits for the rest of a pipeline has no clock
    running: it would never end the transaction of a process that is stopped in the middle.
    """

    def column(name: str) -> Any:
        kind = table.c[name].type
        plain = Text() if isinstance(kind, String) else kind  # what is too long is an error, not cut
        return func.unnest(bindparam(name, type_=postgresql.ARRAY(plain, dimensions=1)))

    return insertion(table, "postgresql").from_select(list(names), select(*map(column, names)))


@cache
def insertion(table: Table, dialect: str) -> Any:
    """The statement that inserts what is new, and tells how many rows that were."""
    return (
        (sqlite if dialect == "sqlite" else postgresql)
        .insert(table)
        .on_conflict_do_nothing()
        .execution_options(preserve_rowcount=True)
    )
