"""How many errors a judge may have seen above a threshold, given how many it missed there.

    n, n_c   votes, and those that people checked     a, b   errors seen among the n, errors missed among the n_c
    θ_a, θ_b  their chances, for one vote              c_b    the largest a that is allowed with b

A threshold is allowed where a ≤ c_b. Its rate is θ_a + θ_b, and whatever part of a rate r either has,

    P(a ≤ c_b) ≤ Σ_b P(Bin(n_c, θ_b) = b) · P(Bin(n − b, θ_a) ≤ c_b)

for checked votes with a missed error have no seen one. That falls as either chance rises, so that between two points of
a grid it is at most what it is at the smaller θ_a and the smaller θ_b: a bound for all parts, and not an estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from demur.evidence.counts import Counts, Floats
from demur.evidence.laws import BoundLaw

_FEWEST_PARTS, _MOST_PARTS = 64, 400
_STEPS = 100
"""Margins are tried in hundredths of a standard error, up to eight of them."""
_WIDEST = 8
_SLACK = 1e-8
"""The relative part of δ that is never spent: far more than rounding can add up to."""
_NEGLIGIBLE = 1e-9
_FAR = 9.0
_RATES = 64


@dataclass(frozen=True, eq=False)
class Region:
    """The pairs of seen and missed errors that are allowed above a threshold."""

    n: int
    checked: int
    most: Counts
    """c_0, c_1, …; b beyond the last is not allowed at all. Each is smaller than the one before."""

    def chance(self, rate: float, parts: int | None = None) -> float:
        """A bound on the chance that a threshold of this rate or a larger one is allowed, whatever a judge misses.

        It is looked at in so many parts of the rate; None: an eighth of a standard error each.
        """
        if not len(self.most):
            return 0.0
        parts = parts or min(max(math.ceil(8 * math.sqrt(rate * self.n)), _FEWEST_PARTS), _MOST_PARTS)
        share, b = np.linspace(0, min(rate, 1.0), parts + 1), np.arange(len(self.most), dtype=np.float64)[:, None]
        missed, m = (min(rate, 1.0) - share[1:])[None, :], float(self.checked)
        ways = gammaln(m + 1) - gammaln(b + 1) - gammaln(m - b + 1)
        met = np.exp(ways + xlogy(b, missed) + xlog1py(m - b, -missed))
        votes, most = np.broadcast_arrays(self.n - b, self.most[:, None].astype(np.float64))
        mean = votes * share[None, :-1]
        few = (most >= mean).astype(np.float64)  # nearly 1 or nearly 0 so far from the mean: P < e⁻⁴⁰ below it
        near = (np.abs(most - mean) <= _FAR * np.sqrt(mean + 1)) & (met > _NEGLIGIBLE**3)
        votes, most = (np.broadcast_to(each, near.shape)[near] for each in (votes, most))
        few[near] = bdtr(most, votes.astype(np.int64), np.broadcast_to(share[None, :-1], near.shape)[near])
        return min(1.0, float((met * few).sum(axis=0).max()))

    def allows(self, seen: Counts, missed: Counts) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether so many errors of either kind are allowed, pair by pair."""
        most = np.append(self.most, -1)
        return np.asarray(seen <= most[np.minimum(missed, len(self.most))])


@lru_cache(maxsize=256)
def region(n: int, checked: int, alpha: float, delta: float) -> Region:
    """The region of a promise of alpha for all but delta of calibration sets: P(a ≤ c_b) ≤ δ for all rates above α.

    c_b is where a/n + b/n_c and a margin of z standard errors reach alpha, z the smallest hundredth that keeps δ.
    """
    low, high = 0, _WIDEST * _STEPS  # the smallest z lies above the first, and no higher than the second if anywhere
    budget = delta * (1 - _SLACK)
    while high - low > 1:
        middle = (low + high) // 2
        if _of_margin(n, checked, alpha, middle / _STEPS).chance(alpha) <= budget:
            high = middle
        else:
            low = middle
    found = _of_margin(n, checked, alpha, high / _STEPS)
    if len(found.most) and found.chance(alpha) <= budget:
        return found
    least = Region(n, checked, np.zeros(1, dtype=np.int64))
    return least if least.chance(alpha) <= budget else Region(n, checked, np.zeros(0, dtype=np.int64))


def _of_margin(n: int, checked: int, alpha: float, z: float) -> Region:
    b = np.arange(min(checked, math.floor(alpha * checked)) + 1)
    # a/n + z·√((a + 1)/n² + (b + 1)/n_c²) ≤ α − b/n_c, squared and solved for a.
    left = n * (alpha - b / checked)
    half, rest = left + z * z / 2, left**2 - z * z * (1 + (b + 1) * (n / checked) ** 2)
    root = half - np.sqrt(np.maximum(half**2 - rest, 0.0))
    most = np.where(rest >= 0, np.floor(root + 1e-9), -1).astype(np.int64)
    most = np.minimum.accumulate(most + b) - b  # a missed error weighs at least as much as a seen one
    return Region(n, checked, most[: int((most >= 0).sum())])


@dataclass(frozen=True)
class RegionLaw(BoundLaw):
    """A bound on the errors of a threshold that a region allows.

    Its rate exceeds r with no more than the chance that the region leaves to r, at every r: a law of rates that none
    exceeds, given on a grid, and binomial counts at those.
    """

    n: int
    checked: int
    alpha: float
    delta: float

    @property
    def answers(self) -> bool:
        """False where nothing is allowed, so that nothing is ever answered."""
        return len(self.region.most) > 0

    @property
    def region(self) -> Region:
        return region(self.n, self.checked, self.alpha, self.delta)

    def counts(self, fresh: int) -> Floats:
        j = np.arange(fresh + 1, dtype=np.float64)
        if not self.answers:
            return np.asarray(j == 0, dtype=np.float64)
        rates, weights = _rates(self.n, self.checked, self.alpha, self.delta)
        ways = gammaln(fresh + 1.0) - gammaln(j + 1) - gammaln(fresh - j + 1)
        chances = np.zeros(fresh + 1)
        for rate, weight in zip(rates, weights, strict=True):
            chances += weight * np.exp(ways + xlogy(j, rate) + xlog1py(fresh - j, -rate))
        return chances


@lru_cache(maxsize=64)
def _rates(n: int, checked: int, alpha: float, delta: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Rates, and how likely each is, of a law that the true rate does not exceed."""
    allowed, highest = region(n, checked, alpha, delta), min(1.0, alpha)
    while highest < 1 and allowed.chance(highest, _RATES) > _NEGLIGIBLE:
        highest = min(1.0, 1.5 * highest)
    rates = np.linspace(0, highest, _RATES + 1)
    beyond = np.minimum.accumulate([1.0, *(allowed.chance(float(rate), _RATES) for rate in rates[1:-1]), 0.0])
    return tuple(rates[1:].tolist()), tuple((-np.diff(beyond)).tolist())
