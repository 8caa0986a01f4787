"""The system prompts of the conversations that calibrated a policy. Its promise is about those; others are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from demur.descriptions import Description
from demur.errors import PipelineMismatch
from demur.policy.document import PolicyParts
from demur.pools.voted_pools import VotedPools
from demur.prompts.conversations import known_transcript, system_of
from demur.records import Problem, question_digest

NO_SYSTEM = "none"
"""Stands for conversations that begin without a system prompt."""


def systems_of(voted: VotedPools) -> frozenset[str] | None:
    """Digests of the system prompts of votes; None where the prompt puts no conversations, or no text is known."""
    if not _puts_conversations(voted.votes.upstream):
        return None
    asked = voted.votes.beside.asked
    return frozenset(_digest(text) for text in (() if asked is None else asked) if text is not None) or None


def refuse_other_systems(policy: PolicyParts, asked: Iterable[str | Problem | None]) -> None:
    """Raise PipelineMismatch if a conversation has a system prompt that calibrated nothing. Unknown texts pass."""
    if told := other_systems(policy, asked):
        raise PipelineMismatch([told])


def other_systems(policy: PolicyParts, asked: Iterable[str | Problem | None]) -> str:
    """How many of some conversations have a system prompt that calibrated nothing, in words; blank if none has."""
    if policy.systems is None:
        return ""
    texts = (known_transcript(one).question if isinstance(one, Problem) else one for one in asked)
    known = [_digest(text) in policy.systems for text in texts if text is not None]
    if all(known):
        return ""
    which = "the system prompt" if len(known) == 1 else f"in {known.count(False)} of {len(known)}, the system prompt"
    return f"{which} is none of the {len(policy.systems)} that the policy was calibrated with"


def system_note(policy: PolicyParts) -> str:
    """That a policy does not know which system prompts calibrated it, in words; blank if it does, or needs none."""
    if policy.systems is not None or not _puts_conversations(policy.upstream):
        return ""
    return (
        "It does not record the system prompts that it was calibrated with, so it refuses none: its promise is about "
        "those only; calibrate again to have others refused"
    )


def _puts_conversations(upstream: Description) -> bool:
    prompt: Any = upstream.sampling.get("prompt")
    return isinstance(prompt, Mapping) and prompt.get("kind") == "conversation"


def _digest(transcript: str) -> str:
    return question_digest(system_of(transcript)) or NO_SYSTEM
