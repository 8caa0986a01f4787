"""How uncertain figures are that votes are compared by, for 95 % confidence over questions.

vote accuracy                      exact (Clopper–Pearson)
areas and yields, and differences  the bootstrap: questions drawn again with replacement, the same for all votes, so
                                   that a difference is that of two votes on the same questions (percentiles)
path AUROC                         normal, a question's paths together (Obuchowski 1997)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from demur.calibration import Guarantee
from demur.errors import InvalidValue
from demur.evidence import Interval
from demur.evidence.counts import Evidence, Floats, levels_below
from demur.evidence.frontier import Frontier, auroc, common_auc

Between = tuple[float, float]
"""An interval: lower, upper."""
Difference = tuple[float, float, float]
"""An estimate and its interval."""
RANKED = (
    "by the labels of {n} questions: to choose by these figures and calibrate on the same questions would break the "
    "promise; `demur tune` ranks on a part of them that then does not calibrate"
)
"""What is said beside every table that ranks votes by labels."""
NO_INTERVAL: Between = (math.nan, math.nan)
NO_DIFFERENCE: Difference = (math.nan, *NO_INTERVAL)
DRAWS = 400
_TAILS = (2.5, 97.5)
_NORMAL = 1.959964


@dataclass(frozen=True, eq=False)
class LabelledVotes:
    """Votes on questions, each by its level among the distinct keys."""

    evidence: Evidence
    level: NDArray[np.intp]
    right: NDArray[np.bool_]

    @classmethod
    def of(cls, key: Floats, right: NDArray[np.bool_]) -> Self:
        evidence = Evidence.of(key, right)
        return cls(evidence, levels_below(evidence.levels, key), right)

    def drawn(self, questions: NDArray[np.intp]) -> Evidence:
        """The evidence of some questions, as often as each was drawn."""
        levels, size = self.evidence.levels, len(self.evidence.levels)
        every = np.bincount(self.level[questions], minlength=size)
        right = np.bincount(self.level[questions[self.right[questions]]], minlength=size)
        some = every > 0
        return Evidence(levels[some], right[some], (every - right)[some])


@dataclass(frozen=True, eq=False)
class Redrawn:
    """Figures of several votes on the same questions, and on the same draws of them.

    They are, in order: accuracy, frontier AUC, the mean over common yields, and the yield under each guarantee.
    """

    n: int
    guarantees: Sequence[Guarantee]
    figures: Floats
    """votes × figures"""
    draws: Floats
    """draws × votes × figures"""

    @classmethod
    def of(
        cls, votes: Sequence[LabelledVotes], guarantees: Sequence[Guarantee] = (), *, draws: int = DRAWS, seed: int = 0
    ) -> Self:
        rng, n = np.random.default_rng(seed), len(votes[0].right)
        drawn = [
            _figures([one.drawn(questions) for one in votes], guarantees)
            for questions in (rng.integers(0, n, n) for _ in range(draws))
        ]
        return cls(n, guarantees, _figures([one.evidence for one in votes], guarantees), np.array(drawn))

    @property
    def best(self) -> int:
        """The vote with the largest mean over common yields, or accuracy where they have none in common."""
        shared = self.figures[:, 2]
        return int(np.argmax(self.figures[:, 0] if np.isnan(shared).any() else shared))

    def intervals(self, vote: int) -> list[Between]:
        """The interval of each figure of one vote."""
        return [_between(self.draws[:, vote, figure]) for figure in range(self.draws.shape[2])]

    def errors(self, vote: int) -> list[float]:
        """The standard error of each figure of one vote; NaN where draws say nothing of it."""
        columns = (self.draws[:, vote, figure] for figure in range(self.draws.shape[2]))
        defined = (column[~np.isnan(column)] for column in columns)
        return [float(column.std(ddof=1)) if len(column) > 1 else math.nan for column in defined]

    def difference(self, vote: int, other: int) -> Difference:
        """How much larger one vote's mean over common yields is than another's."""
        estimate = float(self.figures[vote, 2] - self.figures[other, 2])
        return (estimate, *_between(self.draws[:, vote, 2] - self.draws[:, other, 2]))


def _figures(evidences: Sequence[Evidence], guarantees: Sequence[Guarantee]) -> Floats:
    frontiers = [Frontier.of(evidence) for evidence in evidences]
    try:
        shared = common_auc(frontiers)
    except InvalidValue:  # they share no yield
        shared = [math.nan] * len(frontiers)
    rows = [
        [evidence.vote_accuracy, frontier.auc, area, *(_answered(evidence, one) for one in guarantees)]
        for evidence, frontier, area in zip(evidences, frontiers, shared, strict=True)
    ]
    return np.array(rows)


def _answered(evidence: Evidence, guarantee: Guarantee) -> float:
    right, wrong = guarantee.settle(evidence).answered(evidence)
    return (right + wrong) / evidence.n


def _between(values: Floats) -> Between:
    """Percentiles of what was drawn; none where all draws agree, for then they say nothing of what others would be."""
    defined = values[~np.isnan(values)]
    if not len(defined) or defined.min() == defined.max():
        return NO_INTERVAL
    lower, upper = np.percentile(defined, _TAILS).tolist()
    return lower, upper


def standard_error(estimate: float, between: Between) -> float:
    """That of a normal interval, which may be cut off at 0 or 1 on one side."""
    return max(estimate - between[0], between[1] - estimate) / _NORMAL


def exact(rate: float, n: int) -> Between:
    """The exact interval of a share of n."""
    interval = Interval.exact(round(rate * n), n)
    return interval.lower, interval.upper


def clustered_auroc(scores: Sequence[Sequence[float]], right: Sequence[Sequence[bool]]) -> tuple[float, Between]:
    """P(a right path scores above a wrong one), ties counted half, and its interval; paths come question by question.

    Paths of one question are alike, so what is counted as drawn are questions: Obuchowski's variance, which is that of
    DeLong where each question has one path.
    """
    values = np.array([value for row in scores for value in row], dtype=np.float64)
    labels = np.array([label for row in right for label in row], dtype=np.bool_)
    questions = np.repeat(np.arange(len(scores)), [len(row) for row in scores])
    levels, rank = np.unique(values, return_inverse=True)
    evidence = Evidence.of(rank / len(levels), labels)
    area = auroc(evidence)
    if math.isnan(area) or len(scores) < 2:
        return area, NO_INTERVAL
    # How often each path is in the right order with those of the other label, less what is usual.
    wrong_below = (np.cumsum(evidence.wrong) - evidence.wrong / 2) / evidence.n_wrong
    right_above = 1 - (np.cumsum(evidence.right) - evidence.right / 2) / evidence.n_right
    order = np.where(
        labels, (wrong_below[rank] - area) / evidence.n_right, (right_above[rank] - area) / evidence.n_wrong
    )
    sums = np.bincount(questions, weights=order, minlength=len(scores))
    half = _NORMAL * math.sqrt(len(sums) / (len(sums) - 1) * float((sums**2).sum()))
    return area, (max(0.0, area - half), min(1.0, area + half))
