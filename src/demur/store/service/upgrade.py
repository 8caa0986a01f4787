"""A store of runs becomes one that a service can use: its tables are added, and what is there stays as it is."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, select
from sqlalchemy.schema import CreateIndex

from demur.errors import StoreError
from demur.store._tables import SCHEMA_VERSION, meta, metadata
from demur.store.connection import reading, shown, writing
from demur.store.service._tables import AUDITS_FIRST, OF_SERVICE

_SCHEMA = meta.c.name == "schema"


def upgrade(engine: Engine, place: str, *, create: bool) -> None:
    """Add the tables of a service where they are not there yet, in one transaction; two processes may try at once."""
    with reading(engine, place) as connection:
        if _is_current(connection):
            return
    if not create:
        raise StoreError(f"{shown(place)} holds runs and no service", "`demur serve` makes one in it")
    with writing(engine, place, alone=True) as connection:
        if _is_current(connection):
            return  # another process was quicker
        metadata.create_all(connection, tables=OF_SERVICE)
        connection.execute(CreateIndex(AUDITS_FIRST, if_not_exists=True))
        connection.execute(meta.update().where(_SCHEMA).values(value=str(SCHEMA_VERSION)))


def _is_current(connection: Connection) -> bool:
    return connection.execute(select(meta.c.value).where(_SCHEMA)).scalar() == str(SCHEMA_VERSION)
