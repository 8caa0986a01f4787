"""The exact law of confident errors over random splits of one fixed file, ties and all.

    T    rows of the file             n    rows that calibrate, drawn at random; N = T − n are tested
    k    rank of the threshold        J    wrong rows of the test part that are answered
    c_j  wrong rows at level j > 0    D_j  wrong rows above that level

The threshold is level j when a < k of the D_j rows above it calibrate and at least k − a of its own c_j rows do too;
then the D_j − a rows above it that do not calibrate are answered wrongly. Both counts are hypergeometric, the second
given the first, so that

    P(J = D_j − a, threshold at j) = P(Hyp(T, D_j, n) = a) · P(Hyp(T − D_j, c_j, n − a) ≥ k − a).

Where not even k of all the wrong rows with confidence calibrate, all of them that are tested are answered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from demur.errors import InvalidValue
from demur.evidence.counts import Counts, Evidence, Floats

_NEGLIGIBLE = 1e-25
_CHUNK_ENTRIES = 2_000_000
_LATTICE = 2**21
"""Points on which the errors of many splits are added up."""


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """The confident errors on the rest of a file when `n_cal` of its rows, drawn at random, calibrate at rank k."""

    k: int
    n_cal: int
    total: int
    wrong: Counts
    """c_j, the most confident level first; rows without confidence are never answered and have no place here."""

    @classmethod
    def of(cls, evidence: Evidence, k: int, n_cal: int) -> SplitLaw:
        if not 0 < n_cal < evidence.n:
            raise InvalidValue(f"n_cal must lie between 1 and {evidence.n - 1}, got {n_cal}")
        possible = (evidence.wrong > 0) & (evidence.levels[:, 0] > 0)
        return cls(k, n_cal, evidence.n, evidence.wrong[possible][::-1])

    @property
    def n_test(self) -> int:
        return self.total - self.n_cal

    @cached_property
    def mean(self) -> float:
        """E[J] / N: what the mean error rate over all splits is."""
        return float(np.dot(self.counts, np.arange(len(self.counts)))) / self.n_test

    @cached_property
    def mean_without_ties(self) -> float:
        """What the mean would be if no two wrong rows had one confidence: rows that are right do not matter to it."""
        return SplitLaw(self.k, self.n_cal, self.total, np.ones(int(self.wrong.sum()), dtype=np.int64)).mean

    @cached_property
    def sd(self) -> float:
        """The standard deviation of J / N: of the error rate in one split."""
        distance = np.arange(len(self.counts)) / self.n_test - self.mean
        return math.sqrt(float(np.dot(self.counts, distance**2)))

    @cached_property
    def counts(self) -> Floats:
        """P(J = 0), P(J = 1), …, up to the number of wrong rows with confidence."""
        chances = np.zeros(int(self.wrong.sum()) + 1)
        if self.k <= 0:
            chances[0] = 1.0
            return chances
        # Behind the last level comes one that every split reaches: as though k rows of its own always calibrated.
        above = np.append(0, np.cumsum(self.wrong))
        own = np.append(self.wrong, self.k)
        least, most = np.maximum(self.k - own, 0), np.minimum(above, self.k - 1)
        per_level = np.maximum(most - least + 1, 0)
        level = np.repeat(np.arange(len(own)), per_level)
        a = np.arange(len(level)) - np.repeat(np.cumsum(per_level) - per_level, per_level) + least[level]
        chance = _hypergeometric(a, self.total, above[level], self.n_cal)
        kept = chance > _NEGLIGIBLE
        level, a, chance = level[kept], a[kept], chance[kept]
        inside = level < len(self.wrong)
        others = self.total - above[level[inside]], self.wrong[level[inside]], self.n_cal - a[inside]
        chance[inside] *= 1 - hypergeometric_cdf(self.k - 1 - a[inside], *others)
        np.add.at(chances, above[level] - a, chance)
        return np.asarray(chances / chances.sum())

    def p_value(self, errors: int, splits: int) -> float:
        """Two-sided, of the number of errors in so many independent splits together.

        By the exact law of their sum: the one split in a thousand that meets a rare atom is many standard errors away,
        and a normal law would call it impossible. Where the sum has more values than the lattice has points, each is
        shared between its two neighbours so that the mean stays.
        """
        likely = np.flatnonzero(self.counts > _NEGLIGIBLE)
        low, high = int(likely[0]), int(likely[-1])
        step = max(1.0, (high - low) * splits / _LATTICE)
        point = np.arange(high - low + 1) / step
        left = np.floor(point).astype(np.intp)
        to_left, to_right = (self.counts[low : high + 1] * share for share in (left + 1 - point, point - left))
        one = np.bincount(left, to_left, left[-1] + 2) + np.bincount(left + 1, to_right, left[-1] + 2)
        size = 1 << (splits * (len(one) - 1)).bit_length()
        together = np.fft.irfft(np.fft.rfft(one, size) ** splits, size)
        here = (errors - splits * low) / step
        at_least = together[max(0, math.ceil(here - 1e-9)) :].sum()
        at_most = together[: max(0, math.floor(here + 1e-9) + 1)].sum()
        return float(np.clip(2 * min(at_least, at_most), 0.0, 1.0))


def hypergeometric_cdf(at_most: ArrayLike, population: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> Floats:
    """P(marked among drawn ≤ at_most), element by element."""
    most, population, marked, drawn = np.broadcast_arrays(at_most, population, marked, drawn)
    # Further from its mean than this a hypergeometric count lies with a chance below e⁻⁵⁰: no terms are needed there.
    mean = marked * (drawn / population)
    low = np.floor(np.maximum(mean - 10 * np.sqrt(mean), 0)).astype(np.int64)
    high = np.minimum(np.minimum(marked, drawn), np.ceil(mean + 10 * np.sqrt(mean) + 34).astype(np.int64))
    result = np.where(most >= high, 1.0, 0.0)
    open_rows = np.flatnonzero((most >= low) & (most < high))
    terms = (most - low + 1)[open_rows]
    step = max(1, _CHUNK_ENTRIES // int(terms.max(initial=1)))
    for start in range(0, len(open_rows), step):
        rows = open_rows[start : start + step]
        hits = low[rows, None] + np.arange(int(terms[start : start + step].max()))
        chance = _hypergeometric(hits, *(array[rows, None] for array in (population, marked, drawn)))
        result[rows] = np.where(hits <= most[rows, None], chance, 0.0).sum(axis=1)
    return np.minimum(result, 1.0)


def _hypergeometric(hits: ArrayLike, population: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> Floats:
    """P(marked among drawn = hits), element by element; 0 for hits that cannot be."""
    i, total, m, n = (np.asarray(array, dtype=np.float64) for array in (hits, population, marked, drawn))
    return np.asarray(np.exp(_log_choose(m, i) + _log_choose(total - m, n - i) - _log_choose(total, n)))


def _log_choose(n: Floats, k: Floats) -> Floats:
    """−∞ for k outside 0 … n: the Γ of a whole number below 1 is infinite."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
