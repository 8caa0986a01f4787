"""What each answer of many pools of a table has, as arrays: the numbers of their votes' tallies, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.voting._exact_sums import Floats, on_grid
from demur.voting.one_pool import key_order
from demur.voting.rows import KeyRows
from demur.voting.votes import Votes
from demur.voting.weights import Uniform

SHARE_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class AnswerCounts:
    """The answers of some pools, pool by pool; of each pool the winner first, then by tally, paths and key."""

    pool: NDArray[np.intp]
    """The pool of each answer, counted from the first of them."""
    text: NDArray[Any]
    """How it is written, as a code."""
    paths: NDArray[np.intp]
    share: Floats
    """Its share of the weighted vote, to the twelfth decimal."""
    respelled: NDArray[np.bool_]
    """For each pool, whether its paths write one answer in several ways: `text` is but one of them."""


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """The answers of votes on a table, a row per pool."""

    votes: Votes
    texts: NDArray[Any]
    """How the answer of each path is written, as a code."""
    place: dict[Any, int]
    """The place of each key among all, the smallest first; −1 for no answer."""
    places: NDArray[np.intp]
    """The same by the code of the key, −1 at the end."""

    @classmethod
    def of(cls, votes: Votes, texts: KeyRows) -> AnswerTable | None:
        """None where the answers of these votes do not come from columns."""
        answers = votes._answers.pools
        if not isinstance(answers, KeyRows):
            return None
        keys = answers.keys[:-1].tolist()
        place: dict[Any, int] = {key: at for at, key in enumerate(sorted(keys, key=key_order))} | {None: -1}
        return cls(votes, texts.padded(-1), place, np.array([place[key] for key in [*keys, None]], dtype=np.intp))

    def counts(self, start: int, end: int) -> AnswerCounts:
        """What each answer of some pools has."""
        keys, texts = self.places[self.votes._answers.codes[start:end]], self.texts[start:end]
        order = np.argsort(keys, axis=1, kind="stable")
        keys, texts = np.take_along_axis(keys, order, 1), np.take_along_axis(texts, order, 1)
        given, new = keys >= 0, np.ones(keys.shape, dtype=np.bool_)
        new[:, 1:] = keys[:, 1:] != keys[:, :-1]
        respelled = (~new & given)[:, 1:] & (texts[:, 1:] != texts[:, :-1])
        weights = self._weights(start, end)
        first = np.flatnonzero(new & given)
        pool = first // keys.shape[1]
        tally = _sums(np.take_along_axis(weights, order, 1) * given, first)
        paths = _sums(given.astype(np.intp), first)
        winners = np.array([self.place[key] for key in self.votes.winners[start:end].tolist()], dtype=np.intp)
        ranked = np.lexsort((-paths, -tally, keys.ravel()[first] != winners[pool], pool))
        share = rounded(tally / weights.sum(axis=1)[pool])
        return AnswerCounts(pool, texts.ravel()[first][ranked], paths[ranked], share[ranked], respelled.any(axis=1))

    def _weights(self, start: int, end: int) -> Floats:
        """The weight of each path as a whole number, 0 past the size of its pool."""
        recipe, scores, sizes = self.votes.recipe, self.votes._scores, self.votes.n_paths[start:end]
        weights = np.zeros((end - start, self.texts.shape[1]))
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            own = np.ones((len(rows), size))
            if scores is not None and not isinstance(recipe.weight, Uniform):
                own = recipe.weights(scores[start + rows, :size], start + rows)
            weights[rows, :size] = on_grid(own)
        return weights


def _sums(values: NDArray[Any], first: NDArray[np.intp]) -> NDArray[Any]:
    """Sums of the values from each place on to the next."""
    return np.add.reduceat(values.ravel(), first) if len(first) else values.ravel()[:0]


def rounded(shares: Floats) -> Floats:
    """Shares as `round` rounds them, which numpy does not where what is cut off is close to a half."""
    scaled = shares * 10.0**SHARE_DECIMALS
    nearest: Floats = np.rint(scaled) / 10.0**SHARE_DECIMALS
    close = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-3
    nearest[close] = [round(share, SHARE_DECIMALS) for share in shares[close].tolist()]
    return nearest
