"""A process at work on a run: it claims problems, is seen, counts what comes, and hands back what is left."""

from __future__ import annotations

import contextlib
import math
import secrets
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from demur.errors import StoreError, StoreUnreachable
from demur.files.strict_json import as_json
from demur.store._tables import workers
from demur.store.connection import insertion
from demur.store.patience import patient
from demur.store.processes import this_process
from demur.store.shared_work import (
    LEASE_SECONDS,
    AtWork,
    all_at_work,
    claiming,
    close_account,
    date_of,
    lease_clock,
    now_of,
    open_account,
    prepare,
    spending_of,
    take_over,
)

if TYPE_CHECKING:
    from demur.store.reading import RunReader


@dataclass(frozen=True, slots=True)
class Claimed:
    """What came of wanting more work."""

    numbers: tuple[int, ...]
    """The problems that are this worker's from now on."""
    others: tuple[str, ...]
    """Who else is at the same work, by name."""
    by_others: int
    """Paths that came to all others, ever: as long as it is the same, they changed nothing."""
    refusal: str
    """Which budget has no room for the next problem, and the way out; nothing where none is in the way."""
    seconds_left: float | None
    """Of the budget, for each who is at work; None where it has none."""
    reserved: int = 0
    """Paths of the problems that this worker has, which did not come yet."""
    reserved_by_others: int = 0


