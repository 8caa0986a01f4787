"""Versions of policies as the store has them: what answers, what decides beside it, and what stays addressable.

Every process looks at the store every few seconds. A version that became active is built on the pipeline that is there
and put in place of the old one between two requests: those under way go on with the version that they began with.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from functools import partial

from demur.errors import DemurError, StoreError
from demur.pipeline.pipeline import Pipeline
from demur.policy.policy import Policy
from demur.policy.signature import Key
from demur.policy.signed_documents import document_of, is_of, policy_of
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.store.service import PolicyRow, ServiceStore

_logger = logging.getLogger("demur.server")
SECONDS = 2.0
"""How often the store is looked at."""


class Versions:
    """Builds what the store's versions say, each of them once."""

    def __init__(self, store: ServiceStore, pipelines: Mapping[str, Pipeline], *, key: Key | None = None) -> None:
        self.store, self.pipelines, self.key = store, dict(pipelines), key
        self._built: dict[int, Served] = {}
        self._unusable: set[int] = set()
        self._trusted: set[int] = set()
        self.refused: list[str] = []
        """Why some version that should answer does not, in words."""
        self._seen: tuple[tuple[int, str], ...] | None = None

    def enter(self, name: str, policy: Policy, at: int) -> PolicyRow:
        """The row of a policy that a file holds: its name's next version, and active, unless it is there already.

        Its signature was checked when the file was read.
        """
        document = policy.document()
        there = (row for row in self.store.policies.all() if row.name == name and is_of(row.document, document))
        signed = document_of(policy, self.key)
        row = next(there, None) or self.store.policies.register(name, signed, policy.fingerprint, at)
        self._trusted.add(row.policy)
        return row

    def models(self, aliases: Mapping[str, str], before: Mapping[str, Served] | None = None) -> Models:
        """What is to be served now. A version that should answer and cannot be served raises, or where there is one
        `before` it, that goes on."""
        self._seen = self.store.policies.states()
        active = dict(before or {})
        shadows: dict[str, Served] = {}
        earlier: list[Served] = []
        self.refused = []
        for row in self.store.policies.all():
            if row.name not in self.pipelines:
                continue
            if row.state == "active":
                try:
                    active[row.name] = self._served(row)
                except DemurError as error:
                    if row.name not in active:
                        raise
                    self.refused.append(f"version {row.version} of {row.name} is not served: {error}")
            elif (served := self._if_usable(row)) is not None:
                if row.state == "shadow":
                    shadows[row.name] = served
                else:
                    earlier.append(served)
        others = tuple(served for served in earlier if active.get(served.name) is not served)
        return Models(active, others, aliases, shadows)

    def _served(self, row: PolicyRow) -> Served:
        if row.policy not in self._built:
            key = None if row.policy in self._trusted else self.key
            policy = policy_of(row.document, f"version {row.version} of {row.name}", key)
            answerer = self.pipelines[row.name].answerer(policy)
            answerer.check_pipeline()
            self._built[row.policy] = Served(row.name, policy, answerer, row.version, row.policy)
        return self._built[row.policy]

    def _if_usable(self, row: PolicyRow) -> Served | None:
        """An earlier version or a shadow; None where it was calibrated for another pipeline, or is damaged."""
        if row.policy in self._unusable:
            return None
        try:
            return self._served(row)
        except DemurError as error:
            self._unusable.add(row.policy)
            _logger.warning("version %d of %s cannot be asked here: %s", row.version, row.name, error)
            return None

    async def follow(self, service: Service, seconds: float = SECONDS) -> None:
        """Have a service serve what the store says, until this is cancelled."""
        away = False
        while True:
            await asyncio.sleep(seconds)
            try:
                if await asyncio.to_thread(self.store.policies.states) != self._seen:
                    await self._swap(service)
                away = False
            except StoreError as error:
                if not away:
                    _logger.warning("versions of policies cannot be looked up: %s", error)
                away = True

    async def _swap(self, service: Service) -> None:
        before = service.models
        try:
            service.models = await asyncio.to_thread(self.models, before.aliases, before.active)
        except StoreError:
            self._seen = None
            raise
        except DemurError as error:  # an alias names what a version does not have
            self.refused.append(f"what answers stays as it is: {error}")
        for name, served in service.models.active.items():
            if served is not before.active.get(name):
                _logger.info("%s answers as %s from now on", name, served.full_name)
        for words in self.refused:
            _logger.error("%s", words)
            now = time.time_ns() // 1_000_000
            note = partial(self.store.events.note, now, "version_not_served", words, once=f"{self._seen}{words}")
            await asyncio.to_thread(note)
