"""One sample of an inspect_ai log: the problem that it asks, and the path that it is.

input, choices, target, metadata      the problem; its target is gold
output                                what the model said: the text of the path
scores                                what inspect's scorers said of it: `labels`, and nothing but labels
whatever inspect does not write       kept in the path's field `sample`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from demur.answers.completions import deviation_of, logprobs_of, mean_of, text_of
from demur.errors import PoolFileError
from demur.pools.neighbours.fields import data_set_fields, kept
from demur.prompts.conversations import known_transcript
from demur.records import Path, Problem

_RIGHT, _WRONG = ("c", "yes", "true"), ("i", "n", "no", "false")
_CUT = {"max_tokens": "length", "model_length": "length"}
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]+)")
_LETTER = re.compile(r"[A-Z]")
_WRITTEN = frozenset({
    "attachments", "choices", "completed_at", "description", "epoch", "error", "error_retries", "events", "events_data",
    "files", "id", "input", "invalidation", "limit", "message_limit", "message_refs", "messages", "metadata",
    "model_fallbacks", "model_usage", "output", "role_usage", "sandbox", "score", "scores", "setup", "started_at",
    "store", "target", "time_limit", "timelines", "token_limit", "token_limit_type", "token_limit_usage", "total_time",
    "transcript", "turn_count", "uuid", "working_time",
})  # fmt: skip
"""What inspect itself writes of a sample."""

Record = dict[str, Any]


def why_no_path(sample: Record) -> str | None:
    """Why a sample holds no path: it ended in an error, or somebody declared it void; None where it holds one."""
    error = sample.get("error")
    if isinstance(error, dict):
        told = str(error.get("message") or "no reason given").strip()
        return told.splitlines()[0][:120] if told else "no reason given"
    return "declared invalid" if sample.get("invalidation") else None


def problem_of(sample: Record, where: str) -> Problem:
    """What a sample asks."""
    name = sample.get("id")
    if not isinstance(name, (str, int)) or isinstance(name, bool) or not str(name).strip():
        raise PoolFileError(f"{where}: a sample's id must be a text or a whole number, got {name!r:.40}")
    target, choices = sample.get("target"), sample.get("choices")
    gold = tuple(one for one in (target if isinstance(target, list) else [target]) if isinstance(one, str) and one)
    extra = data_set_fields(sample.get("metadata"))
    if isinstance(choices, list) and choices:
        extra["choices"] = [str(choice) for choice in choices]
        extra |= {"task": "mc"} if gold and all(map(_LETTER.fullmatch, gold)) else {}
        if len(gold) > 1:  # all of them together are right there, and none alone
            gold, extra["gold_choices"] = (), list(gold)
    asked, attached = sample.get("input"), sample.get("attachments")
    question = None
    if isinstance(asked, str):
        question = _resolved(asked, attached)
    elif isinstance(asked, list):
        extra["messages"] = [_message(message, attached) for message in asked]
    return known_transcript(Problem(str(name), question, gold, extra=extra))


def path_of(sample: Record, labels_by: str | None, where: str) -> Path:
    """The path that a sample is, without an answer: that is read off its text. `labels_by` names the score that labels
    it right or wrong."""
    output = sample.get("output")
    output = output if isinstance(output, dict) else {}
    choices, usage = output.get("choices"), output.get("usage")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    known: dict[str, Any] = {"epoch": sample["epoch"]}
    reason, limit = choice.get("stop_reason"), sample.get("limit")
    if isinstance(limit, dict):  # halted by inspect, whatever the model's last answer ended in
        known |= {"finish_reason": "length", "limit": str(limit.get("type"))}
    elif isinstance(reason, str):
        known["finish_reason"] = _CUT.get(reason, reason)
    logprobs = logprobs_of(choice.get("logprobs"))
    if logprobs:
        known |= {"logprob_mean": mean_of(logprobs), "logprob_std": deviation_of(logprobs), "n_tokens": len(logprobs)}
    elif isinstance(usage, dict) and isinstance(usage.get("output_tokens"), int):
        known["n_tokens"] = usage["output_tokens"]
    if isinstance(output.get("time"), (int, float)):
        known["latency"] = output["time"]
    scores, text = scores_of(sample), _said(choice, output, sample.get("attachments"))
    if scores:
        known["labels"] = kept({name: _without(score, text) for name, score in scores.items()})
    if others := {name: value for name, value in sample.items() if name not in _WRITTEN}:
        known["sample"] = kept(others)
    if labels_by is not None:
        known["correct"] = _is_right(scores, labels_by, where)
    return Path(None, text, extra=known, has_answer_field=False)


def scores_of(sample: Record) -> dict[str, Any]:
    """What scorers said of a sample, by name; the first logs had one score, without a name."""
    scores, alone = sample.get("scores"), sample.get("score")
    if isinstance(scores, dict):
        return scores
    return {"score": alone} if isinstance(alone, dict) else {}


def _without(score: Any, text: str) -> Any:
    """What a scorer said, without the model's own text, which many repeat, and without what is empty."""
    if not isinstance(score, dict):
        return score
    return {name: value for name, value in score.items() if name == "value" or value not in (None, [], {}, text)}


def _is_right(scores: Mapping[str, Any], named: str, where: str) -> bool:
    """Whether a score says right; anything between right and wrong is refused, for it is no label."""
    name, _, part = (named, "", "") if named in scores else named.partition(".")
    score = scores.get(name)
    if score is None:
        known = f"those there are: {', '.join(map(str, scores))}" if scores else "it has none at all"
        raise PoolFileError(f"{where}: the sample has no score {named!r:.60}; {known}", "name another as {labels_by}")
    value = score.get("value") if isinstance(score, dict) else score
    value = value.get(part) if part and isinstance(value, dict) else value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _RIGHT or word in _WRONG:
            return word in _RIGHT
    elif isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    raise PoolFileError(
        f"{where}: the score {named!r:.60} is {value!r:.40}, neither right (C, 1) nor wrong (I, N, 0)",
        "name another as {labels_by}, or leave it out: labels come from gold then",
    )


def _said(choice: Record, output: Record, attached: Any) -> str:
    """What the model said, reasoning first, as it is of a path that is sampled here."""
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else output.get("completion")
    reasoning = ""
    if isinstance(content, list):
        reasoning = "".join(map(_reasoned, content))
        content = _joined(content)
    return str(_resolved(text_of(content, reasoning), attached))


def _reasoned(part: Any) -> str:
    """What a part of a message says of the model's reasoning; where that is encrypted, the summary of it."""
    if not isinstance(part, dict) or part.get("type") != "reasoning":
        return ""
    told = part.get("summary" if part.get("redacted") else "reasoning")
    return told if isinstance(told, str) else ""


def _joined(parts: list[Any]) -> str:
    """The texts of an answer in parts, each on lines of its own, as inspect's scorers read them."""
    said = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in said if isinstance(text, str))


def _message(message: Any, attached: Any) -> Any:
    """A message with what can be put to a model; as it is where it holds more than text."""
    if not isinstance(message, dict) or message.get("tool_calls") or message.get("tool_call_id"):
        return message
    content = message.get("content")
    if isinstance(content, list):
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
            return message
        content = "".join(str(part.get("text", "")) for part in content)
    return {"role": message.get("role"), "content": _resolved(content, attached)}


def _resolved(text: Any, attached: Any) -> Any:
    """A text with what was put elsewhere in the sample, because it is long, back in its place."""
    if not isinstance(text, str) or "attachment://" not in text or not isinstance(attached, dict):
        return text
    return _ATTACHMENT.sub(lambda found: str(attached.get(found.group(1), found.group())), text)
