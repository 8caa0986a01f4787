"""Rules for "few wrong ones among the answers", side by side on recorded pools: what `results.py` tabulates.

A rule takes one calibration set, its votes in order of confidence, and says how many of the most confident ones it
would answer. Rules that need a grid take it from unlabelled questions that calibrate nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from demur import Marginal
from demur.calibration.batch import cut_off
from demur.calibration.boundary import boundary, fewest_votes
from demur.evidence.counts import Evidence, Floats
from demur.pools.splits import repeated

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """One calibration set, and the rest of the file: keys in descending order, and whether each vote is wrong."""

    cal: Counts
    """Places of the calibration votes in the file's order of confidence, 0 the most confident; ascending."""
    rest: Counts
    wrong: NDArray[np.bool_]
    """By place."""
    alpha: float
    delta: float

    @property
    def n(self) -> int:
        return len(self.cal)

    def errors(self) -> Counts:
        """Errors among the j most confident calibration votes, j = 0 … n."""
        return np.append(0, np.cumsum(self.wrong[self.cal])).astype(np.int64)

    def place(self, j: int) -> int:
        """The places below this one are answered where the j most confident calibration votes are."""
        return 0 if j == 0 else len(self.wrong) if j == self.n else int(self.cal[j])

    def largest(self, allowed: Counts) -> int:
        """Where as many are answered as errors within `allowed` permit."""
        apart = np.append(np.append(True, self.cal[1:] != self.cal[:-1]), True)  # votes drawn twice are one level
        within = np.flatnonzero((self.errors() <= allowed) & apart)
        return self.place(int(within[-1]) if len(within) else 0)


def pointwise(n: int, alpha: float, level: float) -> Counts:
    """Errors that one test at this level allows at each j: Clopper and Pearson's upper limit is then at most alpha."""
    counts = [np.flatnonzero(bdtr(np.arange(int(alpha * j) + 2), j, alpha) <= level) for j in range(1, n + 1)]
    return np.array([-1, *(int(found[-1]) if len(found) else -1 for found in counts)])


def plug_in(split: Split) -> int:
    """Accuracy read off the labels that chose the threshold."""
    return split.largest(np.append(-1, np.floor(split.alpha * np.arange(1, split.n + 1) + 1e-9)).astype(np.int64))


def clopper_pearson(split: Split) -> int:
    """The lowest threshold whose upper limit is at most alpha, as though it had been the only one."""
    return split.largest(pointwise(split.n, split.alpha, split.delta))


def rank_bonferroni(split: Split, ranks: int = 12) -> int:
    """Twelve ranks fixed beforehand share delta."""
    looks = np.unique(np.geomspace(fewest_votes(split.alpha, split.delta), split.n, ranks).astype(int))
    allowed = np.full(split.n + 1, -1)
    allowed[looks] = pointwise(split.n, split.alpha, split.delta / len(looks))[looks]
    return split.largest(allowed)


def fixed_sequence(split: Split, starts: int = 1) -> int:
    """Quantiles of unlabelled questions in order, from each of several starts, each with its part of delta.

    The first start is where 1.5 times the votes that the test needs are expected.
    """
    first = min(0.99, 1.5 * fewest_votes(split.alpha, split.delta) / split.n)
    errors, reached = split.errors(), 0
    for start in [first, 0.25, 0.5, 0.75][:starts]:
        for share in np.arange(start, 1.0001, 0.01):
            place = int(split.rest[min(len(split.rest) - 1, int(share * len(split.rest)))])
            votes = int(np.searchsorted(split.cal, place))
            if not votes or bdtr(int(errors[votes]), votes, split.alpha) > split.delta / starts:
                break
            reached = max(reached, place)
    return reached


def simultaneous(split: Split) -> int:
    """`Selective`."""
    return split.largest(boundary(split.n, split.alpha, split.delta).allowed(np.arange(split.n + 1)))


def marginal(split: Split) -> int:
    """`Marginal`, whose promise is about all questions."""
    wrong, k = split.cal[split.wrong[split.cal]], Marginal(split.alpha).rank(split.n)
    return 0 if not k else int(wrong[k - 1]) if len(wrong) >= k else len(split.wrong)


def batch(split: Split) -> int:
    """`select`, the rest of the file being the batch."""
    evidence = Evidence.of(1 - split.cal / len(split.wrong), ~split.wrong[split.cal])
    p_values: Floats = evidence.p_value(1 - split.rest / len(split.wrong))
    cut = cut_off(p_values, Fraction(str(split.alpha)), split.n)
    return 0 if not cut else int(split.rest[p_values <= float(cut) * (1 + 1e-12)][-1]) + 1


RULES: dict[str, Callable[[Split], int]] = {
    "accuracy on the labels": plug_in,
    "Clopper–Pearson, best threshold": clopper_pearson,
    "fixed sequence": fixed_sequence,
    "four starts": lambda split: fixed_sequence(split, 4),
    "rank-Bonferroni": rank_bonferroni,
    "Selective": simultaneous,
    "select": batch,
    "Marginal": marginal,
}


@dataclass(frozen=True)
class Outcome:
    """One rule on one file."""

    answered: float
    """Mean yield on the rest of the file, over splits."""
    selective_error: float
    """Mean share of wrong ones among the answers there, no answers counting as 0."""
    violations: float
    """Of calibration sets drawn with replacement, the share whose threshold has a rate above alpha in the file."""


def compare_rules(
    keys: Floats, right: NDArray[np.bool_], *, n_cal: int, alpha: float, delta: float, splits: int = 400, seed: int = 0
) -> dict[str, Outcome]:
    """Every rule on random splits of one file for its yield, and on independent draws from it for its violations.

    Draws with replacement make the file the population: the true rate above a threshold is then known.
    """
    order = np.lexsort(keys.T[::-1])[::-1]
    wrong = ~right[order]
    confident = int((keys[:, 0] > 0).sum())
    rates = np.append(0.0, np.cumsum(wrong) / np.arange(1, len(wrong) + 1))
    calibration, test = repeated(len(right), n_cal, splits, seed)
    drawn = np.random.default_rng(seed).integers(0, len(right), (splits, n_cal))
    outcomes = {}
    for name, rule in RULES.items():
        answered, errors, violated = [], [], 0
        for cal, rest, draw in zip(calibration, test, drawn, strict=True):
            split = Split(np.sort(cal), np.sort(rest), wrong, alpha, delta)
            chosen = split.rest[split.rest < min(rule(split), confident)]
            answered.append(len(chosen) / len(rest))
            errors.append(wrong[chosen].mean() if len(chosen) else 0.0)
            place = rule(Split(np.sort(draw), split.rest, wrong, alpha, delta))
            violated += rates[min(place, confident)] > alpha
        outcomes[name] = Outcome(float(np.mean(answered)), float(np.mean(errors)), violated / splits)
    return outcomes
