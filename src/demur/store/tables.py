"""The tables of a store. A change here needs a new SCHEMA_VERSION.

Paths are keyed by run, problem and path index, so nothing can be stored twice and what is missing can be read off.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 2
PREFIX = "demur_"

metadata = MetaData()

meta = Table(
    "demur_meta", metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

runs = Table(
    "demur_runs", metadata,
    Column("run", Integer, primary_key=True, autoincrement=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("pipeline", Text, nullable=False, doc="JSON: how paths are made; decides whether a run may go on"),
    Column("fingerprint", String(64), nullable=False, doc="SHA-256 of the pipeline"),
    Column("n_paths", Integer, doc="paths a whole pool has; null for imported pools of any size"),
    Column("created", String(40), nullable=False),
)  # fmt: skip


def _of_run(*, part_of_key: bool = True) -> Column[int]:
    return Column("run", Integer, ForeignKey(runs.c.run), primary_key=part_of_key, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


problems = Table(
    "demur_problems", metadata, _of_run(), _number("number"),
    Column("id", Text, nullable=False),
    Column("question", Text),
    Column("gold", Text, nullable=False, doc="JSON list"),
    Column("cluster", Text),
    Column("kind", Text, doc="the problem's group"),
    Column("extra", Text, nullable=False, doc="JSON object"),
    UniqueConstraint("run", "id"),
)  # fmt: skip

pools = Table(
    "demur_pools", metadata, _of_run(), _number("number"),
    Column("n_paths", Integer, nullable=False),
    Column("completed", String(40), nullable=False),
)  # fmt: skip

paths = Table(
    "demur_paths", metadata, _of_run(), _number("number"), _number("path"),
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
)  # fmt: skip

texts = Table(
    "demur_texts", metadata, _of_run(), _number("number"), _number("path"),
    Column("text", LargeBinary, nullable=False, doc="UTF-8, deflated; apart from the rest, which is read without it"),
)  # fmt: skip

scorers = Table(
    "demur_scorers", metadata, _of_run(),
    Column("name", String(200), primary_key=True),
    Column("identity", Text, nullable=False, doc="JSON: model, prompt, sign …"),
)  # fmt: skip

scores = Table(
    "demur_scores", metadata, _of_run(),
    Column("name", String(200), primary_key=True),
    _number("number"), _number("path"),
    Column("value", Float(53), nullable=False),
    Column("flag", String(20), doc="why the value is not quite what it should be: floor, cut, empty"),
    sqlite_with_rowid=False,
)  # fmt: skip

sessions = Table(
    "demur_sessions", metadata,
    Column("session", Integer, primary_key=True, autoincrement=True),
    _of_run(part_of_key=False),
    Column("command", String(40), nullable=False),
    Column("started", String(40), nullable=False),
    Column("facts", Text, nullable=False, doc="JSON: versions, seconds, paths, tokens, errors"),
)  # fmt: skip
