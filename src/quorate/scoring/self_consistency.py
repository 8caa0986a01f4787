"""Self-consistency: how much a path agrees with the others of its pool (theory 1.4).

    s_j = 1/(m−1) Σ_{k≠j} |A_j ∩ A_k| / |A_j ∪ A_k|        A_j: the set of words of path j

A word is a run of characters without blanks, in lower case (`words@1`). Paths become rows of a table with a column per
word, and all intersections of a pool one product of it with itself: whole numbers, so nothing is rounded before the
ratios. A path without words agrees with nothing; the only path of a pool has score 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import ScoringError
from quorate.records import Pool

TOKENISER = "words@1"


class SelfConsistency:
    """The mean Jaccard similarity of a path's words with those of the other paths."""

    name = "self-consistency"
    normaliser = "pool_z"

    def identity(self) -> dict[str, Any]:
        return {"scorer": self.name, "version": 1, "similarity": "jaccard", "tokeniser": TOKENISER}

    def score(self, pool: Pool) -> list[float]:
        texts = [path.text for path in pool.paths]
        if all(text is None for text in texts):
            raise ScoringError(
                f"the paths of problem {pool.problem.id!r} have no texts, which the score {self.name} compares"
            )
        return mean_jaccard(*numbered([words(text or "") for text in texts])).tolist()  # type: ignore[no-any-return]


def words(text: str) -> set[str]:
    """The unigrams of a text."""
    return set(text.lower().split())


def numbered(sets: Sequence[set[str]]) -> tuple[list[NDArray[np.intp]], int]:
    """Each path's words as numbers, and how many there are in all."""
    number: defaultdict[str, int] = defaultdict(count().__next__)
    return [np.fromiter(map(number.__getitem__, each), np.intp, len(each)) for each in sets], len(number)


def mean_jaccard(paths: Sequence[NDArray[np.intp]], n_words: int) -> NDArray[np.float64]:
    """The mean similarity of each path to the others, from their words as numbers below `n_words`."""
    has_word = np.zeros((len(paths), n_words), dtype=np.float32)  # counts below 2²⁴ are exact
    for row, held in zip(has_word, paths, strict=True):
        row[held] = 1
    shared = (has_word @ has_word.T).astype(np.float64)
    own = shared.diagonal()
    union = own[:, None] + own - shared
    similarity = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    np.fill_diagonal(similarity, 0.0)
    return np.asarray(similarity.sum(axis=1) / max(len(paths) - 1, 1))
