"""What the families of tables share: transactions, patience, the clock of leases."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Column, Connection, Engine, func, or_, select
from sqlalchemy.types import BigInteger

from demur.errors import DemurError, InvalidValue
from demur.store.connection import UNREADABLE, damaged, reading, writing
from demur.store.patience import Patience

LONGEST_LEASE = 24 * 3600
"""Seconds. What is leased for longer than this from now was leased before the clock was set back."""


class TableFamily:
    """Some tables of a service's store, and what is done with them."""

    def __init__(self, engine: Engine, place: str, patience: Patience) -> None:
        self.engine, self.place, self.patience = engine, place, patience

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with reading(self.engine, self.place) as connection:
            yield connection

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """One transaction that writes. What it reads and cannot understand ends it, with nothing written."""
        with writing(self.engine, self.place, alone=alone) as connection:
            try:
                yield connection
            except DemurError:
                raise
            except UNREADABLE as error:
                raise damaged(self.place, f"it holds what demur never wrote: {error}") from None


def fresh_token() -> str:
    """A name that nobody else has or can guess: 256 random bits."""
    return secrets.token_urlsafe(32)


def lease_clock(connection: Connection) -> int:
    """Now, in milliseconds; where there is a server by its clock, so that those of its clients need not agree."""
    if connection.dialect.name == "postgresql":
        seconds = func.extract("epoch", func.clock_timestamp())
        return int(connection.execute(select(func.floor(seconds * 1000).cast(BigInteger))).scalar_one())
    return time.time_ns() // 1_000_000


def lease_end(now: int, seconds: float) -> int:
    return now + int(seconds * 1000)


def checked_lease(seconds: float) -> float:
    if not 0 < seconds <= LONGEST_LEASE:
        raise InvalidValue(f"a lease lasts from 0 to {LONGEST_LEASE} seconds, got {seconds!r}")
    return seconds


def is_free(until: Column[Any], now: int) -> Any:
    """Whether a lease does not run at a moment."""
    return or_(until.is_(None), until <= now, until > now + LONGEST_LEASE * 1000)


def runs(until: int | None, now: int) -> bool:
    """Whether a lease runs at a moment."""
    return until is not None and now < until <= now + LONGEST_LEASE * 1000
