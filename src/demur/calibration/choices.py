"""What it costs to choose one of J ways to vote by the labels that calibrate.

    J    ways to vote that were fixed beforehand; any one of them may be chosen, for any reason, after seeing the labels
    V    the true rate at the k-th largest wrong key of one of them: Beta(k, n + 1 − k), or less where votes tie

Whichever is chosen, its rate is at most the largest of J such numbers, and P(the largest > v) ≤ J · P(V > v). So a
promise for all but a share δ of calibration sets holds at δ / J, and the mean of the chosen one's rate is at most
∫ min(1, J · P(V > v)) dv, which is the smallest value that v + J · E[max(0, V − v)] has for any v.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from scipy.special import betaincc, betainccinv

from demur.calibration.smallest_n import smallest_n
from demur.errors import InvalidValue

_CERTAIN = 1e-9
"""A relative difference that floats surely tell: below it, the smaller rank is taken."""
_MOST = 10**6


def as_choices(value: Any) -> int:
    """J as a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise InvalidValue(f"choices must be a whole number from 1 to {_MOST:,}, got {value!r:.60}")
    return value


def choices_of(guarantee: Any) -> int:
    """From how many ways to vote a guarantee allows to choose by its labels; 1 where it knows of no choice."""
    return int(
        getattr(getattr(guarantee, "guarantee", guarantee), "choices", 1)
    )  # of each group, where it is for groups


def whichever(choices: int) -> str:
    """What a promise says of the choice; blank where there was none."""
    if choices == 1:
        return ""
    return f", whichever of {choices} ways to vote that were fixed beforehand was chosen by the same labels"


def union_rank(n: int, level: Fraction, choices: int) -> int:
    """The largest k at which the chosen one's rate is at most `level` on average; 0 where there is none."""
    low, high = 0, int((n + 1) * level)  # what one choice alone allows
    while low < high:
        middle = (low + high + 1) // 2
        if mean_at_most(middle, n, choices) * (1 + _CERTAIN) <= level:
            low = middle
        else:
            high = middle - 1
    return low


def fewest_votes(level: Fraction, choices: int) -> int:
    """The smallest n at which the rank is at least 1."""
    return smallest_n(lambda n: union_rank(n, level, choices) > 0, int((1 - level) / level) + 1)


def mean_at_most(k: int, n: int, choices: int) -> float:
    """∫ min(1, J · P(V > v)) dv, a bound on the chosen one's mean rate at rank k.

    An error in where it is smallest can only make it too large.
    """
    if k > n:
        return 1.0
    v = float(betainccinv(k, n + 1 - k, 1 / choices))
    beyond = k / (n + 1) * float(betaincc(k + 1, n + 1 - k, v)) - v * float(betaincc(k, n + 1 - k, v))
    return v + choices * beyond
