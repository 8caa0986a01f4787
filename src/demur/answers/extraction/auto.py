"""Answers of no said task: as the question asks, for a quantity or for words."""

from __future__ import annotations

import re

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import Extraction, by_evidence, mathematics, text

_QUANTITY = re.compile(
    r"""
    \bhow\ (?:many|much|old|long|far|tall|fast|big|heavy|wide|deep|high|often)\b
    | \bwhat\ (?:number|percent(?:age)?|fraction|value)\b
    | \b(?:calculate|compute|evaluate|simplify|solve)\b | \bdetermine\ the\ (?:value|number)\b
    | \bfind\ the\ (?:value|number|sum|area|probability|smallest|largest|product)\b
    | [\d)]\s?[-+*/×÷^]\s?[\d(].{0,40}[=?] | \\(?:frac|sqrt) | \$[^$]{1,80}\$
    """,
    re.I | re.X,
)


def extract(written: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """By the rules of mathematics where the question asks for a quantity, else by those of open questions."""
    wanted = asked.question is not None and _QUANTITY.search(asked.question[-2000:]) is not None
    return by_evidence(mathematics.TABLE if wanted else text.TABLE, written, asked)
