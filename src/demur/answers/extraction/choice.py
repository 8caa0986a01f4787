"""Multiple choice: the last letter that is said to be the answer, or boxed, or stands alone."""

from __future__ import annotations

import re

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence import text as text_keys
from demur.answers.equivalence.choice import LETTER
from demur.answers.extraction import NOTHING, Extraction, final_part, settle
from demur.answers.extraction import text as text_extraction

_SAID = re.compile(
    r"(?:answer|choice|option)\s*(?:is|:|=)?\s*:?\s*[\s($\[*]*(?:\\(?:boxed|text|textbf)\s*\{\s*)*\(?([A-Z])(?![A-Za-z'])",
    re.I,
)
_BOXED = re.compile(r"\\boxed\s*\{[^A-Za-z]*(?:\\text(?:bf)?\s*\{)?\s*\(?([A-Z])\)?[^A-Za-z]*\}")
_LONE = re.compile(r"(?:^|\n)\s*[(*]*([A-Z])[).:*]*\s*(?=\n|$)")


def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """The last letter that is said to be the answer, or boxed, or stands alone; else an option's own text."""
    part = final_part(text)
    for pattern, method in ((_BOXED, "boxed"), (_SAID, "answer is"), (_LONE, "letter")):
        letters = pattern.findall(part)
        if letters and letters[-1].isupper():
            return settle(letters[-1], method)
    wanted = {text_keys.key(option): chr(ord("A") + place) for place, option in enumerate(asked.options)}
    last = text_extraction.extract(part).answer if asked.options else None
    letter = wanted.get(text_keys.key(last)) if last else None
    if letter:
        return settle(letter, "option text")
    bare = LETTER.fullmatch(part.strip())
    return settle(bare.group(1).upper(), "letter") if bare else NOTHING
