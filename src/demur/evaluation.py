"""Repeated random splits: calibrate on one part of labelled votes, measure on the rest, many times over.

The mean confident-error rate over splits of one fixed file has an exact expectation (`laws.split_expectation`), so
agreement checks the code and not exchangeability: a random split is exchangeable by construction. The yardstick for
a mean is its standard error, not the standard deviation of one split.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur import splits as splitting
from demur.calibration import Guarantee
from demur.evidence import Evidence, as_labels, levels_below
from demur.laws import split_expectation
from demur.policy import as_guarantees
from demur.voting import Votes


@dataclass(frozen=True)
class Summary:
    """A rate over splits: mean, standard deviation (ddof = 1) and standard error of the mean."""

    mean: float
    sd: float
    se: float


@dataclass(frozen=True)
class SplitResult:
    """One cell at one alpha, over all splits."""

    cell: str
    guarantee: Guarantee
    n: int
    n_cal: int
    splits: int
    vote_accuracy: float
    confident_error: Summary
    expected_confident_error: float
    """The exact expectation over random splits of this file."""
    answered: Summary
    selective_accuracy: Summary
    """Over the splits in which anything is answered."""
    false_abstention: Summary
    threshold: Summary
    empty_splits: int
    """Splits in which nothing is answered."""

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def z(self) -> float:
        """How many standard errors the mean lies above its exact expectation; NaN where all splits agree."""
        difference = self.confident_error.mean - self.expected_confident_error
        return difference / self.confident_error.se if self.confident_error.se else math.nan


def evaluate_splits(
    cells: Mapping[str, tuple[Votes, ArrayLike]],
    *,
    alpha: float | Sequence[float] | None = None,
    guarantee: Guarantee | Sequence[Guarantee] | None = None,
    n_cal: int = 200,
    splits: int = 20,
    seed: int = 0,
) -> list[SplitResult]:
    """Repeat calibration and test on every cell (a name with its votes and their labels), at every alpha.

    Cells of equal size share their splits, so that scores are compared on the same questions.
    """
    guarantees = as_guarantees(alpha, guarantee)
    drawn: dict[int, tuple[NDArray[np.intp], NDArray[np.intp]]] = {}
    results = []
    for name, (votes, correct) in cells.items():
        n = len(votes)
        if n not in drawn:
            drawn[n] = splitting.repeated(n, n_cal, splits, seed)
        results += _evaluate(name, votes, as_labels(correct, n), guarantees, *drawn[n])
    return results


def _evaluate(
    name: str,
    votes: Votes,
    labels: NDArray[np.bool_],
    guarantees: Sequence[Guarantee],
    calibration: NDArray[np.intp],
    test: NDArray[np.intp],
) -> list[SplitResult]:
    evidence = Evidence.of(votes.key, labels)
    # Only order matters, so keys become whole ranks; 0 is for votes without confidence, which are never answered.
    rank = np.where(votes.confidence > 0, 1 + levels_below(evidence.levels, votes.key), 0).astype(np.int32)
    highest = len(evidence.levels)
    confidence_of = np.concatenate([[0.0], evidence.levels[:, 0]])
    splits, n_cal = calibration.shape
    wrong_ranks = np.sort(np.where(labels, 0, rank)[calibration], axis=1)
    test_rank, test_right = rank[test], labels[test]
    results = []
    for guarantee in guarantees:
        k = guarantee.rank(n_cal)
        threshold = (
            np.full(splits, highest) if k == 0 else wrong_ranks[:, n_cal - k] if k <= n_cal else np.zeros(splits, int)
        )
        answered = test_rank > threshold[:, None]
        given = answered.sum(axis=1)
        right = (answered & test_right).sum(axis=1)
        size = test.shape[1]
        some = given > 0
        results.append(
            SplitResult(
                cell=name,
                guarantee=guarantee,
                n=len(votes),
                n_cal=n_cal,
                splits=splits,
                vote_accuracy=evidence.vote_accuracy,
                confident_error=_summary((given - right) / size),
                expected_confident_error=split_expectation(evidence, k, n_cal),
                answered=_summary(given / size),
                selective_accuracy=_summary(right[some] / given[some]),
                false_abstention=_summary((test_right.sum(axis=1) - right) / size),
                threshold=_summary(np.where(k == 0, 1.0, confidence_of[threshold])),
                empty_splits=int((~some).sum()),
            )
        )
    return results


def _summary(values: NDArray[np.float64]) -> Summary:
    if not len(values):
        return Summary(math.nan, math.nan, math.nan)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Summary(float(values.mean()), sd, sd / math.sqrt(len(values)))
