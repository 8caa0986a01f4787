"""Policies by name and version: at most one version of a name answers, and every version stays addressable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from demur.errors import StoreError
from demur.files.strict_json import as_json
from demur.store.patience import patient
from demur.store.service._tables import policies
from demur.store.service.family import TableFamily
from demur.store.service.values import COUNT, NAME, OBJECT, WHOLE, Kinds, one_of, record_of

_KINDS: Kinds = {
    "policy": COUNT,
    "name": NAME,
    "version": COUNT,
    "fingerprint": NAME,
    "document": OBJECT,
    "state": one_of("active", "shadow", "retired"),
    "at": WHOLE,
}


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One version of a policy."""

    policy: int
    """Its number in this store."""
    name: str
    version: int
    """From 1 on, within its name."""
    fingerprint: str
    document: dict[str, Any]
    state: str
    """active, shadow (decides beside the active one, and answers nobody) or retired."""
    at: int


class Policies(TableFamily):
    """Every policy that the service ever used."""

    def register(self, name: str, document: Mapping[str, Any], fingerprint: str, at: int) -> PolicyRow:
        """The row of a policy. One that is not there yet becomes its name's next version, and the active one.

        One that is there stays what it is: a replica that starts with an older file brings nothing back.
        """
        return self._enter(name, document, fingerprint, at, "active", again=False)

    def propose(
        self, name: str, document: Mapping[str, Any], fingerprint: str, at: int, *, shadow: bool = False
    ) -> PolicyRow:
        """Make a policy its name's shadow, in place of any other, or the active one."""
        return self._enter(name, document, fingerprint, at, "shadow" if shadow else "active", again=True)

    @patient
    def _enter(
        self, name: str, document: Mapping[str, Any], fingerprint: str, at: int, state: str, *, again: bool
    ) -> PolicyRow:
        given = {"name": name, "fingerprint": fingerprint, "document": document, "at": at}
        row = {column: _KINDS[column].given(column, value) for column, value in given.items()}
        with self.writing(alone=True) as connection:
            of_name = connection.execute(select(policies).where(policies.c.name == row["name"]))
            versions = [record_of(PolicyRow, version, _KINDS) for version in of_name]
            same = (version.policy for version in versions if _in_order(version.document) == _in_order(document))
            there = next(same, None)
            if there is not None:
                return self._put(connection, there, state) if again else self._row(connection, there)
            version = max((version.version for version in versions), default=0) + 1
            new = policies.insert().values(row | {"version": version, "state": "retired"})
            return self._put(connection, connection.execute(new.returning(policies.c.policy)).scalar_one(), state)

    @patient
    def activate(self, policy: int) -> PolicyRow:
        """Have a policy answer under its name; the one that did is retired."""
        with self.writing(alone=True) as connection:
            return self._put(connection, policy, "active")

    @patient
    def retire(self, policy: int) -> PolicyRow:
        """Have a policy neither answer nor decide beside another, unless it is asked for by its version."""
        with self.writing(alone=True) as connection:
            return self._put(connection, policy, "retired")

    def _put(self, connection: Connection, policy: int, state: str) -> PolicyRow:
        this = self._row(connection, policy)
        if this.state == "active" and state == "shadow":
            raise StoreError(f"version {this.version} of the policy {this.name!r} answers already; it is no shadow")
        if state != "retired":  # one of each at most
            others = (policies.c.name == this.name, policies.c.state == state, policies.c.policy != policy)
            connection.execute(policies.update().where(*others).values(state="retired"))
        connection.execute(policies.update().where(policies.c.policy == policy).values(state=state))
        return self._row(connection, policy)

    def _row(self, connection: Connection, policy: int) -> PolicyRow:
        row = connection.execute(select(policies).where(policies.c.policy == policy)).first()
        if row is None:
            raise StoreError(f"there is no policy number {policy!r} in this store")
        return record_of(PolicyRow, row, _KINDS)

    @patient
    def get(self, policy: int) -> PolicyRow:
        with self.reading() as connection:
            return self._row(connection, policy)

    @patient
    def states(self) -> tuple[tuple[int, str], ...]:
        """The number and state of every version, without what it holds: cheap enough to be asked all the time."""
        query = select(policies.c.policy, policies.c.state).order_by(policies.c.policy)
        with self.reading() as connection:
            return tuple((row.policy, row.state) for row in connection.execute(query))

    @patient
    def all(self) -> list[PolicyRow]:
        """Every version of every policy, by name and version."""
        query = select(policies).order_by(policies.c.name, policies.c.version)
        with self.reading() as connection:
            return [record_of(PolicyRow, row, _KINDS) for row in connection.execute(query)]


def _in_order(document: Mapping[str, Any]) -> str:
    return as_json(dict(document), sort_keys=True)
