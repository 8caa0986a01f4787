"""Batch selection: of the answers given in one batch, the expected share that is wrong is at most q.

Benjamini–Hochberg on the conformal p-values p(κ) = (1 + #{wrong calibration votes with a key ≥ κ}) / (n + 1) of the
N votes of a batch: with p₍₁₎ ≤ … ≤ p₍N₎ in order, the cut-off is the largest p₍r₎ ≤ q·r/N, and whatever is no larger is
answered. E[wrong / answered] ≤ q, no answers counting as 0, where batch and calibration are exchangeable: take a wrong
vote of the batch that is answered; given the bag of it and the calibration votes, its rank among them is uniform, and
the number of answers is the same whichever of them it is (Jin and Candès 2023). It stays so where votes must pass among
those with their own number of paths too.

A batch of one is the marginal guarantee at q. Within a batch, the cut-off is a threshold like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from demur.calibration.guarantee import CLUSTER, QUESTION, Count, RankGuarantee, shown
from demur.calibration.marginal import Marginal
from demur.evidence.counts import Floats

_CLOSE = 1e-9


def cut_off(p_values: Floats, level: Fraction, n: int) -> Fraction:
    """The largest p₍r₎ ≤ q·r/N of N p-values, which are fractions with denominators up to n + 1; 0 where none is."""
    ordered, batch = np.sort(p_values), len(p_values)
    near = ordered <= np.arange(1, batch + 1) * (float(level) * (1 + _CLOSE) / max(batch, 1))
    for r in 1 + np.flatnonzero(near)[::-1]:
        # Equality is common, and passes: settled in whole numbers, for floats may say either.
        exact = Fraction(float(ordered[r - 1])).limit_denominator(n + 1)
        if exact * batch <= level * int(r):
            return exact
    return Fraction(0)


@dataclass(frozen=True)
class BatchSelection(RankGuarantee):
    """Of the answers given in one batch the expected share wrong is at most alpha."""

    cut_off: Fraction
    """The largest p-value that is answered."""
    batch: int
    """How many votes were selected from."""
    in_part: bool = False
    """Whether labels go down to a key that was fixed before the first of them, rather than all the way."""
    name: ClassVar[str] = "batch_selection"

    def rank(self, n: int) -> int:
        return int((n + 1) * self.cut_off)

    def n_needed(self) -> int:
        """The n from which a batch can be answered at all, if all of it is."""
        return Marginal(self.level).n_needed()  # type: ignore[arg-type]

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        each = "" if unit == QUESTION else ", one question of each cluster,"
        many = f"{self.batch} {QUESTION if unit == QUESTION else CLUSTER}s"
        fixed = " and the key at which labelling ended was fixed before the first label" if self.in_part else ""
        return (
            f"Of the answers given in this batch of {many}{each} the expected share that is wrong is at most "
            f"{shown(self.level)}. That holds for the whole batch at once, not for one question or a part of it, "
            f"if the batch is exchangeable with the {n} calibration {unit}s{fixed}."
        )
