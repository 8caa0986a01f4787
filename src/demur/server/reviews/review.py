"""The queue of reviews for its page: what waits, one item for one person, verdicts, and taking them back."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal, NoReturn

from fastapi import APIRouter, Query, Request

from demur import event_loop
from demur.errors import StoreError
from demur.server.access.access import Caller, allowed
from demur.server.api.bodies import Form, read_body
from demur.server.api.description import described
from demur.server.errors import ApiError
from demur.server.reviews import review_items
from demur.server.reviews.review_forms import ClaimRequest, LeaseRequest, UndoRequest, VerdictRequest, Wanted
from demur.server.served import Served
from demur.server.service import Service
from demur.store.rows import storable
from demur.store.service import Decision, Feedback, ReviewFilter, ReviewItem, ServiceStore

LEASE_SECONDS = 600
"""An item is held so long; the page renews that while it is open."""
_MOST_BYTES = 200_000
_BEGINNING = 200
router = APIRouter(prefix="/review/api")


@router.get("/queue")
async def queue(
    request: Request,
    reason: Literal["abstained", "audit"] | None = None,
    policy: int | None = Query(default=None, ge=0, le=2**31 - 1),
    since: int | None = Query(default=None, ge=0, le=2**53),
    until: int | None = Query(default=None, ge=0, le=2**53),
    order: Literal["oldest", "contested"] = "oldest",
    state: Literal["open", "done"] = "open",
    after: str | None = Query(default=None, max_length=200),
    limit: int = Query(default=20, ge=1, le=200),
) -> dict[str, Any]:
    """A page of what waits, or of what is judged; how much waits; and how often two people agreed."""
    caller, store = await _reviewer(request)
    wanted = _filter(Wanted(reason=reason, policy=policy, since=since, until=until, order=order), state)

    def read() -> dict[str, Any]:
        last = None if after is None else store.reviews.get(after)
        if after is not None and last is None:
            _gone(after)
        items = store.reviews.queue(wanted, order=order, after=last, limit=limit + 1)
        page, counts, agreed = items[:limit], store.reviews.counts(wanted), store.reviews.agreement()
        made = store.decisions.several([item.request for item in page])
        said = store.feedback.latest([item.request for item in page]) if state == "done" else {}
        who = _who(caller)
        return {
            "items": [
                _summary(item, made.get(item.request), who)
                | {"said": [_word(word, who) for word in said.get(item.request, ())]}
                for item in page
            ],
            "more": len(items) > limit,
            "counts": {"abstained": counts.abstained, "audit": counts.audit + counts.both, "most": counts.most},
            "agreement": {"judged_twice": agreed.judged_twice, "agreed": agreed.agreed},
            "policies": _policies(request, store, page),
        }

    return await asyncio.to_thread(read)


@router.post("/claim", openapi_extra=described(ClaimRequest))
async def claim(request: Request) -> dict[str, Any]:
    """The first item that nobody holds, held by whoever asks; null where there is none for them."""
    caller, store, body = await _asked(request, ClaimRequest)
    how: dict[str, Any] = {"order": body.order, "seconds": LEASE_SECONDS, "request": body.request}
    how["skipping"] = body.skipping

    def take() -> dict[str, Any]:
        item = store.reviews.claim(_who(caller), _filter(body, "open"), **how)
        if item is None:
            return {"item": None}
        decision = store.decisions.get(item.request)
        if decision is None:
            _gone(item.request)
        policies = _policies(request, store, [item])
        named = next((one for one in policies if one["policy"] == item.policy), None)
        about: dict[str, Any] = {
            "request": item.request,
            "token": item.lease_token,
            "seconds": LEASE_SECONDS,
            "at": item.at,
        }
        about |= {"reason": _reason(item), "second": item.second, "policy": named}
        said, blind = _words(store, item.request), review_items.is_blind(item, body.blind)
        return {"item": about | review_items.shown(decision, said, blind=blind)}

    return await asyncio.to_thread(take)


@router.post("/show", openapi_extra=described(LeaseRequest))
async def show(request: Request) -> dict[str, Any]:
    """An item that is held, with its vote."""
    caller, store, body = await _asked(request, LeaseRequest)
    await _held(store, caller, body)
    decision = await asyncio.to_thread(store.decisions.get, body.request)
    if decision is None:
        _gone(body.request)
    said = await asyncio.to_thread(_words, store, body.request)
    return {"item": review_items.shown(decision, said, blind=False)}


@router.post("/renew", openapi_extra=described(LeaseRequest))
async def renew(request: Request) -> dict[str, Any]:
    """Hold an item for longer."""
    _, store, body = await _asked(request, LeaseRequest)
    if not await asyncio.to_thread(store.reviews.renew, body.request, body.token, LEASE_SECONDS):
        _lost(body.request)
    return {"request": body.request, "seconds": LEASE_SECONDS}


@router.post("/release", openapi_extra=described(LeaseRequest))
async def release(request: Request) -> dict[str, Any]:
    """Give an item back unjudged."""
    _, store, body = await _asked(request, LeaseRequest)
    await asyncio.to_thread(store.reviews.release, body.request, body.token)
    return {"request": body.request}


@router.post("/verdict", openapi_extra=described(VerdictRequest))
async def verdict(request: Request) -> dict[str, Any]:
    """Keep what a person found of the item that they hold. The same sent twice is kept once."""
    caller, store, body = await _asked(request, VerdictRequest)
    decision = await asyncio.to_thread(store.decisions.get, body.request)
    if decision is None:
        _gone(body.request)
    item = await _held(store, caller, body)
    service: Service = request.app.state.service
    served, kept = service.models.numbered(decision.policy), service.settings.kept
    length = len(body.answer or "") + len(decision.winner or "") + len(decision.question or "")
    found = await event_loop.read_aside(length, _verdict, body, decision, served)
    said = {"verdict": found, "answer": kept(body.answer), "note": kept(body.note)}
    at = time.time_ns() // 1_000_000
    if not await asyncio.to_thread(store.reviews.settle, body.request, body.token, at, **said):
        _lost(body.request)
    words = await asyncio.to_thread(_words, store, body.request)
    mine = [word for word in words if word.who == _who(caller) and word.source == "review"]
    given = (said["verdict"], storable(said["answer"]))
    if item.settled == body.token and not any((word.verdict, word.answer) == given for word in mine):
        raise ApiError(409, "another verdict was given under this lease before", code="judged_already")
    judged = await asyncio.to_thread(store.reviews.get, body.request)
    agree = None if judged is None else judged.agree
    waits = judged is not None and judged.state == "open"
    told = {"request": body.request, "verdict": said["verdict"], "answer": said["answer"]}
    return told | {"agree": agree, "waits_for_second": waits, "vote": review_items.vote_of(decision, words)}


@router.post("/undo", openapi_extra=described(UndoRequest))
async def undo(request: Request) -> dict[str, Any]:
    """Take back one's own verdict: the item waits again."""
    caller, store, body = await _asked(request, UndoRequest)
    at, who = time.time_ns() // 1_000_000, _who(caller)
    try:
        item = await asyncio.to_thread(store.reviews.undo, body.request, who, at)
    except StoreError as error:
        if await asyncio.to_thread(store.reviews.get, body.request) is None:
            _gone(body.request)
        said = await asyncio.to_thread(store.feedback.history, body.request)
        if any(word.who == who and word.source == "review" for word in said):
            raise  # there is something to be taken back: it is the store that fails
        raise ApiError(409, str(error), code="nothing_to_undo", param="request") from None
    return {"request": item.request, "state": item.state}


