"""How many errors the most confident votes may hold, at every number of them at once.

    S_j   wrong ones among j votes that are each wrong with chance α, independently
    c_j   errors allowed among the j most confident votes; −1 where not even none is enough

The boundary c is such that P(S_j ≤ c_j for any j ≤ n) ≤ δ. Of its budget δ, a share √(j/n) may be spent up to rank j:
the walk S is followed from rank to rank, whatever crosses is taken out of it, and c_j is the largest count that the
budget still allows. Ranks beyond the first few hundred are looked at every few per cent. Between two looks the boundary
follows from both for nothing: S_i ≤ c_j − (j − i) leads to S_j ≤ c_j for i < j, and S_i ≤ c_j comes from it for i > j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from demur.errors import InvalidValue
from demur.evidence.counts import Counts, Floats

_EACH_RANK = 256
_STEP = 1.05
_SLACK = 1e-8
"""The relative part of δ that is never spent: far more than rounding can add up to."""
_NEGLIGIBLE = 1e-22
"""Chances of less than this part of δ are left out."""
NOTHING = -1
MOST_VOTES = 10**7


@dataclass(frozen=True, eq=False)
class Boundary:
    """The errors allowed at each number of most confident votes, n calibration votes in all."""

    looks: Counts
    """Ranks at which the budget is spent, ascending."""
    most: Counts
    """c at each of them."""
    spent: float
    """P(S_j ≤ c_j for any j), which is at most δ."""

    def allowed(self, answered: Counts) -> Counts:
        """c_j at each of these numbers j of votes; −1 where nothing may be answered."""
        past = np.searchsorted(self.looks, answered, side="right")
        before = np.append(NOTHING, self.most)[past]
        ahead = np.append(np.maximum.accumulate((self.most - self.looks)[::-1])[::-1], -np.iinfo(np.int64).max // 2)
        return np.asarray(np.maximum(before, np.maximum(ahead[past] + answered, NOTHING)), dtype=np.int64)


def fewest_votes(alpha: float, delta: float) -> int:
    """The smallest n at which votes that are all right may be answered: (1 − α)ⁿ ≤ δ."""
    return max(1, math.ceil(math.log(delta * (1 - _SLACK)) / math.log1p(-alpha)))


@lru_cache(maxsize=512)
def boundary(n: int, alpha: float, delta: float) -> Boundary:
    """The boundary of n calibration votes."""
    if n > MOST_VOTES:
        raise InvalidValue(f"a promise about answers takes up to {MOST_VOTES:,} calibration votes, got {n:,}")
    looks = _looks(n, min(fewest_votes(alpha, delta), n))
    alive, lowest, rank, spent = np.ones(1), 0, 0, 0.0
    most = np.full(len(looks), NOTHING, dtype=np.int64)
    for at, look in enumerate(looks.tolist()):
        steps, fewest = _binomial(look - rank, alpha, _NEGLIGIBLE * delta)
        alive, lowest, rank = np.convolve(alive, steps), lowest + fewest, look
        crossing = np.cumsum(alive)
        budget = delta * (1 - _SLACK) * math.sqrt(look / n) - spent
        taken = int(np.searchsorted(crossing, budget, side="right"))
        most[at] = max(lowest + taken - 1, most[at - 1] if at else NOTHING)
        if taken:
            spent += float(crossing[taken - 1])
        kept = len(alive) - int(np.searchsorted(np.cumsum(alive[::-1]), _NEGLIGIBLE * delta))
        alive, lowest = alive[taken : max(kept, taken + 1)], lowest + taken
        if not len(alive):  # all of it crossed, which only a δ near 1 allows
            alive = np.zeros(1)
    return Boundary(looks, most, spent)


def _looks(n: int, first: int) -> Counts:
    """Every rank at first, then every few per cent, and n."""
    ranks, rank = [], first
    while rank < n:
        ranks.append(rank)
        rank = rank + 1 if rank < _EACH_RANK else math.ceil(rank * _STEP)
    return np.array([*ranks, n], dtype=np.int64)


def _binomial(n: int, chance: float, negligible: float) -> tuple[Floats, int]:
    """P(Bin(n, chance) = j) wherever that is not negligible, and the first such j."""
    reach = math.sqrt(-2 * math.log(negligible) * n * chance * (1 - chance)) - math.log(negligible)
    low, high = max(0, math.floor(n * chance - reach)), min(n, math.ceil(n * chance + reach))
    j: NDArray[np.float64] = np.arange(low, high + 1, dtype=np.float64)
    ways = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    chances = np.exp(ways + j * math.log(chance) + (n - j) * math.log1p(-chance))
    return chances / chances.sum(), low
