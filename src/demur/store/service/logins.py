"""Logins to the pages: a cookie's token for some hours, of which only a digest is kept."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import api_keys, logins
from demur.store.service.family import TableFamily, fresh_token
from demur.store.service.keys import digest_of
from demur.store.service.values import NAME, WHOLE


@dataclass(frozen=True, slots=True)
class Login:
    """A login that holds."""

    key: str
    """The id of the API key it was made with."""
    until: int
    csrf: str
    """What a form must bring along. It follows from the cookie's token, and is kept nowhere."""


class Logins(TableFamily):
    """The logins of a service."""

    def begin(self, key: str, until: int) -> tuple[Login, str]:
        """A new login and its token, for the cookie."""
        token = fresh_token()
        NAME.given("key", key)
        self._enter({"digest": digest_of(token), "key": key, "until": WHOLE.given("until", until)})
        return Login(key, until, _csrf(token)), token

    @patient
    def _enter(self, row: dict[str, object]) -> None:
        with self.writing() as connection:
            insert_new(connection, logins, [row])

    @patient
    def find(self, token: str, at: int) -> Login | None:
        """The login of a token; None where there is none, it is over, or its key was revoked."""
        query = select(logins).join(api_keys, api_keys.c.key == logins.c.key)
        query = query.where(logins.c.digest == digest_of(token), logins.c.until > at, api_keys.c.revoked.is_(None))
        with self.reading() as connection:
            row = connection.execute(query).first()
            if row is None:
                return None
            return Login(NAME.stored("key", row.key), WHOLE.stored("until", row.until), _csrf(token))

    @patient
    def end(self, token: str) -> None:
        """Log out."""
        with self.writing() as connection:
            connection.execute(logins.delete().where(logins.c.digest == digest_of(token)))

    @patient
    def forget(self, at: int) -> None:
        """Drop the logins that are over."""
        with self.writing() as connection:
            connection.execute(logins.delete().where(logins.c.until <= WHOLE.given("at", at)))


def _csrf(token: str) -> str:
    return digest_of("csrf:" + token)
