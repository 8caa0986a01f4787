"""Work that several processes share: who is at it, what each claims, what it has cost.

Each process at work has one row: the problems that it claims, until when, and what came to it. Who wants to claim some
reads all rows of the run and rewrites its own, and nobody else does so meanwhile. A claim ends when its process is done
with it, when the process is known to be gone, or when nothing was seen of the process until its time was up; then
whoever notices takes over, and a note in the run says what may have been paid for in vain.

Times are the database's: PostgreSQL's own clock; with SQLite, where all are on one machine, its clock that is never
set. What a process believes about the time decides nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, func, insert, select
from sqlalchemy.types import BigInteger

from demur.errors import DemurError
from demur.store._tables import OF_SHARING, SHARING, meta, metadata, paths, sessions, work, workers
from demur.store.budgets import LIMITS, Spending
from demur.store.connection import UNREADABLE, damaged, insert_new, reading, writing
from demur.store.ended_pools import keys_of_paths
from demur.store.processes import Process, is_gone
from demur.store.rows import plain

if TYPE_CHECKING:
    from demur.store.reading import RunReader

LEASE_SECONDS = 60.0
"""How long nothing may be seen of a process before others take over. All claims last as long or shorter."""
SAMPLING = "sample"
_CLAIMING = 0x646D7572  # "dmur"


@dataclass(frozen=True, slots=True)
class AtWork:
    """A process at work on a run."""

    worker: str
    name: str
    """Machine and number of the process."""
    task: str
    """sample, or score:NAME."""
    since: str
    seconds: float
    """At work."""
    seen: int
    """When it was seen, by the lease clock."""
    unseen: float
    """Seconds since then."""
    numbers: frozenset[int]
    """The problems that it claims."""
    promised: int
    paths: int
    """That came to it."""
    tokens: int
    is_over: bool
    """Whether its time is up, so that others may take over."""
    is_gone: bool
    """Whether it is known to be gone, as it can be on the same machine."""

    @property
    def rate(self) -> float:
        """Paths per second."""
        return self.paths / self.seconds if self.seconds else 0.0

    @property
    def open_paths(self) -> int:
        """Under way, or about to be."""
        return max(0, self.promised - self.paths)


def is_shared(connection: Connection) -> bool:
    """Whether the tables of shared work are there."""
    return connection.execute(select(meta.c.value).where(meta.c.name == SHARING)).first() is not None


def prepare(engine: Engine, place: str) -> None:
    """Add the tables of shared work where an earlier version made the store; two processes may try at once."""
    with reading(engine, place) as connection:
        if is_shared(connection):
            return
    with writing(engine, place, alone=True) as connection:
        if not is_shared(connection):
            metadata.create_all(connection, tables=OF_SHARING)
            connection.execute(insert(meta), {"name": SHARING, "value": "1"})


@contextmanager
def claiming(engine: Engine, place: str, run: int) -> Iterator[Connection]:
    """One transaction in which nobody else claims work of the run."""
    with writing(engine, place) as connection:
        _claim_alone(connection, run)
        try:
            yield connection
        except DemurError:
            raise
        except UNREADABLE as error:
            raise damaged(place, f"it holds what demur never wrote: {error}") from None


def _claim_alone(connection: Connection, run: int) -> None:
    """Until the transaction ends nobody else claims work of the run. A file is locked from the beginning."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_CLAIMING, run)))


def lease_clock(dialect: str) -> Any:
    """Now, in milliseconds: an expression for a server, a number for a file."""
    if dialect == "postgresql":
        return func.floor(func.extract("epoch", func.clock_timestamp()) * 1000).cast(BigInteger)
    return time.monotonic_ns() // 1_000_000  # of the machine, whatever its date is set to


def now_of(connection: Connection) -> int:
    now = lease_clock(connection.dialect.name)
    return now if isinstance(now, int) else int(connection.execute(select(now)).scalar_one())


def date_of(connection: Connection) -> str:
    """Today's date and time, as the database has it."""
    if connection.dialect.name != "postgresql":
        return datetime.now(UTC).isoformat(timespec="seconds")
    now = now_of(connection) / 1000
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")


def all_at_work(connection: Connection, run: int, now: int) -> list[AtWork]:
    """Who is at work on a run, or was until something befell it; the earliest first."""
    query = select(workers).where(workers.c.run == run).order_by(workers.c.since, workers.c.worker)
    return [_at_work(row, now) for row in connection.execute(query)]


def _at_work(row: Any, now: int) -> AtWork:
    # What is claimed for far longer than any claim lasts was claimed before the machine was started anew.
    over = not now < row.until <= now + 2 * LEASE_SECONDS * 1000
    gone = is_gone(row.pid, row.process)
    seconds, unseen = max(0.0, (row.seen - row.begun) / 1000), (now - row.seen) / 1000  # a server's clock may be set
    name = Process(row.host, row.pid, None).name
    numbers = frozenset(json.loads(row.numbers))
    counts = (row.promised, row.paths, row.tokens)
    seen = (row.seen, max(0.0, unseen))
    return AtWork(row.worker, name, row.task, row.since, seconds, *seen, numbers, *counts, over, gone)


