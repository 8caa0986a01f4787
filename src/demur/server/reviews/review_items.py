"""What somebody sees who is to judge a decision.

Blind, they see the question, every answer once in an order that says nothing, and one path for each: neither which
answer won, nor by how much, nor whether it was given. How many paths said what would tell the vote, and so would
scores; all of it comes with the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from demur.files.strict_json import as_json
from demur.prompts.conversations import MESSAGES, is_transcript
from demur.records import ASKED_WITH, Problem, is_nothing
from demur.store.service import Decision, DecisionPath, Feedback, ReviewItem

_OPTIONS = ("options", "choices")


def is_blind(item: ReviewItem, wanted: str) -> bool:
    """Whether an item is judged without its vote: audits are, unless somebody asks for them otherwise.

    What audits find is what the promise is checked against, and a person who sees 98 % behind an answer finds it right
    more often. On mere abstentions no promise rests, and there the vote is of help.
    """
    return wanted == "always" or (wanted == "audits" and item.reason != "abstained")


def shown(decision: Decision, words: Iterable[Feedback], *, blind: bool) -> dict[str, Any]:
    """A decision as it is put to a person, with what callers said of it."""
    votes = decision.document.get("votes", [])
    answers = [_answer(vote) for vote in votes]
    paths = list(decision.paths)
    if blind:
        answers = [{"answer": answer} for answer in sorted(said["answer"] for said in answers)]
        paths = _one_each(paths)
    return {
        **_question(decision),
        "answers": answers,
        "paths": [_path(path, blind=blind) for path in paths],
        "more_paths": len(decision.paths) - len(paths),
        "blind": blind,
        "vote": None if blind else vote_of(decision, words),
    }


def vote_of(decision: Decision, words: Iterable[Feedback]) -> dict[str, Any]:
    """What was decided, and on what; and what callers say of it, who know the vote."""
    told = decision.document
    kept = ("threshold", "p_value", "explanation", "reason", "without_answer", "answer_set", "or_other", "paths")
    return {
        "outcome": decision.outcome,
        "winner": decision.winner,
        "confidence": decision.confidence,
        "alpha": decision.alpha,
        "guarantee": decision.guarantee,
        **{name: told[name] for name in kept if told.get(name) is not None},
        "votes": [_answer(vote) for vote in told.get("votes", [])],
        "callers": [{"verdict": word.verdict, "answer": word.answer} for word in words if word.source != "review"],
    }


def _answer(vote: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer": _text(vote.get("answer")), "paths": vote.get("paths"), "share": vote.get("share")}


def _one_each(paths: Iterable[DecisionPath]) -> list[DecisionPath]:
    """The first path of each answer, by the answer: nothing in their order or number says how many there are."""
    first: dict[str, DecisionPath] = {}
    for path in paths:
        if path.answer is not None:
            first.setdefault(path.answer, path)
    return [first[answer] for answer in sorted(first)]


def _path(path: DecisionPath, *, blind: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"answer": path.answer, "text": path.text}
    return told if blind else told | {"path": path.path, "scores": dict(path.scores), "n_tokens": path.n_tokens}


def _question(decision: Decision) -> dict[str, Any]:
    """What was asked: a question or a conversation, options to choose from, and whatever was to be read."""
    asked = dict(decision.asked or {})
    problem = Problem("question", decision.question, extra=asked)
    talk = asked.get(MESSAGES) if is_transcript(problem) else None
    options: Any = next((asked[name] for name in _OPTIONS if asked.get(name)), [])
    beside = [
        {"name": name, "text": text}
        for name in ASKED_WITH
        if name not in (*_OPTIONS, MESSAGES) and not is_nothing(value := asked.get(name))
        for text in (map(_text, value) if isinstance(value, list) else [_text(value)])
    ]
    return {
        "question": None if talk else decision.question,
        "messages": [{"role": _text(said.get("role")), "text": _text(said.get("content"))} for said in talk or ()],
        "options": _options(options),
        "beside": beside,
        "groups": [_text(name) for name in asked.get("groups", [])],
    }


def _options(options: Any) -> list[dict[str, str]]:
    if isinstance(options, Mapping):
        return [{"letter": str(letter), "text": _text(text)} for letter, text in options.items()]
    several = options if isinstance(options, list) else [options]
    letters = [chr(65 + at) if at < 26 else str(at + 1) for at in range(len(several))]
    return [{"letter": letter, "text": _text(text)} for letter, text in zip(letters, several, strict=True)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value, ensure_ascii=False, default=str)
