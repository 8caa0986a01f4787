"""The accuracy–yield frontier, and the areas that sum it up.

One point per distinct key, so that rows of equal confidence are answered or withheld together and the order of rows
never matters. Points run from the smallest positive yield to the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns


@dataclass(frozen=True, eq=False)
class Frontier:
    """Points (yield, selective accuracy), yields ascending, and their areas."""

    answered: Floats
    selective_accuracy: Floats
    threshold: Floats
    """The confidence just below which a point answers: it answers every key at least this large."""
    auc: float
    """The paper's area: trapezoids over [smallest positive yield, largest], not divided by the width. It grows with
    the width, so it favours scores with few ties; compare scores by `common_auc`."""
    auc_normalised: float
    """The same divided by the width; the accuracy itself where there is one point only."""
    aurc: float
    """Area under the risk–coverage curve: the mean, over votes, of the error rate among votes at least as confident."""
    auroc: float
    """P(a right vote is more confident than a wrong one), ties counted half; NaN where a class is empty."""

    def __repr__(self) -> str:
        return f"Frontier({len(self.answered):,} points, AUC {self.auc:.4g}, AUROC {self.auroc:.4g})"

    def _repr_html_(self) -> str:
        step = max(1, len(self.answered) // MOST_ROWS)
        columns = {name: column[::-1][::step][:MOST_ROWS] for name, column in self.columns().items()}
        return html_of_columns(repr(self), columns)

    def columns(self) -> dict[str, Any]:
        """One entry per point, by name."""
        return {
            "threshold": self.threshold,
            "answered": self.answered,
            "selective_accuracy": self.selective_accuracy,
        }

    def to_frame(self, library: str | None = None) -> Any:
        """One row per point, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """The frontier of labelled votes.

        Votes of confidence 0 are never answered at any λ ≥ 0, so they make no point; in `aurc` and `auroc` they rank
        last. Where some votes have no label, accuracies are those of the others, down to the last level that has a
        label, and `aurc` and `auroc` are NaN.
        """
        right = np.cumsum(evidence.right[::-1])
        labelled = right + np.cumsum(evidence.wrong[::-1])
        answered = right + np.cumsum(evidence.not_right[::-1])
        accuracy = right / np.maximum(labelled, 1)
        at_level = np.diff(answered, prepend=0)
        levels = evidence.levels[::-1, 0]
        reachable = levels > 0
        if evidence.n_unlabelled:
            reachable &= (labelled > 0) & (np.append(0, labelled[:-1]) < labelled[-1])
        x, y = answered[reachable] / evidence.n, accuracy[reachable]
        auc = _area(x, y)
        width = float(x[-1] - x[0]) if len(x) else 0.0
        normalised = auc / width if width > 0 else float(y[-1]) if len(y) else float("nan")
        aurc = math.nan if evidence.n_unlabelled else float((at_level * (1 - accuracy)).sum() / evidence.n)
        return cls(x, y, levels[reachable], auc, normalised, aurc, auroc(evidence))


def common_auc(frontiers: Sequence[Frontier]) -> list[float]:
    """The mean accuracy of each frontier over the range of yields that all of them reach (linear in between)."""
    if not frontiers:
        raise InvalidValue("common_auc needs at least one frontier")
    if not all(len(f.answered) for f in frontiers):
        raise InvalidValue("a frontier without points (no vote has any confidence) shares no yield with others")
    low = max(float(f.answered[0]) for f in frontiers)
    high = min(float(f.answered[-1]) for f in frontiers)
    if low > high:
        raise InvalidValue(f"the frontiers share no yield: the narrowest range would be [{low:g}, {high:g}]")
    areas = []
    for f in frontiers:
        inside = f.answered[(f.answered > low) & (f.answered < high)]
        x = np.concatenate([[low], inside, [high]])
        y = np.interp(x, f.answered, f.selective_accuracy)
        areas.append(_area(x, y) / (high - low) if high > low else float(y[0]))
    return areas


def _area(x: Floats, y: Floats) -> float:
    return float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())


def auroc(evidence: Evidence) -> float:
    """P(a right one ranks above a wrong one), ties counted half.

    NaN where there is none of one kind, and where some have no label.
    """
    if not evidence.n_right or not evidence.n_wrong or evidence.n_unlabelled:
        return float("nan")
    wrong_below = np.cumsum(evidence.wrong) - evidence.wrong
    # In whole numbers: twice the count of pairs in the right order, ties counted once.
    doubled = int((evidence.right * (2 * wrong_below + evidence.wrong)).sum())
    return doubled / (2 * evidence.n_right * evidence.n_wrong)
