"""Each group of questions against its own promise, by its own law.

Groups are judged together: where there are many, one of them has a small p-value by chance, so each is held to its
share of the level. Questions of several groups are counted in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration import GroupedRule, laws_by_group
from demur.evaluation.verdicts import NOT_CONSISTENT, verdict_of
from demur.evidence.laws import AnswerLaw
from demur.evidence.strata import Strata
from demur.voting.cases import Cases

OTHERS = "(others)"
"""How questions are called that are of no group with a threshold of its own."""


@dataclass(frozen=True)
class GroupAudit:
    """Realised rates of one operating point on the new questions of one group."""

    group: str
    n: int
    answered: float
    errors: int
    confident_error: float
    """Of all its questions."""
    selective_accuracy: float
    """NaN where nothing was answered."""
    usual_at_most: float
    """In 95 % of such audits the rate is no higher."""
    p_value: float
    """P(at least so many errors) if the promise for this group holds."""
    verdict: str

    @property
    def consistent(self) -> bool:
        return self.verdict != NOT_CONSISTENT

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"consistent": self.consistent}


def audit_groups(
    rule: GroupedRule,
    evidence: Strata,
    cases: Cases,
    answered: NDArray[np.bool_],
    right: NDArray[np.bool_],
    points: int,
) -> list[GroupAudit]:
    """Every group of new votes, in order, and behind them those of no group that has a threshold of its own."""
    rule.require_groups(cases)
    rows = _rows(rule, cases)
    laws = laws_by_group(rule, evidence, cases.counts())
    audits = []
    for name, own in rows.items():
        law, votes = laws[name]
        n, given, errors = len(own), int(answered[own].sum()), int((answered[own] & ~right[own]).sum())
        judged = given if isinstance(law, AnswerLaw) else votes
        p_value = law.upper_tail(errors, judged)
        audits.append(
            GroupAudit(
                group=OTHERS if name is None else name,
                n=n,
                answered=given / n,
                errors=errors,
                confident_error=errors / n,
                selective_accuracy=(given - errors) / given if given else float("nan"),
                usual_at_most=min(1.0, law.usual_at_most(judged) / n),
                p_value=p_value,
                verdict=verdict_of(p_value, points * len(rows)),
            )
        )
    return audits


def _rows(rule: GroupedRule, cases: Cases) -> dict[str | None, NDArray[np.intp]]:
    """The rows of each group that has a threshold of its own, and under None those of no such group."""
    rows: dict[str | None, list[NDArray[np.intp]]] = {}
    for groups, own in cases.rows_by_groups().items():
        names: list[str | None] = [name for name in groups if name in rule.by_group]
        for name in names or [None]:
            rows.setdefault(name, []).append(np.arange(len(cases))[own])
    in_order = sorted(rows, key=lambda name: (name is None, name or ""))
    return {name: np.concatenate(rows[name]) for name in in_order}
