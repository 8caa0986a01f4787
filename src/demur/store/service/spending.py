"""What each API key spent, in paths and tokens, by window of time."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from demur.errors import InvalidValue
from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import charges, spending
from demur.store.service.family import TableFamily, fresh_token
from demur.store.service.values import NAME, WHOLE

_MOST = 2**53


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent in a window of time."""

    paths: int
    tokens: int
    granted: bool = True
    """False where the charge would have passed a limit, and was not made."""


class Spending(TableFamily):
    """Budgets, shared by all replicas."""

    def spend(
        self,
        key: str,
        since: int,
        paths: int,
        tokens: int = 0,
        *,
        most_paths: int | None = None,
        most_tokens: int | None = None,
    ) -> Spent:
        """Charge a key in the window that began at `since`; all that was spent in it, this charge included.

        A charge that would pass a limit is not made. Numbers below 0 give back what was charged too much, to no less
        than nothing, and pass no limit. Charges at the same time count one after the other, and each counts once.
        """
        if not all(type(number) is int and -_MOST < number < _MOST for number in (paths, tokens)):
            raise InvalidValue(f"paths and tokens are whole numbers, got {paths!r:.40} and {tokens!r:.40}")
        NAME.given("key", key)
        WHOLE.given("since", since)
        return self._spend(key, since, paths, tokens, most_paths, most_tokens, fresh_token())

    @patient
    def _spend(
        self,
        key: str,
        since: int,
        paths: int,
        tokens: int,
        most_paths: int | None,
        most_tokens: int | None,
        charge: str,
    ) -> Spent:
        window = (spending.c.key == key, spending.c.since == since)
        with self.writing() as connection:
            insert_new(connection, spending, [{"key": key, "since": since, "paths": 0, "tokens": 0}])
            row = connection.execute(select(spending).where(*window).with_for_update()).one()
            so_far = Spent(WHOLE.stored("paths", row.paths), WHOLE.stored("tokens", row.tokens))
            if connection.execute(select(charges.c.charge).where(charges.c.charge == charge)).first() is not None:
                return so_far  # done before, without our learning of it
            after = Spent(_added(so_far.paths, paths), _added(so_far.tokens, tokens))
            if _passes(paths, after.paths, most_paths) or _passes(tokens, after.tokens, most_tokens):
                return Spent(so_far.paths, so_far.tokens, granted=False)
            connection.execute(charges.insert(), {"charge": charge, "since": since})
            connection.execute(spending.update().where(*window).values(paths=after.paths, tokens=after.tokens))
            return after

    @patient
    def spent(self, key: str, since: int) -> Spent:
        """What a key spent in a window."""
        query = select(spending).where(spending.c.key == NAME.given("key", key), spending.c.since == since)
        with self.reading() as connection:
            row = connection.execute(query).first()
            if row is None:
                return Spent(0, 0)
            return Spent(WHOLE.stored("paths", row.paths), WHOLE.stored("tokens", row.tokens))

    @patient
    def forget(self, before: int) -> None:
        """Drop the windows that began before a time."""
        WHOLE.given("before", before)
        with self.writing() as connection:
            connection.execute(spending.delete().where(spending.c.since < before))
            connection.execute(charges.delete().where(charges.c.since < before))


def _added(so_far: int, more: int) -> int:
    return min(max(so_far + more, 0), _MOST - 1)


def _passes(charged: int, after: int, most: int | None) -> bool:
    return most is not None and charged > 0 and after > most
