"""Open questions: the last `<answer>` span, else the last sentence."""

from __future__ import annotations

import re

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import NOTHING, Extraction, final_part, settle

_TAG = re.compile(r"<(/?)answer>", re.I)
_SENTENCE = re.compile(r"[^.!?\n]+")
_SAID = re.compile(r"\s*(?:(?:so|thus|therefore|hence),? )?(?:the|my) (?:final )?answer (?:is|would be):? ?", re.I)


def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """The last `<answer>` span, else the last sentence, without a "the answer is" before it."""
    part = final_part(text)
    span = _last_span(part)
    if span is not None:
        return settle(span, "answer span")
    sentences = [s for s in _SENTENCE.findall(part) if s.strip()]
    return settle(_SAID.sub("", sentences[-1], count=1), "last sentence") if sentences else NOTHING


def _last_span(text: str) -> str | None:
    """What stands between the last `<answer>` that closes and its end, in one pass however many never close."""
    start, span = None, None
    for tag in _TAG.finditer(text):
        if not tag.group(1):
            start = tag.end() if start is None else start
        elif start is not None:
            start, span = None, text[start : tag.start()]
    return span