class Worker:
    """One process at one task of a run. `lease` is how long nothing may be seen of it, in seconds.

    Used from several threads: one that claims, one that saves, one that renews.
    """

    def __init__(self, run: RunReader, task: str, concurrency: int, lease: float = LEASE_SECONDS) -> None:
        self.run, self.task, self.concurrency, self.lease = run, task, concurrency, lease
        self.patience = run.patience
        self.lost = 0
        """How often others took over from it, because nothing was seen of it for too long."""
        self._key = secrets.token_hex(16)
        self._process = this_process()
        self._held: dict[int, int] = {}
        """The problems that it claims, and how many paths of each are to come."""
        self._paths = self._tokens = self._lost_before = 0
        """What came, as its row has it; and `lost` when it was last written there."""
        self._counting = threading.Lock()
        self._writing = threading.Lock()
        self.has_ended = self._in_doubt = False
        """`_in_doubt`: its claims ended without its doing, and others may have them."""
        self._seen = self._lenient_until = time.monotonic()
        self._begin()

    @patient
    def _begin(self) -> None:
        prepare(self.run.engine, self.run.place)
        with self._claiming() as connection:
            open_account(connection, self.run.key, self.task)
            self._enter(connection)

    def claim(self, problems: Mapping[int, int], most: int, left: int) -> Claimed:
        """Up to so many of some problems, given in order with the paths they lack, that nobody else claims.

        `left` is how many problems lack paths in all: nobody takes more than a fair share of what is left.
        """
        with self._writing:
            return self._claim(problems, most, left)

    @patient
    def _claim(self, problems: Mapping[int, int], most: int, left: int) -> Claimed:
        if self.has_ended:
            return Claimed((), (), 0, "", None)
        with self._claiming() as connection:
            everybody = self._everybody(connection)
            # Before any is taken over: what came to those is then in the account too, and would be counted twice.
            spending = spending_of(connection, self.run.key, self.task, everybody)
            mates = self._mates(connection, everybody)
            theirs = frozenset().union(*(one.numbers for one in mates))
            held, promised = self._claims(theirs)
            came = sum(one.paths for one in everybody if one.worker == self._key)
            # A save counts in the row first and here after it: what was promised, less what the row has, is right
            # before, between and after the two.
            mine, reserved_by_others = max(0, promised - came), sum(one.open_paths for one in mates)
            if spending.most_tokens is not None and not spending.paths:
                most = min(most, self.concurrency)  # nobody knows yet what a path costs
            share = math.ceil((left - len(theirs)) / (2 * (1 + len(mates))))
            free = ((number, size) for number, size in problems.items() if number not in theirs and number not in held)
            wanted = islice(free, max(1, min(most, share)))
            so_far = replace(spending, promised=mine + reserved_by_others)
            numbers, refusal = so_far.granted(wanted, all_needed=self.run.stopping is None)
            new = {number: problems[number] for number in numbers}
            self._write(connection, held | new, promised + sum(new.values()))
        with self._counting:
            self._held |= new
        seconds = None if spending.seconds_left is None else spending.seconds_left / (1 + len(mates))
        by_others = spending.paths - came
        names, reserved = tuple(one.name for one in mates), (mine, reserved_by_others)
        return Claimed(tuple(numbers), names, by_others, refusal, seconds, *reserved)

    def renew(self) -> None:
        """Be seen."""
        with self._writing:
            self._renew()

    @patient
    def _renew(self) -> None:
        if self.has_ended:
            return
        with self._claiming() as connection:
            everybody = self._everybody(connection)
            theirs = [one.numbers for one in everybody if one.worker != self._key and one.task == self.task]
            self._write(connection, *self._claims(frozenset().union(*theirs)))

    def came(self, connection: Connection, paths: int, tokens: int) -> None:
        """Count what comes, in the transaction that saves it; `counted` is to follow when that is committed."""
        self._be_seen(connection)
        this = workers.update().where(workers.c.worker == self._key)
        connection.execute(this.values(paths=self._paths + paths, tokens=self._tokens + tokens))
        self._lost_before = self.lost

    def counted(self, numbers: Sequence[int], tokens: int) -> None:
        """Paths of these problems were saved."""
        self._was_seen()
        with self._counting:
            if self.lost == self._lost_before:  # else they are in the account by now
                self._paths, self._tokens = self._paths + len(numbers), self._tokens + tokens
            for number in numbers:
                if self._held.get(number):
                    self._held[number] -= 1

    def done(self, numbers: Collection[int]) -> None:
        """Whatever comes of these problems is saved; others may have them from the next claim on."""
        with self._counting:
            for number in numbers:
                self._held.pop(number, None)

    def end(self) -> None:
        """Hand back everything. Where that fails, its time will be up."""
        with self._writing, contextlib.suppress(StoreError):
            self.has_ended = True
            try:
                self._leave()
            except StoreUnreachable:  # a connection that was cut is opened anew at once
                self._leave()

    def _leave(self) -> None:
        with self._claiming() as connection:
            for one in self._everybody(connection):
                if one.worker == self._key:
                    close_account(connection, self.run.key, one)

    @property
    def _milliseconds(self) -> int:
        return int(1000 * self.lease)

    def _claiming(self) -> contextlib.AbstractContextManager[Connection]:
        return claiming(self.run.engine, self.run.place, self.run.key)

    def _everybody(self, connection: Connection) -> list[AtWork]:
        """Who is at work, this process too. Its row is written first: until this ends, nothing of its own is saved."""
        self._be_seen(connection)
        everybody = all_at_work(connection, self.run.key, now_of(connection))
        self._was_seen()
        return everybody

    def _was_seen(self) -> None:
        """The database is there. Where it was not for a while, nobody was seen: those who live get time to be."""
        now = time.monotonic()
        if now - self._seen > self.lease:
            self._lenient_until = now + self.lease
        self._seen = now

    def _mates(self, connection: Connection, everybody: Sequence[AtWork]) -> list[AtWork]:
        """Who else is at the same task. From those whose time is up, their claims are taken."""
        lenient = time.monotonic() < self._lenient_until
        over = [one for one in everybody if one.worker != self._key and (one.is_gone or (one.is_over and not lenient))]
        ended = {one.worker for one in over if take_over(connection, self.run, one)}
        return [one for one in everybody if one.task == self.task and one.worker not in {*ended, self._key}]

    def _claims(self, theirs: Collection[int]) -> tuple[dict[int, int], int]:
        """What it holds, and how many paths will have come to it then; without what others took over."""
        with self._counting:
            if self._in_doubt:
                self._held = {number: size for number, size in self._held.items() if number not in theirs}
                self._in_doubt = False
            return dict(self._held), self._paths + sum(self._held.values())

    def _write(self, connection: Connection, held: Collection[int], promised: int) -> None:
        """Its claims as they should be now."""
        this = workers.update().where(workers.c.worker == self._key)
        connection.execute(this.values(numbers=as_json(sorted(held)), promised=promised))

    def _be_seen(self, connection: Connection) -> None:
        """Its time begins anew. Where others took over, and what came is in the account, so does its row."""
        now = lease_clock(connection.dialect.name)
        this = workers.update().where(workers.c.worker == self._key)
        if connection.execute(this.values(seen=now, until=now + self._milliseconds)).rowcount:
            return
        if self._enter(connection):  # else another thread of this process was quicker
            self.lost, self._in_doubt = self.lost + 1, True
            with self._counting:
                self._paths = self._tokens = 0

    def _enter(self, connection: Connection) -> bool:
        """Have a row; whether there was none."""
        now = lease_clock(connection.dialect.name)
        known = {"host": self._process.host, "pid": self._process.pid, "process": self._process.mark}
        seen = {"since": date_of(connection), "begun": now, "seen": now, "until": now + self._milliseconds}
        counts = {"paths": 0, "promised": 0, "tokens": 0}
        row = {"worker": self._key, "run": self.run.key, "task": self.task, "numbers": "[]", **known, **seen, **counts}
        return bool(connection.execute(insertion(workers, connection.dialect.name).values(**row)).rowcount)
