"""Multiple choice: a letter, however it is dressed, or the text of an option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from demur.answers import open_answers
from demur.answers.extraction import NOTHING, TRUNCATED, Extraction, final_part, settle

_LETTER = re.compile(r"(?:\\(?:text|textbf|mathrm|mathbf)\s*\{)?[\s($\[*]*([A-Za-z])[\s)$\].:*]*\}?[\s$.*]*")
_LETTER_AND_TEXT = re.compile(r"[\s($\[*]*([A-Z])[)\].:]+\s+\S.*", re.S)
_SAID = re.compile(
    r"(?:answer|choice|option)\s*(?:is|:|=)?\s*:?\s*[\s($\[*]*(?:\\(?:boxed|text|textbf)\s*\{\s*)*\(?([A-Z])(?![A-Za-z'])",
    re.I,
)
_BOXED = re.compile(r"\\boxed\s*\{[^A-Za-z]*(?:\\text(?:bf)?\s*\{)?\s*\(?([A-Z])\)?[^A-Za-z]*\}")
_LONE = re.compile(r"(?:^|\n)\s*[(*]*([A-Z])[).:*]*\s*(?=\n|$)")


@lru_cache(maxsize=65_536)
def key(answer: str) -> str | None:
    """The letter, in upper case; the normalised text of anything else."""
    stripped = answer.strip()
    if not stripped:
        return None
    letter = _LETTER.fullmatch(stripped) or (_LETTER_AND_TEXT.fullmatch(stripped) if len(stripped) < 2000 else None)
    return f"o:{letter.group(1).upper()}" if letter else open_answers.key(stripped)


def extract(text: str, *, truncated: bool = False, options: Sequence[str] | None = None) -> Extraction:
    """The last letter that is said to be the answer, or boxed, or stands alone; else an option's own text."""
    if truncated:
        return TRUNCATED
    part = final_part(text)
    for pattern, method in ((_BOXED, "boxed"), (_SAID, "answer is"), (_LONE, "letter")):
        letters = pattern.findall(part)
        if letters and letters[-1].isupper():
            return settle(letters[-1], method)
    if options:
        wanted = {open_answers.key(option): chr(ord("A") + place) for place, option in enumerate(options)}
        last = open_answers.extract(part).answer
        letter = wanted.get(open_answers.key(last)) if last else None
        if letter:
            return settle(letter, "option text")
    bare = _LETTER.fullmatch(part.strip())
    return settle(bare.group(1).upper(), "letter") if bare else NOTHING
