"""The exact law of what a calibration on n votes brings, over calibration sets drawn from labelled votes.

    n, k    calibration votes, and the rank of the threshold: the k-th largest wrong key
    V       P(wrong, key at or above the threshold) ~ Beta(k, n + 1 − k); where it exceeds c there are not k errors
    c       P(wrong, ν > 0)
    G(v)    P(right, above the key down to which a mass v is wrong): the curve that is read off the labelled votes
    R, Y    the confident-error rate and the yield: R = V and Y = R + G(R) where nothing ties
    T       votes labelled, the most confident first, until k errors are found; all n where there are not k

Votes of one key tie: all of them are answered or none, so R and Y stay at what lies above that key. A key that a single
vote holds stands for keys in its neighbourhood that no two votes share: there wrong votes and the right ones above them
mix evenly, and G is a line between wrong keys. So are levels that hold less than one vote in five hundred.

Given V = v the votes that are not among the k errors are right and above with chance G(v) / (1 − v) each, so that
T = k + Bin(n − k, G(v) / (1 − v)). The denominators only change the Beta: its i-th factorial moment is
n(n − 1)…(n − i + 1) · E[G(V_i)^i] with V_i ~ Beta(k, n + 1 − k − i).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, xlog1py, xlogy

from demur.evidence.counts import Evidence, Floats

_FINEST = 500
"""Levels and stretches are told apart down to this share of the votes, which bounds the work for a million of them."""


@dataclass(frozen=True)
class Expected:
    """Means over calibration sets, and standard deviations."""

    answered: float
    answered_sd: float
    confident_error: float
    labels: float
    """Labels from the top."""
    labels_sd: float
    found: float
    """The chance that a calibration set has k errors at all; where it has not, everything is answered."""

    @staticmethod
    def mixed(parts: Sequence[tuple[float, Expected]]) -> Expected:
        """Of several laws, each with its chance."""

        def mean(name: str) -> float:
            return float(sum(chance * getattr(part, name) for chance, part in parts))

        def sd(name: str) -> float:
            square = sum(chance * (getattr(p, f"{name}_sd") ** 2 + getattr(p, name) ** 2) for chance, p in parts)
            return float(np.sqrt(max(0.0, square - mean(name) ** 2)))

        if len(parts) == 1:
            return parts[0][1]
        names = ("answered", "labels")
        means, sds = [mean(name) for name in names], [sd(name) for name in names]
        return Expected(means[0], sds[0], mean("confident_error"), means[1], sds[1], mean("found"))


@dataclass(frozen=True, eq=False)
class YieldLaw:
    """Right mass against wrong mass, from the largest key down, in stretches."""

    ends: Floats
    """The wrong mass down to the end of each stretch, ascending."""
    right_from: Floats
    """The right mass above the beginning of each stretch."""
    right_to: Floats
    tied: NDArray[np.bool_]
    """Whether a stretch is one key that votes share."""
    right: float
    """P(right)."""

    @classmethod
    def of(cls, evidence: Evidence) -> YieldLaw:
        possible = evidence.levels[:, 0] > 0
        right, wrong = evidence.right[possible][::-1], evidence.wrong[possible][::-1]
        down_to = np.cumsum(right)
        level = np.flatnonzero(wrong)
        ends = np.cumsum(wrong[level])
        tied = (right + wrong)[level] > max(1.0, evidence.n / _FINEST)
        if len(level) > _FINEST:
            stretch = ends * _FINEST // ends[-1]
            kept = tied | np.append(tied[1:], True) | np.append(stretch[1:] > stretch[:-1], True)
            level, ends, tied = level[kept], ends[kept], tied[kept]
        above, to_here = (down_to - right)[level], down_to[level]
        before = np.append(0, to_here)[:-1]
        right_from, right_to = np.where(tied, above, before), np.where(tied, to_here, above)
        n = evidence.n
        return cls(ends / n, right_from / n, right_to / n, tied, int(right.sum()) / n)

    @property
    def wrong(self) -> float:
        """c, the largest rate of confident errors that there can be."""
        return float(self.ends[-1]) if len(self.ends) else 0.0

    @property
    def tied_at_the_top(self) -> float:
        """The wrong mass at the largest key, if votes tie there and none lies above: what no threshold tells apart."""
        return float(self.ends[0]) if len(self.ends) and self.tied[0] and self.right_from[0] == 0 else 0.0

    def in_the_limit(self, level: float) -> tuple[float, float]:
        """Confident error and yield at a level, if labels had no end."""
        at = int(np.searchsorted(self.ends, level, side="right"))
        if at == len(self.ends):
            return self.wrong, self.wrong + self.right
        start = float(self.ends[at - 1]) if at else 0.0
        if self.tied[at]:
            return start, start + float(self.right_from[at])
        along = (level - start) / (float(self.ends[at]) - start)
        return level, level + float(self.right_from[at] + along * (self.right_to[at] - self.right_from[at]))

    def expect(self, ranks: Sequence[tuple[int, int]]) -> list[Expected]:
        """What to expect at each pair of a rank k and a number n of calibration votes."""
        if not len(ranks):
            return []
        k, n = (np.array(column, dtype=np.float64) for column in zip(*ranks, strict=True))
        start = np.append(0.0, self.ends)[:-1]
        slope = (self.right_to - self.right_from) / (self.ends - start)
        right_line = self.right_from - slope * start, slope
        yield_line = np.where(self.tied, start + self.right_from, right_line[0]), np.where(self.tied, 0.0, 1 + slope)
        error_line = np.where(self.tied, start, 0.0), np.where(self.tied, 0.0, 1.0)

        whole, once_less, twice_less = _moments(self.ends, k, n + 1 - k)
        found = whole[0].sum(axis=1)
        rest, most = 1 - found, self.right + self.wrong
        answered = _mean(whole, *yield_line) + rest * most
        spread = _square(whole, *yield_line) + rest * most**2 - answered**2
        error = _mean(whole, *error_line) + rest * self.wrong
        right = n * _mean(once_less, *right_line)
        pairs = n * (n - 1) * _square(twice_less, *right_line)
        labels = k * found + right + n * rest
        labels_spread = k**2 * found + (2 * k + 1) * right + pairs + n**2 * rest - labels**2
        columns = (answered, _root(spread), error, labels, _root(labels_spread), found)
        table = np.where(k > 0, np.stack(columns), 0.0)  # rank 0 answers nothing, and needs no label for that
        return [Expected(*row) for row in table.T.tolist()]


_Moments = tuple[Floats, Floats, Floats]


def _moments(ends: Floats, a: Floats, b: Floats) -> list[_Moments]:
    """P(V in a stretch), E[V there] and E[V² there] for V ~ Beta(a, b): a row per pair, a column per stretch.

    Then the same for Beta(a, b − 1) and Beta(a, b − 2), which need no more of the dear function than the first:
    I_x(a, b − 1) = I_x(a, b) − xᵃ(1 − x)ᵇ⁻¹ / ((b − 1) B(a, b − 1)).
    All 0 where a or b is not positive: V lies above every stretch then.
    """
    log, log_rest = xlogy(1.0, ends), xlog1py(1.0, -ends)
    some, a = a > 0, np.maximum(a, 1.0)[:, None]
    below, moments = betainc(a, np.maximum(b, 1.0)[:, None], ends), []
    for less in range(3):
        proper, fewer = (some & (b > less))[:, None], np.maximum(b - less, 1.0)[:, None]
        step = np.exp(a * log + fewer * log_rest - betaln(a, fewer)) / a
        if less:
            below = below - step * (a / fewer)
        moments.append(_between(np.where(proper, below, 0.0), np.where(proper, step, 0.0), ends, a, fewer))
    return moments


def _between(below: Floats, step: Floats, ends: Floats, a: Floats, b: Floats) -> _Moments:
    """The moments between ends, from I_x(a, b) and the step xᵃ(1 − x)ᵇ / (a B(a, b)) from that to I_x(a + 1, b)."""
    once = below - step
    twice = once - step * ends * (a + b) / (a + 1)
    mean, square = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
    up_to = np.stack([below, mean * once, square * twice])
    up_to[:, :, 1:] -= up_to[:, :, :-1].copy()
    return up_to[0], up_to[1], up_to[2]


def _mean(moments: _Moments, offset: Floats, slope: Floats) -> Floats:
    """E[offset + slope · V], over all stretches."""
    return np.asarray(moments[0] @ offset + moments[1] @ slope)


def _square(moments: _Moments, offset: Floats, slope: Floats) -> Floats:
    return np.asarray(moments[0] @ offset**2 + moments[1] @ (2 * offset * slope) + moments[2] @ slope**2)


def _root(variance: Floats) -> Floats:
    return np.sqrt(np.maximum(variance, 0.0))
