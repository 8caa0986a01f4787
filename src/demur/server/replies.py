"""An outcome as clients get it: a chat completion, plain or in chunks, with the object `demur` beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from demur.pipeline.answerer import Spent
from demur.records import OTHER, Decision, Path
from demur.server.outcomes import Outcome
from demur.server.settings import ServiceSettings


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
    if question.ignored:
        told["ignored"] = list(question.ignored)
    if outcome.doubt is not None:
        told["in_doubt"] = {"since": outcome.doubt.since, "why": outcome.doubt.words}
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


def text_of(outcome: Outcome, settings: ServiceSettings) -> str:
    """What the assistant says."""
    asked = outcome.asked
    if outcome.decision == "abstained" or asked is None:
        return settings.abstain_text
    answer = str(asked.decision.answer)
    if settings.show == "answer":
        return answer
    best = best_path(outcome)
    return answer if best is None or best.text is None else best.text


def best_path(outcome: Outcome) -> Path | None:
    """Of the paths that gave the answer, the one with the best score, or the first."""
    asked = outcome.asked
    if asked is None:
        return None
    winning = [asked.pool.paths[place] for place in asked.winning]
    score = outcome.question.served.policy.score
    return max(winning, key=lambda path: path.scores.get(score or "", 0.0), default=None)


def completion(outcome: Outcome, settings: ServiceSettings) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": text_of(outcome, settings), "refusal": outcome.reason}
    return {
        "id": f"chatcmpl-{outcome.request_id}",
        "object": "chat.completion",
        "created": outcome.at // 1000,
        "model": outcome.question.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(outcome),
        "demur": extension(outcome),
    }


def headers(outcome: Outcome) -> dict[str, str]:
    """What a client can read without looking into the body."""
    drawn = 0 if outcome.asked is None else outcome.asked.n_drawn
    return {
        "x-demur-decision": outcome.decision,
        "x-demur-paths": f"{drawn}/{outcome.n_paths}",
        "x-demur-overhead-ms": f"{max(0.0, outcome.seconds - outcome.waited) * 1000:.1f}",
    }


def chunks(outcome: Outcome, settings: ServiceSettings) -> Iterator[bytes]:
    """The same as events of a stream."""
    head = {
        "id": f"chatcmpl-{outcome.request_id}",
        "object": "chat.completion.chunk",
        "created": outcome.at // 1000,
        "model": outcome.question.model,
    }
    wants_usage = outcome.question.include_usage

    def chunk(delta: dict[str, Any], finish: str | None = None, **beside: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**head, "choices": [choice], **({"usage": None} if wants_usage else {}), **beside})

    yield chunk({"role": "assistant", "content": ""})
    yield chunk({"content": text_of(outcome, settings)})
    if outcome.reason is not None:
        yield chunk({"refusal": outcome.reason})
    yield chunk({}, "stop", demur=extension(outcome))
    if wants_usage:
        yield event({**head, "choices": [], "usage": usage(outcome)})
    yield b"data: [DONE]\n\n"


def event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
