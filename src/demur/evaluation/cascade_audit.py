"""A cascade on problems that it has not seen: are its wrong answers, of all stages together, as few as promised?

One threshold of rank k and a cascade that shares k among its stages have errors of the same law on new questions, so
the audit of a policy's promise is that of a cascade's: beta-binomial, and only the upper tail speaks against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from demur.errors import CalibrationLeak, InvalidValue
from demur.evaluation.audit import Consistency
from demur.policy.cascade import Cascade
from demur.policy.cascade_forecast import StageForecast
from demur.policy.cascade_problems import matched
from demur.pools.fitted_questions import refuse_fitted_tests
from demur.pools.voted_pools import VotedPools
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns


@dataclass(frozen=True)
class CascadeAudit(Consistency):
    """What a cascade did on labelled questions it has not seen."""

    left_out: int
    """Problems that calibrated it, or belong with one that did."""
    duplicates: int
    """Fresh problems that share a cluster or a question with one that counts."""
    stages: tuple[StageForecast, ...]
    """What became of questions at each stage, as shares of all that were audited."""
    answered: float
    cost: float
    """Per question; a person's part included where that cost is known."""
    expected_answered: float
    expected_cost: float
    error_at_most: float
    """What the expected rate of wrong answers does not exceed."""

    def __repr__(self) -> str:
        return f"CascadeAudit({self.verdict})"

    def _repr_html_(self) -> str:
        return html_of_columns(f"Audit on {self.n:,} questions", self.columns(), note=self.verdict)

    def columns(self) -> dict[str, list[Any]]:
        """One entry per stage, by name."""
        return {part.name: [getattr(stage, part.name) for stage in self.stages] for part in fields(StageForecast)}

    def to_frame(self, library: str | None = None) -> Any:
        """One row per stage, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        names = (
            "n", "left_out", "duplicates", "answered", "cost", "expected_answered", "expected_cost", "error_at_most",
        )  # fmt: skip
        columns = self.columns()
        stages = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        known = super().document()
        known.pop("threshold")
        return {**known, **{name: getattr(self, name) for name in names}, "stages": stages}


def audit_cascade(cascade: Cascade, votes: Sequence[VotedPools], *, drop_seen: bool = False) -> CascadeAudit:
    """Audit a cascade on voted pools of each stage, labelled; later stages may lack what an earlier one answers.

    Where some of the problems calibrated the cascade, that is an error, unless others were held out then, or
    `drop_seen` leaves them out: the others are audited. One of each cluster or question counts.
    """
    if not votes or not all(isinstance(table, VotedPools) for table in votes):
        raise InvalidValue(
            "an audit needs voted pools with labels, one table per stage", "make them with VotedPools.of"
        )
    first = votes[0]
    for stage, table in zip(cascade.stages, votes, strict=False):
        stage.policy.refuse_other_labels(table)
        table.labelled  # noqa: B018 - all must have labels
    seen = first.seen_by(cascade.seen)
    # A later stage may know questions that the first does not.
    for stage, table in zip(cascade.stages, votes, strict=False):
        if cascade.seen.hold_out is None and not drop_seen:
            cascade.refuse_seen(table)
        rows = matched(first, table, (cascade.stages[0].name, stage.name))
        seen |= (rows >= 0) & table.seen_by(cascade.seen)[rows]
    fresh = first.counted[~seen[first.counted]]
    if not len(fresh):
        raise CalibrationLeak(f"all {len(first)} problems calibrated this cascade", "give other problems")
    for stage, table in zip(cascade.stages, votes, strict=False):
        refuse_fitted_tests(table, stage.policy.recipe.gate, None, np.arange(len(table)))
    decided = cascade.decide_votes(votes)
    if (open_ := np.flatnonzero(decided.needs[fresh] >= 0)).size:
        row = int(fresh[open_[0]])
        name = cascade.stages[int(decided.needs[row])].name
        raise InvalidValue(
            f"{open_.size} of {len(fresh)} questions get to stage {name!r} and have no votes there (the first is "
            f"{first.ids[row]!r})",
            "sample them for that stage too: an audit without them would be of the easier ones alone",
        )
    n, stages, left = len(fresh), [], np.ones(len(fresh), dtype=np.bool_)
    for at, stage in enumerate(cascade.stages):
        answers = decided.answered_by[fresh] == at
        rows = decided.rows[at][fresh]
        wrong = 0 if at >= len(votes) else int((~votes[at].labelled[rows[answers]]).sum())
        cost = stage.cost * float(left.mean()) if stage.asked else 0.0
        stages.append(StageForecast(stage.name, float(left.mean()), float(answers.mean()), wrong / n, cost))
        left &= ~answers
    errors = round(sum(stage.confident_error for stage in stages) * n)
    expected, person = cascade.forecast(), cascade.person_cost or 0.0
    return CascadeAudit(
        **vars(Consistency.of(cascade.rule, errors, n, unit=cascade.unit)),
        left_out=int(seen.sum()),
        duplicates=len(first) - int(seen.sum()) - n,
        stages=tuple(stages),
        answered=float(1 - left.mean()),
        cost=sum(stage.cost for stage in stages) + person * float(left.mean()),
        expected_answered=expected.answered,
        expected_cost=expected.cost,
        error_at_most=expected.error_at_most,
    )
