"""Numbers that tell kinds of questions apart: words hashed into a fixed number of places, and the shape of the text.

    places    square roots of the shares of a question's words that fall into each place: a vector of length 1
    shape     a few logarithms and shares: how long, how many digits, marks, lines, letters of other scripts

Words are those of any script; ideographs count one by one, digits by how many stand together, and long words by their
beginning too. Hashes are BLAKE2b, so the same text has the same numbers on every machine. No label is ever looked at.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

VERSION = 1
PLACES = 504
SHAPE = ("characters", "words", "word length", "digits", "marks", "capitals", "lines", "other scripts")
SIZE = PLACES + len(SHAPE)

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|\d+|[^\W\d_{_IDEOGRAPHS}]+|[^\w\s]|_")
_DIGIT = re.compile(r"\d")
_LONG, _BEGINNING = 6, 4
_LONGEST = 20_000
"""Characters that are looked at: of a book that comes with a question, the first pages tell enough."""

Floats = NDArray[np.float64]


def features(questions: Sequence[str]) -> Floats:
    """One row of `SIZE` numbers per question."""
    table = np.zeros((len(questions), SIZE))
    for row, question in zip(table, questions, strict=True):
        _fill(row, question.strip()[:_LONGEST])
    return table


def _fill(row: Floats, question: str) -> None:
    text = unicodedata.normalize("NFKC", question)
    tokens = _TOKEN.findall(_DIGIT.sub("0", text.casefold()))
    for token, times in Counter(tokens).items():
        row[_place(token)] += times
        if len(token) >= _LONG and token[0] != "0":
            row[_place(f"{token[:_BEGINNING]}…")] += times
    if total := row.sum():
        # The square roots of shares have length 1 whatever the length of the text, without a sum that could round.
        np.sqrt(row / total, out=row)
    row[PLACES:] = _shape(text, tokens)


def _shape(text: str, tokens: Sequence[str]) -> list[float]:
    words = [token for token in tokens if token[0].isalpha()]
    letters, size = sum(map(len, words)), max(len(text), 1)
    shape = [
        math.log1p(len(text)),
        math.log1p(len(words)),
        letters / max(len(words), 1),
        sum(map(str.isdigit, text)) / size,
        sum(len(token) == 1 and not token.isalnum() for token in tokens) / size,
        sum(map(str.isupper, text)) / size,
        math.log1p(text.count("\n")),
        sum(char.isalpha() and char > "\u024f" for char in text) / size,
    ]
    return [round(value, 9) for value in shape]  # logarithms differ in the last bit from machine to machine


@lru_cache(maxsize=1 << 16)
def _place(token: str) -> int:
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % PLACES
