"""Repeated random splits, group by group: what each group's questions meet, with one threshold or with one each.

How many questions of a group calibrate differs from split to split. Given that number, which of them do is a random
draw, so the errors on the others have the exact law of `evidence.split_law`; the mean over splits is compared with the
mean of those laws. There is no such law where groups overlap, where the threshold of all stands in, or for one
threshold of all: there the standard error is that seen over splits, and is said to be so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration import Grouped, Guarantee, RankGuarantee, settle_by_size
from demur.calibration.grouped import refuse_without_groups
from demur.evaluation.summaries import Summary
from demur.evidence.counts import Evidence
from demur.evidence.strata import Strata
from demur.pools.splits import repeated
from demur.pools.voted_pools import VotedPools
from demur.voting.cases import Cases

ALL = "(all)"
"""How the row of all groups together is called."""


@dataclass(frozen=True)
class GroupResult:
    """One group at one operating point, over all splits."""

    guarantee: Guarantee
    group: str
    n: int
    """Questions of the group in the file."""
    splits: int
    """Splits in which some of its questions are tested."""
    confident_error: Summary
    answered: Summary
    selective_accuracy: Summary
    """Over the splits in which anything is answered."""
    exact_mean: float
    """Of the confident-error rate, given how many of its questions calibrate in each split; NaN where there is no
    exact law."""
    exact_se: float
    """The exact standard error of the mean over these splits; NaN where there is none."""

    @property
    def z(self) -> float:
        """How many exact standard errors the mean lies above its expectation."""
        return (self.confident_error.mean - self.exact_mean) / self.exact_se if self.exact_se > 0 else math.nan

    def document(self) -> dict[str, Any]:
        """As plain values."""
        rates = {name: asdict(getattr(self, name)) for name in ("confident_error", "answered", "selective_accuracy")}
        exact = {"exact_mean": self.exact_mean, "exact_se": self.exact_se, "z": self.z}
        known = {"guarantee": self.guarantee.name, "alpha": self.guarantee.alpha, "group": self.group, "n": self.n}
        return {**known, "splits": self.splits, **rates, **exact}


def evaluate_groups(
    voted: VotedPools, guarantees: Sequence[Guarantee], *, n_cal: int, splits: int, seed: int = 0
) -> list[GroupResult]:
    """Repeat calibration and test, and measure in each group. Where pools differ in size, splits vary it by chance."""
    rows = voted.in_order
    cases, labels = voted.votes.cases.take(rows), voted.labelled[rows]
    refuse_without_groups(cases)
    member = _members(cases)
    calibration, test = repeated(len(rows), n_cal, splits, seed)
    results = []
    for guarantee in guarantees:
        answered = np.zeros((splits, len(rows)), dtype=np.bool_)
        for split in range(splits):
            rule = settle_by_size(guarantee, _strata(cases, labels, calibration[split], guarantee))
            answered[split, test[split]] = rule.answers(cases.take(test[split]))
        is_tested = np.zeros((splits, len(rows)), dtype=np.bool_)
        np.put_along_axis(is_tested, test, True, axis=1)
        for name, own in member.items():
            exact = _exact(guarantee, cases, labels, own, is_tested) if name != ALL else (math.nan, math.nan)
            results.append(_result(guarantee, name, own, answered, labels, is_tested, exact))
    return results


def _strata(cases: Cases, labels: NDArray[np.bool_], rows: NDArray[np.intp], guarantee: Guarantee) -> Strata:
    part = cases.take(rows)
    return Strata.of(part if isinstance(guarantee, Grouped) else part.without_groups(), labels[rows], by_chance=True)


def _members(cases: Cases) -> dict[str, NDArray[np.bool_]]:
    """Which rows are of which group, and behind them which are there at all."""
    member: dict[str, NDArray[np.bool_]] = {}
    for groups, own in cases.rows_by_groups().items():
        for name in groups:
            member.setdefault(name, np.zeros(len(cases), dtype=np.bool_))[own] = True
    return dict(sorted(member.items())) | {ALL: np.ones(len(cases), dtype=np.bool_)}


def _result(
    guarantee: Guarantee,
    name: str,
    own: NDArray[np.bool_],
    answered: NDArray[np.bool_],
    labels: NDArray[np.bool_],
    is_tested: NDArray[np.bool_],
    exact: tuple[float, float],
) -> GroupResult:
    tested = is_tested[:, own].sum(axis=1)
    given, right = answered[:, own].sum(axis=1), (answered & labels)[:, own].sum(axis=1)
    there, some = tested > 0, given > 0
    return GroupResult(
        guarantee=guarantee,
        group=name,
        n=int(own.sum()),
        splits=int(there.sum()),
        confident_error=Summary.of((given - right)[there] / tested[there]),
        answered=Summary.of(given[there] / tested[there]),
        selective_accuracy=Summary.of(right[some] / given[some]),
        exact_mean=exact[0],
        exact_se=exact[1],
    )


def _exact(
    guarantee: Guarantee,
    cases: Cases,
    labels: NDArray[np.bool_],
    own: NDArray[np.bool_],
    is_tested: NDArray[np.bool_],
) -> tuple[float, float]:
    """The exact mean of a group's error rate over these splits and its standard error; NaN where there is no law."""
    if not (isinstance(guarantee, Grouped) and isinstance(guarantee.guarantee, RankGuarantee)):
        return math.nan, math.nan
    assert cases.groups is not None
    if any(len(kind) > 1 for kind in cases.groups.kinds) or guarantee.fallback != "abstain":
        return math.nan, math.nan
    evidence, inner = Evidence.of(cases.keys[own], labels[own]), guarantee.guarantee
    sizes, splits = np.unique(evidence.n - is_tested[:, own].sum(axis=1), return_counts=True)
    moments = []
    for n, times in zip(sizes.tolist(), splits.tolist(), strict=True):
        if n == evidence.n:
            continue  # nothing of the group is tested
        law = inner.law_over_splits(evidence, n) if n >= guarantee.n_needed() else None
        moments.append((times, 0.0, 0.0) if law is None else (times, law.mean, law.sd))
    total = sum(times for times, *_ in moments)
    if not total:
        return math.nan, math.nan
    mean = sum(times * mean for times, mean, _ in moments) / total
    return mean, math.sqrt(sum(times * sd**2 for times, _, sd in moments)) / total
