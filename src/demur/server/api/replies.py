"""An outcome as clients get it: a chat completion, plain or in chunks, with the object `demur` beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from demur.pipeline.answerer import Spent
from demur.records import OTHER, Decision
from demur.server.api.written import written
from demur.server.outcomes import Outcome
from demur.server.settings import ServiceSettings
from demur.store.service import Decision as Logged

SHOWN, SHADOW, KNOWN_ERRORS = "shown_path", "shadow", "known_errors"
"""Where the log has what callers are not told: the place of the path that one with an idempotency key was shown, what
a shadow would have done, and by how many audited errors the threshold stood where it did."""
CLOSED = "nothing_is_answered"
"""Of a doubt: that it forbids answers."""


def extension(outcome: Outcome) -> dict[str, Any]:
    """All that is known of the decision."""
    question, asked = outcome.question, outcome.asked
    told: dict[str, Any] = {
        "request_id": outcome.request_id,
        "decision": outcome.decision,
        "policy": question.served.full_name,
        "alpha": question.rule.alpha,
        "guarantee": question.rule.guarantee.name,
        "promise": question.rule.promise,
    }
    told |= _of_decision(asked.decision, outcome.decision) if asked is not None else _NOTHING_KNOWN
    told["paths"] = {"drawn": 0 if asked is None else asked.n_drawn, "of": outcome.n_paths}
    if asked is not None and (early := asked.early) is not None:
        told["certain_early"] = {"after": early.n_paths, "share_at_least": early.least, "share_at_most": early.most}
    if outcome.reason is not None:
        told["reason"] = outcome.reason
    if outcome.failure is not None:
        told["cause"] = outcome.failure.kind
    elif outcome.overruled is not None:
        told |= {"cause": outcome.overruled, "explanation": outcome.reason}
    if outcome.raised_key is not None:
        told |= {"threshold": outcome.raised_key[0], "calibrated_threshold": told["threshold"]}
    if question.ignored:
        told["ignored"] = list(question.ignored)
    if outcome.doubt is not None:
        told["in_doubt"] = {"since": outcome.doubt.since, "why": outcome.doubt.words}
        if question.instead_of is not None:
            told["in_doubt"]["asked_alpha"] = question.instead_of.alpha
        if outcome.closed:
            told["in_doubt"][CLOSED] = True
    return told


_NOTHING_KNOWN: dict[str, Any] = dict.fromkeys(("answer", "confidence", "threshold", "p_value"))
_NOTHING_KNOWN |= {"votes": [], "without_answer": 0}


def _of_decision(made: Decision, decided: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "answer": made.answer if decided == "answered" else None,
        "confidence": made.confidence,
        "threshold": made.threshold,
        "p_value": made.p_value,
        "votes": [
            {"answer": answer, "paths": paths, "share": made.shares[answer]} for answer, paths in made.support.items()
        ],
        "without_answer": made.without_answer,
        "explanation": made.explanation,
    }
    if made.groups:
        told["groups"] = list(made.groups)
    if made.answer_set is not None:
        told["answer_set"] = [answer for answer in made.answer_set if answer is not OTHER]
        told["or_other"] = OTHER in made.answer_set
    return told


def usage(outcome: Outcome) -> dict[str, int]:
    """The tokens of all paths, as the model's server counted them; where it does not say, those of the paths."""
    spent = Spent() if outcome.asked is None else outcome.asked.spent
    prompt, completion = spent.prompt_tokens, spent.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def best_path(outcome: Outcome) -> int | None:
    """The place of the path with the best score, or the first, of those that gave the answer; None without one."""
    asked = outcome.asked
    if asked is None or outcome.decision == "abstained":
        return None
    score = outcome.question.served.policy.score
    return max(asked.winning, key=lambda place: asked.pool.paths[place].scores.get(score or "", 0.0), default=None)


@dataclass(frozen=True)
class Reply:
    """What a client gets, of a decision just made or from the log."""

    request_id: str
    at: int
    model: str
    text: str
    reason: str | None
    usage: dict[str, int]
    extension: dict[str, Any]
    headers: dict[str, str]


def reply_of(outcome: Outcome, settings: ServiceSettings) -> Reply:
    """The reply of a decision just made."""
    return Reply(
        outcome.request_id,
        outcome.at,
        outcome.question.model,
        _text(outcome, settings),
        outcome.reason,
        usage(outcome),
        extension(outcome),
        headers(outcome),
    )


def _text(outcome: Outcome, settings: ServiceSettings) -> str:
    """What the assistant says."""
    if outcome.decision == "abstained" or outcome.asked is None:
        return settings.abstain_text
    path = None if outcome.shown is None else outcome.asked.pool.paths[outcome.shown].text
    return str(outcome.asked.decision.answer) if path is None else path


def reply_from_log(kept: Logged, settings: ServiceSettings) -> Reply | None:
    """The reply of an earlier decision, word for word; None where not all that was said was kept."""
    told = dict(kept.document)
    shown, *_ = (told.pop(name, None) for name in (SHOWN, SHADOW, KNOWN_ERRORS))
    texts = {path.path: path.text for path in kept.paths}
    if kept.idempotency is None or "answer" not in told or (shown is not None and texts.get(shown) is None):
        return None
    text = settings.abstain_text if told["decision"] == "abstained" else str(texts.get(shown) or told["answer"])
    counted = {"prompt_tokens": kept.tokens_in, "completion_tokens": kept.tokens_out}
    return Reply(
        kept.request,
        kept.at,
        kept.model,
        text,
        told.get("reason"),
        counted | {"total_tokens": kept.tokens_in + kept.tokens_out},
        told,
        {**_headers(told["decision"], kept.drawn, kept.n_paths), "idempotent-replayed": "true"},
    )


def completion(reply: Reply) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": reply.text, "refusal": reply.reason}
    return {
        "id": f"chatcmpl-{reply.request_id}",
        "object": "chat.completion",
        "created": reply.at // 1000,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": reply.usage,
        "demur": reply.extension,
    }


def headers(outcome: Outcome) -> dict[str, str]:
    """What a client can read without looking into the body."""
    drawn = 0 if outcome.asked is None else outcome.asked.n_drawn
    overhead = max(0.0, outcome.seconds - outcome.waited) * 1000
    return {**_headers(outcome.decision, drawn, outcome.n_paths), "x-demur-overhead-ms": f"{overhead:.1f}"}


def _headers(decision: str, drawn: int, of: int) -> dict[str, str]:
    return {"x-demur-decision": decision, "x-demur-paths": f"{drawn}/{of}"}


def chunks(reply: Reply, *, wants_usage: bool) -> Iterator[bytes]:
    """The same as events of a stream."""
    head = {
        "id": f"chatcmpl-{reply.request_id}",
        "object": "chat.completion.chunk",
        "created": reply.at // 1000,
        "model": reply.model,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None, **beside: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**head, "choices": [choice], **({"usage": None} if wants_usage else {}), **beside})

    yield chunk({"role": "assistant", "content": ""})
    if reply.reason is not None:  # before the text, which a client that parses would take for an answer else
        yield chunk({"refusal": reply.reason})
    yield chunk({"content": reply.text})
    yield chunk({}, "stop", demur=reply.extension)
    if wants_usage:
        yield event({**head, "choices": [], "usage": reply.usage})
    yield b"data: [DONE]\n\n"


def event(document: dict[str, Any]) -> bytes:
    return b"data: " + written(document) + b"\n\n"
