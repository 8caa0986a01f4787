"""One promise for a cascade of stages: P(some stage answers and is wrong) ≤ α, each stage having a share of the errors.

    k_s   errors allowed to stage s; k = k_1 + … + k_S is the rank of an ordinary guarantee for n questions
    λ̂_s   the k_s-th largest wrong key of stage s among the questions that get there
    T_s   the k_s questions whose wrong keys are as large as that: they are used up, and set no later threshold

All stages voted on the same n questions. Leave each of n + 1 questions out in turn. If it is one of the k_1 wrong ones
with the largest keys at stage 1, count it as an error, whatever becomes of it. For all others λ̂_1 and T_1 are the same,
so the same questions set λ̂_2, and among these at most k_2 are answered wrongly there when they are left out; and so on.
At most k of n + 1 are wrong in all: the probability is at most k / (n + 1), as if one threshold had rank k. Of
independent questions the rate of errors follows the law of such a threshold too (docs/theory.md has the proof).
The shares have to be settled without a look at the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats, ThresholdKey, above_all, exceeds

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JointVotes:
    """The votes of every stage on the same n questions, row by row."""

    keys: tuple[Floats, ...]
    """Of each stage, n × c: c may differ."""
    right: tuple[Flags, ...]
    n_paths: tuple[NDArray[np.intp], ...]

    @property
    def n(self) -> int:
        return len(self.keys[0])

    def take(self, rows: NDArray[Any]) -> JointVotes:
        """Some of the questions."""
        return JointVotes(*(tuple(part[rows] for part in parts) for parts in (self.keys, self.right, self.n_paths)))

    def thresholds(self, ranks: Sequence[int]) -> list[ThresholdKey]:
        """λ̂ of each stage, of which so many errors are allowed."""
        here, free = np.ones(self.n, dtype=np.bool_), np.ones(self.n, dtype=np.bool_)
        thresholds: list[ThresholdKey] = []
        for stage, (key, right, k) in enumerate(zip(self.keys, self.right, ranks, strict=True)):
            threshold, rows = above_all(key.shape[1]), here & free
            if k and rows.any():
                threshold = Evidence.of(key[rows], right[rows]).threshold(k)
                free &= ~self._used_up(stage, rows, threshold, k)
                here &= ~exceeds(key, threshold)
            elif k:  # nothing gets here, so nothing that does can be wrong
                threshold = (0.0, *above_all(key.shape[1])[1:])
            thresholds.append(threshold)
        return thresholds

    def reached(self, thresholds: Sequence[ThresholdKey]) -> list[Flags]:
        """Which questions get to each stage, and behind the last one to a person."""
        reached = [np.ones(self.n, dtype=np.bool_)]
        for key, threshold in zip(self.keys, thresholds, strict=True):
            reached.append(reached[-1] & ~exceeds(key, threshold))
        return reached

    def _used_up(self, stage: int, rows: Flags, threshold: ThresholdKey, k: int) -> Flags:
        """The k wrong votes with the largest keys; of those that tie, the ones with most to lose at later stages."""
        key, wrong = self.keys[stage], rows & ~self.right[stage]
        used = wrong & exceeds(key, threshold)
        level = key[:, 0] == 0 if threshold[0] == 0 else (key == np.array(threshold)).all(axis=1)
        tied, lacking = np.flatnonzero(wrong & level), k - int(used.sum())
        if len(tied) > lacking:
            tied = tied[self._most_to_lose(stage, tied)[:lacking]]
        used[tied] = True
        return used

    def _most_to_lose(self, stage: int, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """An order of rows by what they are alone, wrong ones with large keys at the next stages first."""
        columns = []
        for key, right in zip(self.keys[stage + 1 :], self.right[stage + 1 :], strict=True):
            columns += [right[rows], *(-np.where(right[rows, None], -np.inf, key[rows])).T]
        return np.lexsort(columns[::-1]) if columns else np.arange(len(rows))


def as_shares(shares: Sequence[Any], stages: int) -> tuple[Fraction, ...]:
    """The part of the allowed errors that each stage has, adding up to 1; numbers in proportion are enough."""
    if isinstance(shares, (str, bytes)) or len(shares) != stages:
        raise InvalidValue(f"shares must hold one number per stage, {stages} of them, got {shares!r:.60}")
    try:
        given = [Fraction(str(share)) for share in shares]
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"shares must be numbers >= 0, got {shares!r:.60}") from None
    if min(given) < 0 or not sum(given):
        raise InvalidValue(f"shares must be numbers >= 0 that are not all 0, got {shares!r:.60}")
    return tuple(share / sum(given) for share in given)


def ranks_of(k: int, shares: Sequence[Fraction]) -> list[int]:
    """k errors shared out in whole numbers: what is rounded off goes to the stages behind."""
    ahead = [sum(shares[:stage], Fraction(0)) for stage in range(len(shares) + 1)]
    return [int(k * high) - int(k * low) for low, high in pairwise(ahead)]
