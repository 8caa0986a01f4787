"""From a path's text to its answer: by evidence, the strongest first, one table per task.

Extraction reads the last few thousand characters of a text in linear passes, never evaluates anything, and says which
rule found an answer, and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction.part import Found, Part, final_part

_REFUSAL = re.compile(
    r"(?:(?:(?:i['’]?m\s+)?sorry,?\s+(?:but\s+)?)?i\s+(?:do\s+not|don['’]t|cannot|can['’]t)\s+"
    r"(?:know|answer|determine|say|tell|solve|have\s+enough)\b"
    r"(?:\s+(?:the|that|this|what|which|who|when|where|if|for\s+(?:sure|certain)|it|information|enough|from|based|any)\b.{0,80})?"
    r"|i['’]?(?:\s+a)?m\s+not\s+sure|unanswerable|(?:the\s+)?(?:answer|question|it)\s+can(?:not|['’]t)\s+be\s+(?:determined|answered)\b.{0,80}"
    r"|there\s+is\s+not\s+enough\s+information\b.{0,80}"
    r"|(?:it\s+is\s+)?(?:unknown|undetermined|cannot\s+be\s+determined|not\s+enough\s+information|insufficient\s+information)"
    r"|no\s+answer|n/?a|none\s+given)[.!]*",
    re.I | re.S,
)


class Extraction(NamedTuple):
    """An answer as written, the rule that found it, and where; no answer where the path has none."""

    answer: str | None
    method: str
    span: tuple[int, int] | None = None
    """Where in the text the words stand that it was taken from."""


NOTHING = Extraction(None, "none")
TRUNCATED = Extraction(None, "truncated")
ABSTAINED = Extraction(None, "abstained")

Rule = Callable[[Part], Found | None]
Table = Sequence[tuple[str, Rule]]
"""Methods, strongest first: a name, and what finds an answer in a part of a text or does not."""

_WEAKEST = 2
"""Rules at the end of every table that read sentences which do not speak of an answer."""
_CUT = frozenset({"length", "max_tokens", "content_filter", "safety", "recitation", "abort", "cancelled", "error"})


def was_cut(finish_reason: object) -> bool:
    """Whether a path ended before its model was done (length, filter, fault), and so has no answer."""
    return isinstance(finish_reason, str) and finish_reason.strip().lower() in _CUT


def by_evidence(table: Table, text: str, asked: Asked) -> Extraction:
    """What the first rule of a table that finds anything finds."""
    part = final_part(text, asked)
    before = part.before_another_question()
    for read, rules in ((before, table[:-_WEAKEST]), (part, table)) if before is not None else ((part, table),):
        for method, find in rules:
            found = find(read)
            if found is not None:
                return settle(found.answer, method, read.placed(found), asked)
    last = part.last_sentence()
    return ABSTAINED if last is not None and is_refusal(part.text[slice(*last)]) else NOTHING


def settle(answer: str, method: str, span: tuple[int, int] | None = None, asked: Asked = NOTHING_SAID) -> Extraction:
    """An extracted answer, unless it is blank or says that the model does not know, where that is no choice."""
    stripped = answer.strip()
    if not stripped:
        return NOTHING
    may_be_chosen = {text.casefold() for text in (*asked.options, *asked.labels)}
    if is_refusal(stripped) and stripped.rstrip(".!").casefold() not in may_be_chosen:
        return Extraction(None, ABSTAINED.method, span)
    return Extraction(stripped, method, span)


def is_refusal(answer: str) -> bool:
    """Whether an answer says that there is none."""
    return len(answer) < 200 and _REFUSAL.fullmatch(answer.strip()) is not None


def whole_text(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """All of the final part, for answers that are compared as they stand."""
    part = final_part(text, asked)
    return settle(part.text, "whole text", (part.start, part.start + len(part.text)))
