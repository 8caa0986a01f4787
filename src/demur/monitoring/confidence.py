"""Limits of a rate that hold at all times at once, so that one may look every day.

    s, f    successes and failures so far, each a coin of the same unknown rate p
    M(p)    B(s + ½, f + ½) / B(½, ½) / (p^s (1 − p)^f): what bets against p have made of 1, mixed over other rates

At the true p the money M(p) has mean 1 after every coin, so that P(it ever reaches 1/δ) ≤ δ (Ville). The rates whose
money has not reached it are an interval, which holds p at all times with probability 1 − δ. Clopper and Pearson's holds
it at one time that was fixed beforehand: looked at daily, it misses p some day far more often than it says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import betaln, xlog1py, xlogy

from demur.monitoring.betting import as_count

_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Limits:
    """Between what a rate lies."""

    low: float
    high: float


def limits_at_all_times(successes: int, n: int, delta: float = 0.05) -> Limits:
    """Within which a rate lies, with probability 1 − delta at all times at once."""
    return Limits(_low(successes, n, delta), 1 - _low(n - successes, n, delta))


def _low(successes: int, n: int, delta: float) -> float:
    """The smallest rate that is still possible."""
    from scipy.optimize import brentq  # takes a fifth of a second to load

    successes, failures = as_count(successes, "successes"), as_count(n - successes, "failures")
    if not successes:
        return 0.0
    most = math.log(1 / delta) - float(betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5))

    def excess(rate: float) -> float:
        return -float(xlogy(successes, rate) + xlog1py(failures, -rate)) - most

    # The money is least at s/n, where it is below 1: there is one place below at which it reaches the limit.
    return float(brentq(excess, _LEAST, successes / n, xtol=1e-12))
