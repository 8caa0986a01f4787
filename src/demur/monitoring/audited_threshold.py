"""A threshold that rises with errors found in audits and falls back without, and is never below the calibrated one.

    λ       the threshold, as a share of the calibration keys; λ₁ the calibrated one
    η       the step
    L       1 where the answer to an audited question is wrong, else 0; 0 for what is not answered
    T       the audits so far, w of them without a label: awaited, or given up
    P       how far behind answers were at most: of a wrong one, the errors that became known from the state that it was
            decided by up to its own, that included; the most over all wrong ones

Each audit moves λ ← max(λ + η(L − α), λ₁) once: at once where it was not answered, else when its label comes. Several
processes decide, each by the state that it last read. A decision holds how many errors that state knew, and so λ need
not be known everywhere at once, nor labels come in any order. On any sequence of questions, labels and delays,

    errors among T audits ≤ αT + (1 − λ₁)/η + (P + w)(1 − α).

*Proof.* λ − λ₁ ≥ η Σ(L − α) over the T − w that were settled, for being held at λ₁ only raises it. λ rises by errors
alone. Take the last of them: its answer was given at λ ≤ 1, for λ₁ ≤ 1, and above that nothing exceeds more than all
keys. From the state that it was decided by up to its own error, that included, at most P errors raised λ, by η(1 − α)
each; all else lowered it, or found it at λ₁. So λ ≤ 1 + Pη(1 − α), now too. The w others are at most 1 each. ∎

Labels only take answers away, so the policy's own promise stays whole. Where audits are marked by chance, which knows
nothing of questions or thresholds, the share of wrong answers among all questions is bounded alike in expectation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from demur.calibration import Level, exact_alpha
from demur.errors import InvalidValue
from demur.evidence.counts import ThresholdKey
from demur.monitoring.betting import as_count
from demur.monitoring.monitor import Monitor, take
from demur.monitoring.moving_threshold import KeyScale, movable_point
from demur.policy.policy import Policy

_COUNTS = (
    "n", "answered", "labelled", "errors", "given_up", "furthest_behind", "earlier_errors", "errors_since",
    "settled_since",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AwaitedLabel:
    """An audited answer whose label is still to come."""

    known_errors: int
    """What `known_errors` was in the state that it was decided by."""
    at: int
    """When it was asked, as whoever entered it counts time."""


class AuditedThreshold(Monitor):
    """Where the threshold of a served policy is, by the audits of all its processes.

    It is about the audits so far: no promise about one question, about the next hundred, or about the answers alone.
    All arithmetic is in whole numbers and fractions, so that its bound holds as it stands.
    """

    kind = "audited threshold"

    def __init__(
        self,
        policy: Policy,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        step: Level = 0.01,
        earlier_errors: int = 0,
    ) -> None:
        """`earlier_errors` are those known before it began anew: answers may still come that were decided by them."""
        self.policy, self.rule = policy, movable_point(policy, alpha, guarantee)
        self.alpha, self.step = self.rule.guarantee.level, exact_alpha(step, "step")
        self._scale = KeyScale(policy.evidence)
        self.start = self._scale.share_of(self.rule.threshold_key)
        """λ₁."""
        self.n = self.answered = self.labelled = self.errors = self.given_up = self.furthest_behind = 0
        self.errors_since = self.settled_since = 0
        """Of the audits since λ was last the calibrated one."""
        self.earlier_errors = as_count(earlier_errors, "earlier_errors")
        self.awaited: dict[str, AwaitedLabel] = {}

    @property
    def known_errors(self) -> int:
        """All errors that were ever known: what a decision by this state is to be entered with."""
        return self.earlier_errors + self.errors

    @property
    def threshold(self) -> Fraction:
        """λ."""
        return self.start + self.step * (self.errors_since - self.alpha * self.settled_since)

    @property
    def raised_key(self) -> ThresholdKey | None:
        """The key that must be exceeded besides the calibrated one; None where that one alone decides."""
        if self.threshold == self.start:
            return None
        key = self._scale.key_at(self.threshold)
        return None if self.threshold < 1 and key == self._scale.key_at(self.start) else key

    @property
    def threshold_key(self) -> ThresholdKey:
        """The key that must be exceeded now."""
        return self.rule.threshold_key if self.raised_key is None else self.raised_key

    @property
    def without_label(self) -> int:
        """w."""
        return len(self.awaited) + self.given_up

    @property
    def most_errors(self) -> Fraction:
        """How many of the audits so far are answered wrongly at most, whatever the missing labels would say."""
        behind = (self.furthest_behind + self.without_label) * (1 - self.alpha)
        return min(Fraction(self.n), self.alpha * self.n + (1 - self.start) / self.step + behind)

    def bound(self) -> float:
        """What the share of audits that are answered wrongly is at most so far."""
        return float(self.most_errors / self.n) if self.n else 1.0

    @property
    def sentence(self) -> str:
        """Where it stands, and what holds."""
        where = (
            "The calibrated threshold is in force."
            if self.raised_key is None
            else f"The threshold is raised: it leaves {min(1.0, float(self.threshold)):.1%} of the calibration keys "
            f"behind, the calibrated one {max(0.0, float(self.start)):.1%}."
        )
        if not self.n:
            return f"{where} No audit has moved it yet."
        most = math.ceil(1000 * self.most_errors / self.n) / 1000
        return (
            f"{where} {self.answered} of {self.n} audits were answered, {self.errors} of {self.labelled} labels wrong, "
            f"{len(self.awaited)} awaited, {self.given_up} given up. At most {most:.1%} of these audits were answered "
            "wrongly, whatever was asked. Nothing is promised of a single question."
        )

    def enter(self, name: str, *, answered: bool, known_errors: int = 0, at: int = 0) -> Self:
        """Take the next audit. What was answered is awaited; what was not moves the threshold at once.

        `known_errors` is that of the state by which it was decided. Where it is not known 0 is true as well, for it
        only makes answers seem further behind.
        """
        known, at = as_count(known_errors, "known_errors"), as_count(at, "at")
        if name in self.awaited:
            raise InvalidValue(f"the label of {name!r:.60} is awaited already", "enter each audit once")
        if known > self.known_errors:
            raise InvalidValue(f"{name!r:.60} was decided by {known} known errors, and there are {self.known_errors}")
        self.n += 1
        self.answered += answered
        if answered:
            self.awaited[name] = AwaitedLabel(known, at)
        else:
            self._move(wrong=False)
        return self

    def update(self, name: str, wrong: bool) -> Self:
        """Take the label of an audit that is awaited; labels may come in any order."""
        if not isinstance(wrong, (bool, np.bool_)):
            raise InvalidValue(f"a label must be True where the answer is wrong, else False, got {wrong!r:.60}")
        decided_by = self._no_longer_awaited(name).known_errors
        self.labelled += 1
        if wrong:
            self.errors += 1
            behind = self.errors - max(0, decided_by - self.earlier_errors)
            self.furthest_behind = max(self.furthest_behind, behind)
        self._move(wrong=bool(wrong))
        return self

    def give_up(self, name: str) -> Self:
        """Await a label no longer: it moves nothing, and may have been an error for ever."""
        self._no_longer_awaited(name)
        self.given_up += 1
        return self

    def _no_longer_awaited(self, name: str) -> AwaitedLabel:
        if name not in self.awaited:
            raise InvalidValue(f"no label of {name!r:.60} is awaited: it was not entered, or its label has come")
        return self.awaited.pop(name)

    def _move(self, *, wrong: bool) -> None:
        self.settled_since += 1
        self.errors_since += wrong
        if self.errors_since <= self.alpha * self.settled_since:
            self.errors_since = self.settled_since = 0

    def state(self) -> dict[str, Any]:
        known = {"alpha": self.rule.alpha, "guarantee": self.rule.guarantee.name, "step": str(self.step)}
        awaited = [[name, label.known_errors, label.at] for name, label in self.awaited.items()]
        return {**known, **{name: getattr(self, name) for name in _COUNTS}, "awaited": awaited}

    @classmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        settings = ("alpha", "guarantee", "step")
        alpha, guarantee, step, *counts, awaited = take(state, *settings, *_COUNTS, "awaited")
        audited = cls(policy, alpha=alpha, guarantee=guarantee, step=step)
        for name, value in zip(_COUNTS, counts, strict=True):
            setattr(audited, name, as_count(value, name))
        if not isinstance(awaited, list) or not all(map(_is_awaited, awaited)):
            raise InvalidValue(f"awaited must be a list of names, known errors and times, got {awaited!r:.60}")
        audited.awaited = {
            name: AwaitedLabel(as_count(known, "known_errors"), as_count(at, "at")) for name, known, at in awaited
        }
        if len(audited.awaited) != len(awaited) or not audited._holds_together():
            raise InvalidValue("its counts do not fit each other")
        return audited

    def _holds_together(self) -> bool:
        """Whether audits can have brought it here."""
        right = self.labelled - self.errors
        excess = self.errors_since - self.alpha * self.settled_since
        return (
            self.labelled + self.without_label == self.answered <= self.n
            and self.errors <= self.labelled
            and (self.errors > 0) == (self.furthest_behind > 0)
            and self.furthest_behind <= self.errors
            and self.errors_since <= self.errors
            and 0 <= self.settled_since - self.errors_since <= right + self.n - self.answered
            and (excess > 0 or self.settled_since == 0)
            and self.threshold <= 1 + self.furthest_behind * self.step * (1 - self.alpha)
            and all(label.known_errors <= self.known_errors for label in self.awaited.values())
        )


def _is_awaited(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str)
