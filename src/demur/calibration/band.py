"""Upper bounds on the error rate of every threshold at once.

    V_(k)   the k-th smallest of n independent uniform numbers, Beta(k, n + 1 − k): what the true rate of wrong answers
            above the k-th largest wrong key never exceeds
    b_k     its bound: the 1 − γ quantile of that law, the same γ for every k
    δ       P(V_(k) > b_k for any k), which fixes γ

γ is found by following the number of uniforms below b_1 ≤ b_2 ≤ …, as a Poisson process that has n points in the end.
Whatever falls short of k points at b_k has crossed and is taken out. No simulation, and what rounding and chances that
are too small to count leave out counts as crossed. Up to a thousand votes every rank is looked at, beyond that one in
every few standard deviations' tenths: a rank that is passed over has the bound of the next one that is not, which holds
for nothing, for V_(k) ascends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, gammaln

from demur.errors import InvalidValue
from demur.evidence.counts import Counts, Floats

_EACH_RANK = 1000
_STEP = 0.1
"""Of a rank's standard deviation, √k: how far apart ranks are that are looked at."""
_MOST_LOOKS = 6000
_SLACK = 1e-7
"""The relative part of δ that is never spent: far more than rounding can add up to."""
_REACH = 9.0
"""Standard deviations beyond which a count is left out, as though it had crossed."""
_DIGITS = 5
"""γ is cut to so many digits, so that it is the same on every machine."""
MOST_VOTES = 10**6


@dataclass(frozen=True, eq=False)
class Band:
    """b_k at the ranks that are looked at."""

    n: int
    gamma: float
    looks: Counts
    """Ascending; the last is n."""
    bounds: Floats

    def bound(self, rank: int) -> float:
        """b_k; 1 beyond n, where no label bounds anything."""
        return float(self.bounds[np.searchsorted(self.looks, rank)]) if rank <= self.n else 1.0

    def rank(self, level: float) -> int:
        """The largest k with b_k ≤ level; 0 where there is none."""
        within = int(np.searchsorted(self.bounds, level, side="right"))
        return int(self.looks[within - 1]) if within else 0


@lru_cache(maxsize=256)
def band(n: int, delta: float) -> Band:
    """The band of n calibration votes that errs with probability at most delta."""
    if n > MOST_VOTES:
        raise InvalidValue(f"a promise for every threshold takes up to {MOST_VOTES:,} calibration votes, got {n:,}")
    from scipy.optimize import brentq  # takes a fifth of a second to load, and few policies need it

    looks, spent = _looks(n), delta * (1 - _SLACK)

    def excess(log_gamma: float) -> float:
        return 1 - _kept(n, looks, _bounds(n, looks, math.exp(log_gamma))) - spent

    # Any one rank crosses with chance γ, and all of them together with no more than n γ.
    low, high = math.log(spent / (n + 1)), math.log(spent)
    root = brentq(excess, low, high, xtol=10.0 ** -(_DIGITS + 1)) if n > 1 else high
    gamma = _cut(math.exp(root))
    while excess(math.log(gamma)) > 0:
        gamma = _cut(gamma * (1 - 10.0**-_DIGITS))
    return Band(n, gamma, looks, _bounds(n, looks, gamma))


def fewest_votes(alpha: float, delta: float) -> int:
    """The smallest n from which on some rank has a bound of at most alpha."""
    n = max(1, math.ceil(math.log(delta) / math.log1p(-alpha)))
    while band(n, delta).rank(alpha) == 0:  # γ falls slowly with n: a few steps lead there, and none beyond it
        n = max(n + 1, math.ceil(math.log(band(n, delta).gamma) / math.log1p(-alpha)))
    return n


def _looks(n: int) -> Counts:
    step = max(_STEP, 2 * math.sqrt(n) / _MOST_LOOKS)
    ranks, rank = [], 1
    while rank < n:
        ranks.append(rank)
        rank += 1 if rank < _EACH_RANK else max(1, int(step * math.sqrt(rank)))
    return np.array([*ranks, n], dtype=np.int64)


def _bounds(n: int, looks: Counts, gamma: float) -> Floats:
    # By the lower tail of the mirrored law: 1 − γ would lose the digits of a small γ.
    bounds = 1 - betaincinv(n + 1.0 - looks, looks.astype(np.float64), gamma)
    return np.maximum.accumulate(np.minimum(bounds, 1.0))


def _kept(n: int, looks: Counts, bounds: Floats) -> float:
    """P(V_(k) ≤ b_k at every look): at least k of n uniforms are no larger than each b_k; never too large."""
    alive, first, at = np.ones(1), 0, 0.0
    for rank, bound in zip(looks.tolist(), bounds.tolist(), strict=True):
        steps, fewest = _poisson(n * (bound - at))
        alive, first, at = np.convolve(alive, steps), first + fewest, bound
        middle, reach = n * bound, _REACH * math.sqrt(n * bound * (1 - bound)) + _REACH**2
        low = max(rank, first, math.floor(middle - reach))
        high = min(n, first + len(alive) - 1, math.ceil(middle + reach))
        if low > high:
            return 0.0
        alive, first = alive[low - first : high + 1 - first], low
    counts = np.arange(first, first + len(alive))
    rest = n * (1 - at)
    return float(alive @ np.exp(_log_poisson(n - counts, rest) - _log_poisson(np.array([n]), n)))


def _poisson(mean: float) -> tuple[Floats, int]:
    """P(Poisson = j) wherever it counts, and the first such j."""
    reach = _REACH * math.sqrt(mean) + _REACH**2 / 2
    low, high = max(0, math.floor(mean - reach)), math.ceil(mean + reach)
    return np.exp(_log_poisson(np.arange(low, high + 1), mean)), low


def _log_poisson(counts: Counts, mean: float) -> Floats:
    if mean <= 0:
        return np.where(counts == 0, 0.0, -np.inf)
    return np.asarray(counts * math.log(mean) - mean - gammaln(counts + 1.0))


def _cut(value: float) -> float:
    """The value with the last digits cut off."""
    scale = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)
    return float(f"{math.floor(value / scale * (1 + 1e-12)) * scale:.{_DIGITS - 1}e}")