def _verdict(body: VerdictRequest, decision: Decision, served: Served | None) -> str:
    """Whether the vote is right, as a person says or as their true answer does; raises where the two contradict."""
    if body.verdict is None and body.answer is None:
        raise ApiError(400, "give a verdict (right, wrong, unsure) or the true answer", param="verdict")
    same = None if body.answer is None else _is_the_votes(body.answer, decision, served)
    if body.verdict is None and same is None:
        told = "this true answer cannot be compared with the vote's: say too whether the vote is right or wrong"
        raise ApiError(400, told, param="verdict", code="not_comparable")
    if body.verdict is None:
        return "right" if same else "wrong"
    if body.verdict == "right" and decision.winner is None:
        raise ApiError(400, "there was no vote here that could be right; give the true answer", param="verdict")
    if body.verdict == "wrong" and same:
        raise ApiError(400, "the true answer is the vote's own, so the vote is right", param="answer")
    if body.verdict == "right" and same is False:
        raise ApiError(400, "the true answer is another than the vote's, so the vote is wrong", param="answer")
    return body.verdict


def _is_the_votes(answer: str, decision: Decision, served: Served | None) -> bool | None:
    """Whether a true answer is the vote's, maybe written another way; None where that cannot be told."""
    if not answer.strip():
        raise ApiError(400, "the true answer is blank", param="answer", code="invalid_value")
    if decision.winner is None:
        return False
    if storable(answer) == decision.winner:
        return True
    return None if served is None else served.spoken.agrees(decision, answer)


