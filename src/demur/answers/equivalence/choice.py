"""Multiple choice: a letter, however it is dressed, or the text of an option."""

from __future__ import annotations

import re
from functools import lru_cache

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence import text

LETTER = re.compile(r"(?:\\(?:text|textbf|mathrm|mathbf)\s*\{)?[\s($\[*]*([A-Za-z])[\s)$\].:*]*\}?[\s$.*]*")
_LETTER_AND_TEXT = re.compile(r"[\s($\[*]*([A-Z])[)\].:]+\s+\S.*", re.S)


@lru_cache(maxsize=65_536)
def key(answer: str, asked: Asked = NOTHING_SAID) -> str | None:
    """The letter, in upper case; the normalised text of anything else."""
    stripped = answer.strip()
    if not stripped:
        return None
    letter = LETTER.fullmatch(stripped) or (_LETTER_AND_TEXT.fullmatch(stripped) if len(stripped) < 2000 else None)
    return f"o:{letter.group(1).upper()}" if letter else text.key(stripped)
