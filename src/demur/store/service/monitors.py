"""The state of monitors, shared by replicas: whoever changes it says which state they changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.rows import plain
from demur.store.service._tables import monitors
from demur.store.service.family import TableFamily, fresh_token
from demur.store.service.values import COUNT, NAME, NAMES, OBJECT, Kinds, record_of

_KINDS: Kinds = {"version": COUNT, "document": OBJECT}
_REMEMBERED = 32
"""Changes by name, so that one whose outcome nobody learnt is not made twice."""


@dataclass(frozen=True, slots=True)
class MonitorState:
    """A monitor as it was last stored."""

    version: int
    document: dict[str, Any]


class Monitors(TableFamily):
    """Monitors by policy and kind."""

    @patient
    def read(self, policy: int, kind: str) -> MonitorState | None:
        this = (monitors.c.policy == COUNT.given("policy", policy), monitors.c.kind == NAME.given("kind", kind))
        with self.reading() as connection:
            row = connection.execute(select(monitors).where(*this)).first()
            return None if row is None else record_of(MonitorState, row, _KINDS)

    def replace(self, policy: int, kind: str, document: Mapping[str, Any], expected: int) -> bool:
        """Put a new state in place of version `expected` (0 where there is none yet), as the version after it.

        False, and nothing changed, where somebody else was quicker: read again, and change what is there now.
        """
        COUNT.given("policy", policy)
        COUNT.given("expected", expected)
        NAME.given("kind", kind)
        return self._replace(policy, kind, OBJECT.given("document", document), expected, fresh_token()[:16])

    @patient
    def _replace(self, policy: int, kind: str, document: str, expected: int, change: str) -> bool:
        this = (monitors.c.policy == policy, monitors.c.kind == kind)
        empty = {"policy": policy, "kind": kind, "version": 0, "document": "{}", "changes": "[]"}
        with self.writing() as connection:
            if expected == 0:
                insert_new(connection, monitors, [empty])
            row = connection.execute(select(monitors).where(*this).with_for_update()).first()
            if row is None:
                return False
            changes = NAMES.stored("changes", row.changes)
            if change in changes:
                return True  # done before, without our learning of it
            if row.version != expected:
                return False
            kept = plain([*changes, change][-_REMEMBERED:])
            values = {"version": expected + 1, "document": document, "changes": kept}
            connection.execute(monitors.update().where(*this).values(values))
            return True
