"""The frontier with its bounds: what each alpha would bring, where all of them are promised together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.calibration import Level, Rule, Simultaneous, forecast
from demur.errors import InvalidValue
from demur.policy.points import held_at_once
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns

if TYPE_CHECKING:
    from demur.policy.policy import Policy

_MOST_ROWS = 200
_CUT = 10**6
"""Bounds are shown as alphas with six decimals, rounded up."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """One row per alpha, ascending: any of them may be chosen after seeing all."""

    rules: tuple[Rule, ...]
    rows: dict[str, list[Any]]
    promise: str

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"Bounds({len(self)} alphas from {self.rules[0].alpha:g} to {self.rules[-1].alpha:g})"

    def _repr_html_(self) -> str:
        return html_of_columns(repr(self), self.rows, note=self.promise)

    def columns(self) -> dict[str, list[Any]]:
        """By name: alpha, the threshold and, in calibration, the yield, what was right of it, and the errors."""
        return self.rows

    def to_frame(self, library: str | None = None) -> Any:
        """One row per alpha, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)


def bounds_of(policy: Policy, alphas: Sequence[Level] | None) -> Bounds:
    """See `Policy.bounds`."""
    held = held_at_once(policy)
    if held is None:
        raise InvalidValue(
            "this policy promises each alpha by itself, so none may be chosen by what it would bring",
            "calibrate with Simultaneous as {guarantee}",
        )
    wanted = list(alphas) if alphas is not None else _steps(policy, held)
    if not wanted:
        raise InvalidValue("give at least one alpha")
    rules = tuple(policy.point(alpha, held.name) for alpha in wanted)
    told = [forecast(policy.strata, rule) for rule in rules]
    rows = {
        "alpha": [rule.alpha for rule in rules],
        "threshold": [rule.threshold for rule in rules],
        "answered": [one.answered for one in told],
        "selective_accuracy": [one.selective_accuracy for one in told],
        "confident_error": [one.confident_error for one in told],
    }
    promise = held.promise(policy.n, policy.unit).partition("; at this threshold")[0]
    return Bounds(rules, rows, f"{promise}. Which sets those are cannot be known.")


def _steps(policy: Policy, held: Simultaneous) -> list[Fraction]:
    """The alphas at which calibration allows one error more, until everything is answered; some of them if many."""
    band, wrong = held.band(policy.n), policy.evidence.n - policy.evidence.n_right
    last = int(np.searchsorted(band.looks, min(wrong + 1, policy.n)))
    places = np.unique(np.linspace(0, last, min(last + 1, _MOST_ROWS)).round().astype(int))
    rounded = [Fraction(int(np.ceil(bound * _CUT)), _CUT) for bound in band.bounds[places].tolist()]
    return sorted({alpha for alpha in rounded if alpha < 1})