def _filter(wanted: Wanted, state: str) -> ReviewFilter:
    audited = None if wanted.reason is None else wanted.reason == "audit"
    return ReviewFilter(state, audited=audited, policy=wanted.policy, since=wanted.since, until=wanted.until)


def _reason(item: ReviewItem) -> str:
    """Why it is there; of an audit it is not said whether it was answered."""
    return "abstained" if item.reason == "abstained" else "audit"


def _summary(item: ReviewItem, decision: Decision | None, who: str) -> dict[str, Any]:
    question = "" if decision is None or decision.question is None else decision.question
    return {
        "request": item.request,
        "at": item.at,
        "reason": _reason(item),
        "policy": item.policy,
        "second": item.second,
        "state": item.state,
        "judged_once": item.first_by is not None,
        "mine": who in (item.first_by, item.second_by),
        "agree": item.agree,
        "held": item.lease_until is not None and item.lease_until > time.time_ns() // 1_000_000,
        "question": question[:_BEGINNING],
    }


def _words(store: ServiceStore, request: str) -> tuple[Feedback, ...]:
    return store.feedback.latest([request]).get(request, ())


def _word(word: Feedback, who: str) -> dict[str, Any]:
    by_caller = word.source != "review"
    told = {"verdict": word.verdict, "answer": word.answer, "at": word.at}
    return told | {"mine": word.who == who and not by_caller, "by_caller": by_caller}


def _policies(request: Request, store: ServiceStore, items: list[ReviewItem]) -> list[dict[str, Any]]:
    """The versions of policies by their numbers; read again only where an item is of one not seen so far."""
    known: dict[int, dict[str, Any]] = getattr(request.app.state, "reviewed_policies", {})
    if not known or any(item.policy not in known for item in items):
        known = {
            row.policy: {"policy": row.policy, "name": f"{row.name}:v{row.version}"} for row in store.policies.all()
        }
        request.app.state.reviewed_policies = known
    return list(known.values())


async def _reviewer(request: Request) -> tuple[Caller, ServiceStore]:
    caller = await allowed(request, "review")
    store: ServiceStore | None = request.app.state.store
    if store is None:
        raise ApiError(404, "this service keeps no log, and so there is nothing to review", code="no_log")
    return caller, store


async def _asked(request: Request, form: type[Form]) -> tuple[Caller, ServiceStore, Form]:
    caller, store = await _reviewer(request)
    return caller, store, await read_body(request, form, _MOST_BYTES)


async def _held(store: ServiceStore, caller: Caller, lease: LeaseRequest) -> ReviewItem:
    """The item of a lease; raises where it is not this caller's, unless it was judged under that lease."""
    item = await asyncio.to_thread(store.reviews.get, lease.request)
    if item is None:
        _gone(lease.request)
    if lease.token != item.settled and (lease.token != item.lease_token or item.lease_by != _who(caller)):
        _lost(lease.request)
    return item


def _who(caller: Caller) -> str:
    return caller.id or caller.name


def _gone(name: str) -> NoReturn:
    raise ApiError(404, f"there is no review of {name!r:.120}", param="request", code="request_not_found")


def _lost(name: str) -> NoReturn:
    raise ApiError(409, f"the lease on {name!r:.120} ran out, and somebody else has the item", code="lease_lost")
