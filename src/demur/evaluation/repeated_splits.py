"""Repeated random splits: calibrate on one part of labelled votes, measure on the rest, many times over.

The number of confident errors over splits of one fixed file has an exact law (`evidence.split_law`), so agreement
checks the code and not exchangeability: a random split is exchangeable by construction. The yardstick for a mean is
its standard error by that law; the one seen in a few splits collapses where errors are rare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.calibration import CLUSTER, QUESTION, Grouped, Guarantee, RankGuarantee
from demur.errors import InvalidValue
from demur.evaluation.group_splits import GroupResult, evaluate_groups
from demur.evaluation.summaries import Summary
from demur.evidence.counts import Evidence, Floats, levels_below
from demur.evidence.frontier import Frontier
from demur.evidence.split_law import SplitLaw
from demur.policy.calibrate import Alphas, Guarantees, as_guarantees
from demur.pools.splits import Rows, repeated
from demur.pools.voted_pools import VotedPools
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.voting.votes import Votes

Cell = VotedPools | tuple[Votes, ArrayLike]


@dataclass(frozen=True)
class SplitResult:
    """One cell at one alpha, over all splits."""

    cell: str
    guarantee: RankGuarantee
    n: int
    n_cal: int
    splits: int
    vote_accuracy: float
    confident_error: Summary
    answered: Summary
    selective_accuracy: Summary
    """Over the splits in which anything is answered."""
    false_abstention: Summary
    threshold: Summary
    empty_splits: int
    """Splits in which nothing is answered."""
    law: SplitLaw = field(repr=False, compare=False)
    """The exact law of confident errors over random splits of this file."""
    yields: Floats = field(repr=False, compare=False)
    """The rate answered, of each split."""
    confident_error_per_question: Summary | None = None
    """Over all questions of the test part, where clusters are counted. No promise is about it."""

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def feasible(self) -> bool:
        """False where the calibration part is too small for the promise, so that it abstains always."""
        return self.guarantee.law(self.n_cal).answers

    @property
    def expected_confident_error(self) -> float:
        """The exact mean of the confident-error rate over random splits of this file."""
        return self.law.mean

    @property
    def unspent_by_ties(self) -> float:
        """By how much that mean is smaller because votes tie; a tie-break would tell them apart."""
        return max(0.0, self.law.mean_without_ties - self.law.mean)

    @property
    def expected_sd(self) -> float:
        """Its exact standard deviation, of one split."""
        return self.law.sd

    @property
    def z(self) -> float:
        """How many exact standard errors the mean lies above its expectation; NaN where all splits must agree."""
        difference = self.confident_error.mean - self.expected_confident_error
        return difference / (self.expected_sd / math.sqrt(self.splits)) if self.expected_sd else math.nan

    @property
    def p_value(self) -> float:
        """Two-sided, of the mean by the exact law: valid where errors are rare, as a normal law for z is not."""
        errors = round(self.confident_error.mean * self.splits * self.law.n_test)
        return self.law.p_value(errors, self.splits)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        rates = ("confident_error", "answered", "selective_accuracy", "false_abstention", "threshold")
        exact = ("expected_confident_error", "unspent_by_ties", "expected_sd", "z", "p_value")
        every = self.confident_error_per_question
        promised = {**self.guarantee.parameters(), "alpha": self.alpha, "guarantee": self.guarantee.name}
        return {
            **promised,
            "feasible": self.feasible,
            "n_needed": self.guarantee.n_needed(),
            **{name: asdict(getattr(self, name)) for name in rates},
            **{name: getattr(self, name) for name in exact},
            "empty_splits": self.empty_splits,
            **({} if every is None else {"confident_error_per_question": asdict(every)}),
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One set of voted pools through repeated splits, beside what needs no split."""

    n: int
    unit: str
    """What n counts: questions, or clusters of them."""
    duplicates: int
    """Rows that share a cluster or a question text with one that counts."""
    unscored: int
    """Pools that were left out because a path of theirs has no score."""
    n_cal: int
    splits: int
    seed: int
    accuracy: dict[str, float]
    """Without abstention: of the vote, and of what it is compared with."""
    frontier: Frontier
    points: list[SplitResult]
    warnings: list[str]
    groups: list[GroupResult] = field(default_factory=list)
    """Group by group, where a guarantee per group is evaluated: with it, and with one threshold for all."""

    def __repr__(self) -> str:
        told = "; ".join(f"alpha {at.alpha:g}: {at.confident_error.mean:.1%} wrong" for at in self.points)
        return f"Evaluation({self.n:,} {self.unit}s, {self.splits} splits of {self.n_cal} to calibrate; {told})"

    def _repr_html_(self) -> str:
        title = f"{self.splits} random splits of {self.n:,} {self.unit}s, {self.n_cal} to calibrate"
        accuracy = ", ".join(f"{name.replace('_', ' ')} {rate:.1%}" for name, rate in self.accuracy.items())
        note = " ".join([f"Without abstention: {accuracy}.", *self.warnings])
        return html_of_columns(title, self.columns(), note=note)

    def columns(self) -> dict[str, list[Any]]:
        """Means over splits and what was to be expected, one entry per operating point, by name."""
        rates = ("confident_error", "answered", "selective_accuracy", "false_abstention")
        means = {name: [getattr(point, name).mean for point in self.points] for name in rates}
        expected = [point.expected_confident_error for point in self.points]
        promised = [(point.alpha, point.guarantee.name) for point in self.points]
        levels, names = (list(column) for column in zip(*promised, strict=True))
        return {"alpha": levels, "guarantee": names, "expected_confident_error": expected, **means}

    def to_frame(self, library: str | None = None) -> Any:
        """One row per operating point, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)


def evaluate(
    votes: Votes | VotedPools,
    correct: ArrayLike | None = None,
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    n_cal: int | None = None,
    splits: int = 20,
    seed: int = 0,
) -> Evaluation:
    """Repeated splits of one set of labelled votes; 200 calibrate, or half of fewer than 400.

    A guarantee per group is measured in each group, beside what it promises without groups.
    """
    given = VotedPools.of(votes, correct)
    voted = given.scored
    rows, n = voted.in_order, len(voted.in_order)
    n_cal = n_cal if n_cal is not None else 200 if n >= 400 else n // 2
    asked = as_guarantees(alpha, guarantee)
    grouped = [one for one in asked if isinstance(one, Grouped)]
    alone = [one for one in asked if not isinstance(one, Grouped)]
    alone += [one.guarantee for one in grouped if one.guarantee not in alone]
    points = evaluate_splits({"": voted}, guarantee=alone, n_cal=n_cal, splits=splits, seed=seed)
    wanted = [one for pair in grouped for one in (pair.guarantee, pair)]
    by_group = evaluate_groups(voted, wanted, n_cal=n_cal, splits=splits, seed=seed) if wanted else []
    frontier = Frontier.of(Evidence.of(voted.votes.key[rows], voted.labelled[rows]))
    duplicates, accuracies = len(voted) - n, voted.accuracies(rows)
    unit = CLUSTER if voted.clustered else QUESTION
    warnings = [*voted.score_warnings(), *size_warning(voted)]
    unscored = len(given) - len(voted)
    return Evaluation(
        n, unit, duplicates, unscored, n_cal, splits, seed, accuracies, frontier, points, warnings, by_group
    )


def size_warning(voted: VotedPools) -> list[str]:
    """What it means that pools differ in size, where they do."""
    fewest, most = int(voted.votes.n_paths.min()), int(voted.votes.n_paths.max())
    if fewest == most or voted.votes.stopping is not None:
        return []
    return [
        f"pools have {fewest} to {most} paths, and random splits vary them by chance: so would a policy that was "
        "calibrated with sizes by chance; others keep their promise for each size apart, and answer less"
    ]


def evaluate_splits(
    cells: Mapping[str, Cell],
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    n_cal: int = 200,
    splits: int = 20,
    seed: int = 0,
) -> list[SplitResult]:
    """Repeat calibration and test on every cell (a name, and voted pools or votes with their labels), at every alpha.

    One row of each unit counts, in an order that the order of rows does not decide. Cells of equal size share their
    splits, so that scores are compared on the same questions.
    """
    guarantees = _ranked(as_guarantees(alpha, guarantee))
    drawn: dict[int, tuple[Rows, Rows]] = {}
    results = []
    for name, cell in cells.items():
        voted = (VotedPools.of(*cell) if isinstance(cell, tuple) else cell).scored
        voted.refuse_fitted()
        voted.refuse_without_jitter()
        rows = voted.in_order
        if len(rows) not in drawn:
            drawn[len(rows)] = repeated(len(rows), n_cal, splits, seed)
        results += _evaluate(name, voted, guarantees, *drawn[len(rows)])
    return results


def _ranked(guarantees: Sequence[Guarantee]) -> list[RankGuarantee]:
    """The guarantees, each of which must have an exact law over splits."""
    ranked = [one for one in guarantees if isinstance(one, RankGuarantee)]
    for one in guarantees:
        if isinstance(one, Grouped):
            raise InvalidValue(f"the {one.name} guarantee is measured group by group", "use {evaluate}")
        if one not in ranked:
            raise InvalidValue(
                f"repeated splits compare with an exact law, which the {one.name} guarantee does not have",
                "calibrate with it and audit the policy on problems that were kept back",
            )
    return ranked


def _evaluate(
    name: str, voted: VotedPools, guarantees: Sequence[RankGuarantee], calibration: Rows, test: Rows
) -> list[SplitResult]:
    rows, keys = voted.in_order, voted.votes.key[voted.in_order]
    labels = voted.labelled[rows]
    evidence = Evidence.of(keys, labels)
    rank = _ranks(evidence, keys)
    confidence_of = np.concatenate([[0.0], evidence.levels[:, 0]])
    (splits, n_cal), size = calibration.shape, test.shape[1]
    wrong = np.sort(np.where(labels, 0, rank)[calibration], axis=1)
    test_rank, test_right = rank[test], labels[test]
    never = np.full(splits, 1 + len(evidence.levels))  # above what other questions of a cluster may have, too
    results = []
    for guarantee in guarantees:
        threshold = guarantee.settle_many(wrong, len(evidence.levels))
        infeasible = not guarantee.law(n_cal).answers
        is_answered = test_rank > threshold[:, None]
        answered = is_answered.sum(axis=1)
        right = (is_answered & test_right).sum(axis=1)
        some = answered > 0
        results.append(
            SplitResult(
                cell=name,
                guarantee=guarantee,
                n=len(keys),
                n_cal=n_cal,
                splits=splits,
                vote_accuracy=evidence.vote_accuracy,
                confident_error=Summary.of((answered - right) / size),
                answered=Summary.of(answered / size),
                selective_accuracy=Summary.of(right[some] / answered[some]),
                false_abstention=Summary.of((test_right.sum(axis=1) - right) / size),
                threshold=Summary.of(np.where(guarantee.law(n_cal).answers, confidence_of[threshold], 1.0)),
                empty_splits=int((~some).sum()),
                law=guarantee.law_over_splits(evidence, n_cal),
                yields=answered / size,
                confident_error_per_question=_per_question(voted, evidence, never if infeasible else threshold, test),
            )
        )
    return results


def _ranks(evidence: Evidence, keys: Floats) -> NDArray[np.int32]:
    """Only order matters, so keys become whole ranks; 0 is for votes without confidence, which are never answered."""
    return np.where(keys[:, 0] > 0, 1 + levels_below(evidence.levels, keys), 0).astype(np.int32)


def _per_question(voted: VotedPools, evidence: Evidence, threshold: NDArray[Any], test: Rows) -> Summary | None:
    """The confident-error rate over all questions of the clusters that are tested."""
    if not voted.clustered:
        return None
    place = np.zeros(len(voted), dtype=np.intp)
    place[voted.units[voted.in_order]] = np.arange(len(voted.in_order))
    is_tested = np.zeros((len(test), len(voted.in_order)), dtype=np.bool_)
    np.put_along_axis(is_tested, test, True, axis=1)
    rows = voted.distinct
    tested = is_tested[:, place[voted.units[rows]]]
    rank = np.where(voted.labelled[rows], 0, _ranks(evidence, voted.votes.key[rows]))
    errors = (tested & (rank[None, :] > threshold[:, None])).sum(axis=1)
    return Summary.of(errors / tested.sum(axis=1))
