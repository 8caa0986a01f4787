"""What somebody sees of a vote who is to say whether it is right: the question and the answers, and never gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.files.strict_json import as_json
from demur.pools.voted_pools import VotedPools
from demur.prompts.conversations import MESSAGES, is_transcript
from demur.records import ASKED_WITH, Path, Pool, is_nothing
from demur.tasks import asked_by

_OPTIONS = ("options", "choices")


@dataclass(frozen=True)
class Backed:
    """An answer, and what stands behind it."""

    answer: str
    share: float
    """Of all weight, that of paths without an answer included."""
    paths: int


@dataclass(frozen=True)
class LabelCard:
    """One vote, as it is put to people."""

    id: str
    question: str
    beside: tuple[tuple[str, str], ...]
    """What was asked with it, by field: passages, messages and the like."""
    options: tuple[str, ...]
    """Each behind its letter."""
    winner: Backed
    others: tuple[Backed, ...]
    n_paths: int
    paths: Sequence[Path]

    @classmethod
    def of(cls, pool: Pool, voted: VotedPools, row: int) -> LabelCard:
        problem, vote = pool.problem, voted.votes[row]
        backed = [
            Backed(str(answer), tally / vote.total if vote.total else 0.0, vote.support.get(answer, 0))
            for answer, tally in vote.tally.items()
        ]
        told = (*_OPTIONS, MESSAGES) if is_transcript(problem) else _OPTIONS
        beside = [
            (name, _text(value))
            for name in ASKED_WITH
            if name not in told and not is_nothing(value := problem.extra.get(name))
        ]
        letters = (chr(65 + at) if at < 26 else str(at + 1) for at in range(len(asked_by(problem).options)))
        options = tuple(f"{a}. {text}" for a, text in zip(letters, asked_by(problem).options, strict=True))
        asked = (problem.id, problem.question or "", tuple(beside), options)
        return cls(*asked, backed[0], tuple(backed[1:]), vote.n_paths, pool.paths)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(_text(entry) for entry in value)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return f"{value.get('role', '')}: {value['content']}"
    return value if isinstance(value, str) else as_json(value, ensure_ascii=False, default=str)
