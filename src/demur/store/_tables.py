"""The tables of a store. A change here needs a new SCHEMA_VERSION.

Paths are keyed by run, problem and path index, so nothing can be stored twice; what is missing, and which pools are
whole, is read off the paths themselves and noted nowhere. Schema 1 noted whole pools in a table of their own, which two
writers of one pool could leave without it; what else it holds is the same, so it is read and written as it is.

A store of runs alone is made with schema 2, which earlier versions read too. Schema 3 has the tables of a service
beside these (`store/service/`), and the first service that opens a store adds them.

The tables of shared work stand beside either: the first command that samples or scores adds them, and `meta` says that
they are there. They need no new schema. An earlier version passes them by and does as it always did: it may pay for a
path that another is at, and stores none twice.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, MetaData, Table, UniqueConstraint
from sqlalchemy.types import BigInteger, Float, Integer, LargeBinary, String, Text

SCHEMA_VERSION = 3
OF_RUNS_ALONE = 2
READABLE = ("1", "2", "3")
SHARING = "sharing"
"""The row of `meta` that says that the tables of shared work are there."""
PREFIX = "demur_"
NAMES = ("meta", "runs", "problems", "paths", "texts", "scorers", "scores", "sessions")

metadata = MetaData()


def table(name: str, *columns: Any, **options: Any) -> Table:
    return Table(PREFIX + name, metadata, *columns, **options)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


meta = table("meta", Column("name", String(64), primary_key=True), Column("value", Text, nullable=False))

runs = table(
    "runs",
    Column("run", Integer, primary_key=True, autoincrement=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("description", Text, nullable=False, doc="JSON: how paths are made; decides whether a run may go on"),
    Column("fingerprint", String(80), nullable=False, doc="of the description"),
    Column("n_paths", Integer, doc="paths a whole pool has; null for imported pools of any size"),
    Column("created", String(40), nullable=False),
)


def _of_run(*, part_of_key: bool = True) -> Column[int]:
    return Column("run", Integer, ForeignKey(runs.c.run), primary_key=part_of_key, nullable=False)


def _key(*numbers: str) -> list[Column[int]]:
    """What a row is known by: its run, and numbers within it."""
    return [_of_run(), *(_number(name) for name in numbers)]


problems = table(
    "problems",
    *_key("number"),
    Column("id", Text, nullable=False),
    Column("question", Text),
    Column("gold", Text, nullable=False, doc="JSON list"),
    Column("cluster", Text),
    Column("group", Text),
    Column("extra", Text, nullable=False, doc="JSON object"),
    UniqueConstraint("run", "id"),
)

paths = table(
    "paths",
    *_key("number", "path"),
    Column("answer", Text),
    Column("extraction", String(40), doc="the rule that found the answer; null where the path has no answer field"),
    Column("finish_reason", String(40)),
    Column("n_tokens", Integer),
    Column("logprob_mean", Float(53)),
    Column("logprob_std", Float(53)),
    Column("seed", BigInteger),
    Column("latency", Float(53), doc="seconds until the request that brought it was answered"),
    Column("extra", Text, doc="JSON object, for fields of imported paths"),
    sqlite_with_rowid=False,
)

texts = table(
    "texts",
    *_key("number", "path"),
    Column("text", LargeBinary, nullable=False, doc="UTF-8, deflated; apart from the rest, which is read without it"),
)

scorers = table(
    "scorers",
    _of_run(),
    Column("name", String(200), primary_key=True),
    Column("identity", Text, nullable=False, doc="JSON: model, prompt, sign …"),
)

scores = table(
    "scores",
    _of_run(),
    Column("name", String(200), primary_key=True),
    _number("number"),
    _number("path"),
    Column("value", Float(53), nullable=False),
    Column("flag", String(20), doc="why the value is not quite what it should be: floor, cut, empty"),
    sqlite_with_rowid=False,
)

sessions = table(
    "sessions",
    Column("session", Integer, primary_key=True, autoincrement=True),
    _of_run(part_of_key=False),
    Column("command", String(40), nullable=False),
    Column("started", String(40), nullable=False),
    Column("facts", Text, nullable=False, doc="JSON: versions, seconds, paths, tokens, errors"),
)

work = table(
    "work",
    *_key(),
    Column("task", String(240), primary_key=True, doc="sample, or score:NAME"),
    Column("paths", BigInteger, nullable=False, doc="that came to those who are no longer at work"),
    Column("tokens", BigInteger, nullable=False),
    Column("milliseconds", BigInteger, nullable=False),
    Column("most_paths", BigInteger, doc="the budget; null: none"),
    Column("most_tokens", BigInteger),
    Column("most_milliseconds", BigInteger),
)

workers = table(
    "workers",
    Column("worker", String(32), primary_key=True),
    Column("run", Integer, nullable=False),
    Column("task", String(240), nullable=False),
    Column("host", String(40), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("process", String(80), doc="by which others on the same machine see whether it lives"),
    Column("since", String(40), nullable=False),
    Column("begun", BigInteger, nullable=False, doc="this and the next two: milliseconds of the lease clock"),
    Column("seen", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False, doc="when its claims end, unless it is seen again"),
    Column("numbers", Text, nullable=False, doc="JSON list: the problems that it claims"),
    Column("promised", BigInteger, nullable=False, doc="the paths that will have come when those problems are done"),
    Column("paths", BigInteger, nullable=False, doc="that came"),
    Column("tokens", BigInteger, nullable=False),
)

unread = table(
    "unread",
    *(_number(name) for name in ("run", "number", "path")),
    Column("facts", Text, nullable=False, doc="JSON: what is known of the path"),
    Column("text", LargeBinary, nullable=False, doc="as in texts"),
)
"""Paths that came, and whose answers were not read yet. It is there once a path had to be put into it."""

OF_SHARING = [work, workers]
OF_RUNS = [metadata.tables[PREFIX + name] for name in NAMES]
