"""Open questions: the last `<answer>` span, else the last sentence."""

from __future__ import annotations

import re

from demur.answers.extraction import NOTHING, Extraction, final_part, settle

_SPAN = re.compile(r"<answer>(.*?)</answer>", re.I | re.S)
_SENTENCE = re.compile(r"[^.!?\n]+")
_SAID = re.compile(r"\s*(?:(?:so|thus|therefore|hence),? )?(?:the|my) (?:final )?answer (?:is|would be):? ?", re.I)


def extract(text: str) -> Extraction:
    """The last `<answer>` span, else the last sentence, without a "the answer is" before it."""
    part = final_part(text)
    spans = _SPAN.findall(part)
    if spans:
        return settle(spans[-1], "answer span")
    sentences = [s for s in _SENTENCE.findall(part) if s.strip()]
    return settle(_SAID.sub("", sentences[-1], count=1), "last sentence") if sentences else NOTHING
