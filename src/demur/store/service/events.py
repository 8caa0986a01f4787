"""What happened to a service, in words: alarms, swaps of policies, another model name."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, tuple_

from demur.store.connection import insert_new
from demur.store.patience import patient
from demur.store.service._tables import events
from demur.store.service.family import TableFamily
from demur.store.service.keys import digest_of
from demur.store.service.values import COUNT, NAME, OBJECT, TEXT, WHOLE, Kinds, optional, record_of, row_of

_KINDS: Kinds = {
    "event": NAME,
    "at": WHOLE,
    "policy": optional(COUNT),
    "kind": NAME,
    "words": TEXT,
    "facts": OBJECT,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    event: str
    at: int
    policy: int | None
    """None where it concerns all of them."""
    kind: str
    words: str
    facts: Mapping[str, Any]


class Events(TableFamily):
    """All that happened, in the order of time."""

    def note(
        self,
        at: int,
        kind: str,
        words: str,
        *,
        policy: int | None = None,
        facts: Mapping[str, Any] | None = None,
        once: str | None = None,
    ) -> Event:
        """Note what happened. What several replicas notice and is one thing gets one name, `once`: the first stays."""
        name = secrets.token_hex(16) if once is None else digest_of(f"{kind}:{policy}:{once}")
        return self._enter(Event(name, at, policy, kind, words, facts or {}))

    @patient
    def _enter(self, happened: Event) -> Event:
        row = row_of(happened, _KINDS)
        with self.writing() as connection:
            insert_new(connection, events, [row])
            there = connection.execute(select(events).where(events.c.event == happened.event)).one()
            return record_of(Event, there, _KINDS)

    @patient
    def latest(
        self,
        *,
        policy: int | None = None,
        kind: str | None = None,
        since: int | None = None,
        before: Event | None = None,
        limit: int = 100,
    ) -> list[Event]:
        """A page of events, the last one first; with `policy`, those that concern all policies come too."""
        query = select(events).order_by(events.c.at.desc(), events.c.event.desc()).limit(limit)
        if policy is not None:
            query = query.where((events.c.policy == COUNT.given("policy", policy)) | events.c.policy.is_(None))
        if kind is not None:
            query = query.where(events.c.kind == NAME.given("kind", kind))
        if since is not None:
            query = query.where(events.c.at >= WHOLE.given("since", since))
        if before is not None:
            query = query.where(tuple_(events.c.at, events.c.event) < tuple_(before.at, before.event))
        with self.reading() as connection:
            return [record_of(Event, row, _KINDS) for row in connection.execute(query)]
