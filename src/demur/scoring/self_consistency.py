"""Self-consistency: how much a path agrees with the others of its pool (theory 1.4).

    s_j = 1/(m−1) Σ_{k≠j} |A_j ∩ A_k| / |A_j ∪ A_k|        A_j: the set of words of path j

A word is a run of characters without blanks, in lower case (`words@1`). Paths become rows of a table with a column per
word, and all intersections of a pool one product of it with itself: whole numbers, so nothing is rounded before the
ratios. A path without words agrees with nothing; the only path of a pool has score 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import ScoringError
from demur.records import Pool

TOKENISER = "words@1"


class SelfConsistency:
    """The mean Jaccard similarity of a path's words with those of the other paths."""

    name = "self-consistency"
    normaliser = "pool_z"

    def identity(self) -> dict[str, Any]:
        return {"scorer": self.name, "version": 1, "similarity": "jaccard", "tokeniser": TOKENISER}

    def score(self, pool: Pool) -> list[float]:
        texts = [path.text for path in pool.paths]
        if None in texts:
            raise ScoringError(f"path {texts.index(None)} has no text, which the score {self.name} compares")
        return mean_jaccard(number_words([text or "" for text in texts])).tolist()  # type: ignore[no-any-return]


def words(text: str) -> list[str]:
    """The unigrams of a text, in order, repeated ones too."""
    return text.lower().split()


@dataclass(frozen=True)
class NumberedWords:
    """The words of a pool's paths as numbers: `word[i]` stands in path `path[i]`."""

    path: NDArray[np.intp]
    word: NDArray[np.intp]
    n_paths: int
    n_words: int


def number_words(texts: Sequence[str]) -> NumberedWords:
    number: defaultdict[str, int] = defaultdict(count().__next__)
    of_paths = [words(text) for text in texts]
    lengths = list(map(len, of_paths))
    word = np.fromiter(map(number.__getitem__, chain.from_iterable(of_paths)), np.intp, sum(lengths))
    return NumberedWords(np.repeat(np.arange(len(texts)), lengths), word, len(texts), len(number))


def mean_jaccard(words: NumberedWords) -> NDArray[np.float64]:
    has_word = np.zeros((words.n_paths, words.n_words), dtype=np.float32)  # counts below 2²⁴ are exact
    has_word[words.path, words.word] = 1
    shared = (has_word @ has_word.T).astype(np.float64)
    own = shared.diagonal()
    union = own[:, None] + own - shared
    similarity = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    np.fill_diagonal(similarity, 0.0)
    return np.asarray(similarity.sum(axis=1) / max(words.n_paths - 1, 1))
