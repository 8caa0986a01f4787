"""What extraction yields, and what every task shares: final parts of reasoning, refusals, truncation.

Extraction reads the last few thousand characters of a text, in linear passes; it never evaluates anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from demur.answers.asked import NOTHING_SAID, Asked

TAIL = 20_000  # characters of a path's end that are looked at

_BLANKS = re.compile(r"[^\S\n]+")
_LINE_BREAKS = re.compile(r" ?\n[ \n]*")
_REASONING = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.I)
_OPEN_REASONING = re.compile(r"<(?:think|thinking|reasoning|thought)>", re.I)
_REFUSAL = re.compile(
    r"(?:i\s+(?:do\s+not|don't|don’t|cannot|can't|can’t)\s+(?:know|answer|determine|say|tell|solve)\b.{0,80}"
    r"|(?:it\s+is\s+)?(?:unknown|undetermined|cannot\s+be\s+determined|not\s+enough\s+information|insufficient\s+information)"
    r"|no\s+answer|n/?a|none\s+given)[.!]*",
    re.I | re.S,
)


@dataclass(frozen=True)
class Extraction:
    """An answer as written, the rule that found it, and where; no answer where the path has none."""

    answer: str | None
    method: str
    span: tuple[int, int] | None = None
    """Where in the text the words stand that it was taken from."""


NOTHING = Extraction(None, "none")
TRUNCATED = Extraction(None, "truncated")
ABSTAINED = Extraction(None, "abstained")

_CUT = frozenset({"length", "max_tokens", "content_filter", "safety", "recitation", "abort", "cancelled", "error"})


def was_cut(finish_reason: object) -> bool:
    """Whether a path ended before its model was done (length, filter, fault), and so has no answer."""
    return isinstance(finish_reason, str) and finish_reason.strip().lower() in _CUT


def final_part(text: str) -> str:
    """What follows the last reasoning block; the whole text where there is none, nothing where it never closes."""
    text = _LINE_BREAKS.sub("\n", _BLANKS.sub(" ", text[-TAIL:]))  # single blanks keep every search below linear
    closed = list(_REASONING.finditer(text))
    if closed:
        rest = text[closed[-1].end() :]
        return rest if rest.strip() else text[: closed[-1].start()]
    return "" if _OPEN_REASONING.search(text) else text


def settle(answer: str, method: str) -> Extraction:
    """An extracted answer, unless it is blank or says that the model does not know."""
    stripped = answer.strip()
    if not stripped:
        return NOTHING
    return ABSTAINED if is_refusal(stripped) else Extraction(stripped, method)


def is_refusal(answer: str) -> bool:
    """Whether an answer says that there is none."""
    return len(answer) < 200 and _REFUSAL.fullmatch(answer.strip()) is not None


def whole_text(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """For answers of no known task: all of the final part."""
    return settle(final_part(text), "whole text")
