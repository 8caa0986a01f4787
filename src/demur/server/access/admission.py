"""What stands between a caller and the models: requests at once, requests sent again, budgets.

A request that comes with an Idempotency-Key is decided once for its caller, whichever replicas it reaches and however
often: one of them does the work, under a lease that it renews; the others wait, and get the same reply from the log. It
is finished even when its caller goes away, who may well be about to ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from demur.errors import StoreError
from demur.files.strict_json import as_json
from demur.server.access.access import Caller
from demur.server.access.budgets import Budgets
from demur.server.access.limits import AtOnce
from demur.server.api import replies
from demur.server.api.asking import Question
from demur.server.api.replies import Reply
from demur.server.api.request_ids import new_id
from demur.server.errors import ApiError
from demur.server.outcomes import Outcome
from demur.server.service import Service
from demur.store.service import ServiceStore

LEASE = 15.0
"""Seconds after which the work of a replica that died goes to whoever asks again."""
_KEPT = 86_400_000
"""Milliseconds that idempotency keys are known for."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_LONGEST_KEY = 255


@dataclass(frozen=True)
class Once:
    """An idempotency key and what it was sent with, as digests."""

    key: str
    body: str

    @classmethod
    def of(cls, key: str, body: Any) -> Once:
        """Raises ApiError where the key is none."""
        if not 0 < len(key) <= _LONGEST_KEY or not key.isprintable():
            raise ApiError(
                400, f"an Idempotency-Key has 1 to {_LONGEST_KEY} characters", code="invalid_value",
                param="Idempotency-Key",
            )  # fmt: skip
        written = as_json(body, sort_keys=True, ensure_ascii=True)
        return cls(hashlib.sha256(key.encode()).hexdigest(), hashlib.sha256(written.encode()).hexdigest())


class Admission:
    """Lets requests through to a service."""

    def __init__(self, service: Service, store: ServiceStore | None) -> None:
        self.service, self.store = service, store
        self.budgets, self.at_once = Budgets(store), AtOnce()
        self.lease = LEASE
        self._unattended: set[asyncio.Future[Reply]] = set()
        self._forgot_at = 0

    async def reply(
        self, question: Question, caller: Caller, once: Once | None, admitted: Callable[[str], None]
    ) -> Reply:
        """Decide a request; `admitted` is called with its id once nothing but the models is in its way."""
        with self.at_once.one_more(caller.id, caller.limits):
            await self.service.let_in()
            if once is None or self.store is None:
                started = time.monotonic()
                outcome = await self._paid(question, new_id(), caller, None, admitted, started)
                return self._timed(outcome, started)
            return await self._once(self.store, question, caller, once, admitted)

    def _timed(self, outcome: Outcome, started: float) -> Reply:
        """The reply, whose times include what its key and its budget waited for in the store."""
        return replies.reply_of(replace(outcome, seconds=time.monotonic() - started), self.service.settings)

    def leave(self, work: asyncio.Future[Reply], once: Once | None) -> None:
        """Its caller went away: work goes on where it can be asked for again."""
        if once is None or self.store is None:
            work.cancel()
        elif not work.done():
            self._unattended.add(work)
            work.add_done_callback(self._attended)

    def _attended(self, work: asyncio.Future[Reply]) -> None:
        self._unattended.discard(work)
        if not work.cancelled():
            work.exception()  # nobody is left to hear of it

    async def _paid(
        self,
        question: Question,
        request_id: str,
        caller: Caller,
        key: str | None,
        admitted: Callable[[str], None],
        started: float,
    ) -> Outcome:
        """Decide a request within the budget of its key."""
        paths, longest = question.served.policy.n_paths, question.served.policy.upstream.sampling.get("max_tokens")
        most_tokens = paths * longest if isinstance(longest, int) else 0
        async with self.budgets.reserved(caller.id, caller.limits, paths, most_tokens) as bill:
            admitted(request_id)
            return await self.service.answer(question, request_id, caller.id, key, started=started, drew=bill.drew)

    async def _once(
        self, store: ServiceStore, question: Question, caller: Caller, once: Once, admitted: Callable[[str], None]
    ) -> Reply:
        """Do the work of an idempotency key, or wait for whoever does."""
        who, request_id, pause = caller.id or "", new_id(), _FIRST_PAUSE
        until = time.monotonic() + self.service.settings.seconds + self.lease
        await asyncio.to_thread(self._forget, store)
        while True:
            now, started = time.time_ns() // 1_000_000, time.monotonic()
            turn = await asyncio.to_thread(store.repeats.begin, who, once.key, once.body, request_id, now, self.lease)
            if turn.whose == "another body":
                told = "this Idempotency-Key was sent with another body before"
                raise ApiError(422, told, code="idempotency_key_reused", param="Idempotency-Key")
            if turn.whose == "done":
                return await self._kept(store, turn.request)
            if turn.whose == "mine":
                reply = await self._owned(store, question, request_id, caller, once, admitted, started)
                if reply is not None:
                    return reply
            elif time.monotonic() > until:
                told = f"the request {turn.request} with this Idempotency-Key is still under way"
                raise ApiError(409, told, code="still_under_way", headers={"Retry-After": "5"})
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _owned(
        self,
        store: ServiceStore,
        question: Question,
        request_id: str,
        caller: Caller,
        once: Once,
        admitted: Callable[[str], None],
        started: float,
    ) -> Reply | None:
        """Do the work under a lease; None where it was lost, so that what another replica decides is what counts."""
        mine = (caller.id or "", once.key, request_id)
        renewing = asyncio.create_task(self._renew(store, mine))
        try:
            outcome = await self._paid(question, request_id, caller, once.key, admitted, started)
        except Exception:  # whatever it is, the key is freed and the error goes on
            await asyncio.to_thread(store.repeats.drop, *mine)
            raise
        finally:
            renewing.cancel()
        if not await asyncio.to_thread(store.repeats.finish, *mine):
            return None
        return self._timed(outcome, started)

    async def _renew(self, store: ServiceStore, mine: tuple[str, str, str]) -> None:
        """Keep the lease; where that fails it runs out, which is found out at the end."""
        with contextlib.suppress(StoreError):
            while await asyncio.to_thread(store.repeats.renew, *mine, self.lease):
                await asyncio.sleep(self.lease / 3)

    async def _kept(self, store: ServiceStore, request: str) -> Reply:
        """An earlier reply, from the log."""
        decision = await asyncio.to_thread(store.decisions.get, request)
        reply = None if decision is None else replies.reply_from_log(decision, self.service.settings)
        if reply is None:
            told = f"the request {request} with this Idempotency-Key was decided, and what was said is not kept"
            raise ApiError(422, told, code="reply_not_kept", param="Idempotency-Key")
        return reply

    def _forget(self, store: ServiceStore) -> None:
        """Drop keys that are a day old, once an hour."""
        now = time.time_ns() // 1_000_000
        if abs(now - self._forgot_at) >= 3_600_000:
            self._forgot_at = now
            store.repeats.forget(max(0, now - _KEPT))
