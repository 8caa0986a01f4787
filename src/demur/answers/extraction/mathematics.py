"""Mathematics: the last balanced `\\boxed{…}`, else "the answer is …", else the trailing number."""

from __future__ import annotations

import re

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import NOTHING, Extraction, final_part, settle

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.S)  # what a backslash escapes is none
_BARE_BOX = re.compile(r"\\boxed\s+([^\s$.,;]+)")
_SAID = re.compile(r"(?:final\s+answer|answer)\s*(?:is|are|:|=)\s*:?\s*", re.I)
_SENTENCE_END = re.compile(r"\.(?=\s|$)|\n|(?<=\$)\s*[.,;](?=\s|$)")
_NUMBER = re.compile(r"[-−+]?\$?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?(?:[eE][-+]?\d+)?%?")
_MAX_BOX = 5000
_BOX_TRIES = 8
_NUMBER_TAIL = 2000


def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """The answer of one path that came to its end."""
    part = final_part(text)
    boxed = last_boxed(part)
    if boxed is not None:
        return settle(boxed, "boxed")
    said = [match.end() for match in _SAID.finditer(part)]
    if said:
        rest = part[said[-1] : said[-1] + 500]
        end = _SENTENCE_END.search(rest)
        answer = (rest if end is None else rest[: end.start()]).strip().strip("*:").strip()
        if answer:
            return settle(answer, "answer is")
    numbers = _NUMBER.findall(part[-_NUMBER_TAIL:])
    return settle(numbers[-1], "trailing number") if numbers else NOTHING


def last_boxed(text: str) -> str | None:
    """The inside of the last box whose braces balance."""
    for box in list(_BOX.finditer(text))[-1 : -_BOX_TRIES - 1 : -1]:
        inside = _balanced(text, box.end())
        if inside is not None:
            return inside
    bare = _BARE_BOX.findall(text)
    return bare[-1] if bare else None


def _balanced(text: str, start: int) -> str | None:
    depth = 1
    for brace in _BRACE.finditer(text, start, start + _MAX_BOX):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return text[start : brace.start()]
    return None