def spending_of(connection: Connection, run: int, task: str, everybody: list[AtWork]) -> Spending:
    """What a task of a run has cost, with what it costs those who are at it."""
    row = connection.execute(select(work).where(work.c.run == run, work.c.task == task)).first()
    mates = [one for one in everybody if one.task == task]
    live = {
        "paths": sum(one.paths for one in mates),
        "tokens": sum(one.tokens for one in mates),
        "milliseconds": round(sum(1000 * one.seconds for one in mates)),
    }
    before = {name: 0 if row is None else getattr(row, name) for name in live}
    limits: dict[str, Any] = {name: None if row is None else getattr(row, name) for name in LIMITS}
    promised = sum(one.open_paths for one in mates if not (one.is_over or one.is_gone))
    return Spending(promised=promised, **{name: live[name] + before[name] for name in live}, **limits)


def open_account(connection: Connection, run: int, task: str) -> None:
    """Have a row for what a task costs. What was sampled before there was one counts too; its seconds nobody knows."""
    this = select(work.c.run).where(work.c.run == run, work.c.task == task)
    if connection.execute(this).first() is None:
        sampled, tokens = 0, 0
        if task == SAMPLING:
            counted = select(func.count(), func.coalesce(func.sum(paths.c.n_tokens), 0)).where(paths.c.run == run)
            sampled, tokens = connection.execute(counted).one()
        row = {"run": run, "task": task, "paths": sampled, "tokens": int(tokens), "milliseconds": 0}
        insert_new(connection, work, [row])


def count_as_sampled(connection: Connection, run: int, came: int, tokens: int) -> None:
    """Have paths that came by no worker, out of a batch say, in the account of sampling, if there is one already.

    Samplers see by it that paths came that are no longer to be drawn. An account that is opened at the same time
    either counts them itself or is there to be added to.
    """
    _claim_alone(connection, run)
    if is_shared(connection):
        account = (work.c.run == run) & (work.c.task == SAMPLING)
        more = {"paths": work.c.paths + came, "tokens": work.c.tokens + tokens}
        connection.execute(work.update().where(account).values(more))


def close_account(connection: Connection, run: int, one: AtWork) -> bool:
    """Have what came to a worker in the account of its task, and its row gone; False where it was gone already."""
    this = workers.delete().where(workers.c.worker == one.worker, workers.c.seen == one.seen)
    if not connection.execute(this).rowcount:
        return False
    account = (work.c.run == run) & (work.c.task == one.task)
    more = {"paths": one.paths, "tokens": one.tokens, "milliseconds": round(1000 * one.seconds)}
    connection.execute(work.update().where(account).values({name: work.c[name] + more[name] for name in more}))
    return True


def take_over(connection: Connection, run: RunReader, one: AtWork) -> bool:
    """End the claims of a worker that is gone, and note what it leaves; False where it was seen again meanwhile."""
    if not close_account(connection, run.key, one):
        return False
    lost = min(one.open_paths, _under_way(connection, run, one))
    facts = {
        "of": one.task,
        "worker": one.name,
        "came": one.paths,
        "tokens": one.tokens,
        "seconds": round(one.seconds, 3),
        "unseen_seconds": round(one.unseen, 1),
        "in_vain_at_most": lost,
    }
    row = {"run": run.key, "command": "takeover", "started": one.since, "facts": plain(facts)}
    connection.execute(insert(sessions), row)
    return True


def _under_way(connection: Connection, run: RunReader, one: AtWork) -> int:
    """The paths that a worker may have asked for in vain: those of the problems that it claimed that are not there.

    Under a stopping rule those of the next wave, for no other is asked for before that is saved. Those that are there
    without log-probabilities, where others have some, may have been asked for again.
    """
    if one.task != SAMPLING:
        return one.open_paths
    mute = _without_logprobs(connection, run.key, one.numbers)
    if run.stopping is not None:
        keys = keys_of_paths(connection, run.key, run.read_by, list(one.numbers))
        return mute + sum(len(run.stopping.wanted(keys.get(number, {}))) for number in one.numbers)
    counted = select(paths.c.number, func.count()).where(paths.c.run == run.key, paths.c.number.in_(list(one.numbers)))
    there: dict[int, int] = {row[0]: row[1] for row in connection.execute(counted.group_by(paths.c.number))}
    return mute + sum(max(0, run.whole - there.get(number, 0)) for number in one.numbers)


def _without_logprobs(connection: Connection, run: int, numbers: Collection[int]) -> int:
    """The paths of some problems that came without log-probabilities; none where no path of the run has any."""
    mine = paths.c.run == run
    if connection.execute(select(paths.c.path).where(mine, paths.c.logprob_mean.is_not(None)).limit(1)).first() is None:
        return 0
    mute = select(func.count()).where(mine, paths.c.number.in_(list(numbers)), paths.c.logprob_mean.is_(None))
    return int(connection.execute(mute).scalar_one())
