"""Mathematics: the last balanced `\\boxed{…}`, else "the answer is …", else the trailing number."""

from __future__ import annotations

import re

from demur.answers.extraction import NOTHING, TRUNCATED, Extraction, final_part, settle

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BARE_BOX = re.compile(r"\\boxed\s+([^\s$.,;]+)")
_SAID = re.compile(r"(?:final\s+answer|answer)\s*(?:is|are|:|=)\s*:?\s*", re.I)
_SENTENCE_END = re.compile(r"\.(?=\s|$)|\n|(?<=\$)\s*[.,;](?=\s|$)")
_NUMBER = re.compile(r"[-−+]?\$?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?(?:[eE][-+]?\d+)?%?")
_MAX_BOX = 5000
_BOX_TRIES = 8
_NUMBER_TAIL = 2000


def extract(text: str, *, truncated: bool = False) -> Extraction:
    """The answer of one path. A truncated path has none, whatever it says so far."""
    if truncated:
        return TRUNCATED
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
    escaped = False
    for position in range(start, min(len(text), start + _MAX_BOX)):
        character = text[position]
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return text[start:position]
    return None
