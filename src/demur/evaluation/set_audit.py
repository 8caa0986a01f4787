"""Do answer sets hold what is right as often as promised? Measured on questions that the policy abstains from.

Over calibration sets the chance that a set misses is at most Beta(k, n + 1 − k), k = ⌊(n + 1)α⌋, so the number of
misses among N new abstained questions is at most beta-binomial; ties make them fewer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from demur.calibration.answer_sets import SetRule, right_places
from demur.evaluation.verdicts import CONSISTENT, MORE_THAN_USUAL, verdict_of
from demur.evidence.laws import SumLaw
from demur.policy.decisions import Decisions
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools
from demur.records import OTHER


@dataclass(frozen=True)
class SetAudit:
    """The answer sets of one operating point on labelled questions that it has not seen and abstains from."""

    alpha: float
    """The share of sets that may miss."""
    n: int
    """Abstained questions that have a set."""
    without_set: int
    """Abstained questions for which none is promised."""
    missed: int
    """Sets that hold neither a right answer nor, where no path gave one, OTHER."""
    usual_at_most: int
    """In 95 % of such audits no more sets miss."""
    p_value: float
    """P(at least so many misses) if the promise holds."""
    mean_size: float
    """Answers in a set, on average, OTHER not counted."""
    with_other: int
    """Sets that hold OTHER."""
    verdict: str

    @property
    def coverage(self) -> float:
        """The share of sets that hold what is right; NaN where there are none."""
        return 1 - self.missed / self.n if self.n else float("nan")

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {**vars(self), "coverage": self.coverage}


def audit_sets(decided: Decisions, voted: VotedPools, fresh: Rows, points: int) -> SetAudit | None:
    """The sets of some rows; None where the policy has none, or labels do not tell which answers are right.

    `points` is how many operating points are audited together.
    """
    sets = decided.sets
    if sets is None or not voted.knows_right_answers:
        return None
    abstained = voted.voting(fresh[~decided.answered[fresh]])
    rows = abstained[[sets.cut_of(size) is not None for size in voted.votes.n_paths[abstained].tolist()]]
    sizes = voted.votes.n_paths[rows]
    missed, n = int((~sets.covers(right_places(voted, rows), sizes)).sum()), len(rows)
    # Pools of one cut are one law; where sizes vary by chance, that is all of them.
    together = Counter([0] * n if sets.by_chance else sizes.tolist())
    law = SumLaw(tuple((sets.law_of(size), times) for size, times in sorted(together.items())))
    found = [sets.of(decided.votes[row]) or () for row in rows.tolist()]
    p_value = law.upper_tail(missed, n)
    return SetAudit(
        sets.alpha,
        n,
        len(abstained) - n,
        missed,
        law.usual_at_most(n),
        p_value,
        float(np.mean([sum(one is not OTHER for one in held) for held in found])) if n else float("nan"),
        sum(OTHER in held for held in found),
        _verdict(sets, missed, n, p_value, points),
    )


def _verdict(sets: SetRule, missed: int, n: int, p_value: float, points: int) -> str:
    if not n:
        return "No answer set was promised for any of them."
    told = f"{missed} of {n} answer sets miss (alpha = {sets.alpha:g}, p = {p_value:.3g})"
    word = verdict_of(p_value, points)
    if word == CONSISTENT:
        return f"Consistent with what is promised of answer sets: {told}."
    if word == MORE_THAN_USUAL:
        return f"More answer sets miss than usual, but chance alone does this now and then: {told}."
    return (
        f"Not consistent with what is promised of answer sets: {told}. These questions are probably not exchangeable "
        "with the calibration ones; calibrate again on questions like these."
    )
