"""The store of a service: one object, a family of tables each."""

from __future__ import annotations

import os
from secrets import token_hex
from typing import Self

from demur.errors import StoreError
from demur.store._tables import meta
from demur.store.connection import connect, writing
from demur.store.patience import SECONDS, Patience, patient
from demur.store.service.audits import Audits
from demur.store.service.canaries import Canaries
from demur.store.service.decisions import Decisions
from demur.store.service.events import Events
from demur.store.service.feedback import FeedbackLog
from demur.store.service.keys import ApiKeys
from demur.store.service.logins import Logins
from demur.store.service.monitors import Monitors
from demur.store.service.policies import Policies
from demur.store.service.repeats import Repeats
from demur.store.service.retention import Retention
from demur.store.service.reviews import Reviews
from demur.store.service.spending import Spending
from demur.store.service.upgrade import upgrade

_PROBE_BYTES = 2**15


class ServiceStore:
    """What a service keeps, in an SQLite file or a PostgreSQL database, beside the runs that may be there.

    Every write is one transaction that is committed when the call returns, and bears being done twice. It may be used
    from many threads, and by many processes at once. A server that goes away is waited for, `patience` seconds long.
    `create` makes a store where there is none, and adds the tables of a service to one of runs. A new file is for its
    owner alone; one that is there keeps its mode.
    """

    def __init__(self, place: str | os.PathLike[str], *, create: bool = False, patience: float = SECONDS) -> None:
        self.place = os.fspath(place)
        if not create and "://" not in self.place and not os.path.exists(self.place):
            raise StoreError(f"there is no store {self.place}", "`demur serve` makes one")
        self.patience = Patience(patience)
        self.engine = connect(place, create=create, patience=self.patience, private=True)
        try:
            upgrade(self.engine, self.place, create=create)
        except BaseException:
            self.engine.dispose()
            raise
        parts = (self.engine, self.place, self.patience)
        self.policies = Policies(*parts)
        self.decisions = Decisions(*parts)
        self.audits = Audits(*parts)
        self.feedback = FeedbackLog(*parts)
        self.reviews = Reviews(*parts)
        self.keys = ApiKeys(*parts)
        self.logins = Logins(*parts)
        self.spending = Spending(*parts)
        self.repeats = Repeats(*parts)
        self.monitors = Monitors(*parts)
        self.events = Events(*parts)
        self.canaries = Canaries(*parts)
        self.retention = Retention(*parts)

    @patient
    def check_writing(self) -> None:
        """Raise where nothing can be written now: the store is away or full, or somebody else holds it.

        A row about as large as a decision is written and taken away again in one transaction, which commits.
        """
        name = f"probe {token_hex(16)}"  # of its own: nobody waits for another's
        with writing(self.engine, self.place) as connection:
            connection.execute(meta.insert().values(name=name, value="0" * _PROBE_BYTES))
            connection.execute(meta.delete().where(meta.c.name == name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.patience.end()
        self.engine.dispose()
