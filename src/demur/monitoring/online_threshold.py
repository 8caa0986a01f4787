"""A threshold that follows the labels, late and few, with a bound on any sequence.

    λ       the threshold, as a share of the calibration keys: a key is answered that exceeds more than a share λ
    η       the step                      ρ    the share of answered questions whose label is asked for
    L̂       err / ρ where the label was asked for, else 0; 0 for what is not answered
    P       the most labels that were awaited at once

After each question, at once where no label is awaited and else when its label comes: λ ← max(λ + η(L̂ − α), least),
where at the least λ all is answered. On any sequence of questions, labels and delays, after T questions with w labels
awaited,

    mean of L̂ ≤ α + [(1 − λ₁)/η + P·(1/ρ − α) + w/ρ] / T.

*Proof.* Clipping only raises λ, so η Σ(L̂ − α) ≤ λ − λ₁ over what was settled. λ rises only by labels; when the last of
them was asked for it was below 1, for nothing exceeds more than all, and the at most P labels awaited then raise it by
η(1/ρ − α) each. The w that are awaited now are at most 1/ρ each. ∎

With ρ = 1 that is the share of questions answered wrongly, without any chance in it. With ρ < 1 it is an estimate of
that share by coins which know nothing of the answer, so the bound holds in expectation, and with probability 1 − δ when
√(log(1/δ) / 2T) / ρ is added (Azuma and Hoeffding: each term has range 1/ρ).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from demur.calibration import Level
from demur.errors import InvalidValue
from demur.evidence.counts import ThresholdKey
from demur.monitoring.betting import as_count
from demur.monitoring.keys import as_key
from demur.monitoring.monitor import Monitor, as_level, take
from demur.monitoring.moving_threshold import KeyScale, movable_point
from demur.monitoring.uniforms import Uniforms
from demur.policy.policy import Policy

_COUNTS = ("n", "answered", "labelled", "errors", "most_awaited")


@dataclass(frozen=True, slots=True)
class OnlineDecision:
    """One question: whether it is answered, and whether its label is wanted."""

    number: int
    """What `update` knows it by."""
    answered: bool
    label_wanted: bool


class OnlineThreshold(Monitor):
    """Answers above a threshold that rises with errors and falls without, so that the long-run rate comes to alpha.

    It starts at the threshold of the policy and decides at first as that would, for pools of all sizes alike. Its bound
    holds on any sequence, shifted or hostile. It is about the mean over the questions so far: no promise about one
    question, about the next hundred, or about the answered ones alone, and not the policy's promise, which it gives up
    with its first step. Labels must come for all questions that they are wanted for, not only where somebody complains.
    """

    kind = "online threshold"

    def __init__(
        self,
        policy: Policy,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        step: float = 0.01,
        labelled_share: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.policy, self.rule = policy, movable_point(policy, alpha, guarantee)
        self.alpha = self.rule.alpha
        self.step = as_level(step, "step")
        self.labelled_share = 1.0 if labelled_share == 1 else as_level(labelled_share, "labelled_share")
        self._coins = Uniforms(seed)
        self._scale = KeyScale(policy.evidence)
        self.start = self.threshold = float(self._scale.share_of(self.rule.threshold_key))
        self.n = self.answered = self.labelled = self.errors = self.most_awaited = 0
        self._awaited: set[int] = set()

    @property
    def awaited(self) -> list[int]:
        """The questions whose labels are still to come."""
        return sorted(self._awaited)

    @property
    def threshold_key(self) -> ThresholdKey:
        """The key that must be exceeded now: a calibration key, or one that all or none exceed."""
        return self._scale.key_at(self.threshold)

    @property
    def estimated_error(self) -> float:
        """The mean of L̂ so far, labels that are awaited counted as right; NaN before the first question."""
        return self.errors / self.labelled_share / self.n if self.n else math.nan

    def bound(self, delta: float | None = None) -> float:
        """What the share of questions answered wrongly is at most so far: surely where all labels are asked for.

        Where only some are, in expectation, or with probability 1 − delta.
        """
        if not self.n:
            return 1.0
        share = self.labelled_share
        slack = (1 - self.start) / self.step + self.most_awaited * (1 / share - self.alpha) + len(self._awaited) / share
        chance = 0.0 if delta is None or share == 1 else math.sqrt(math.log(1 / as_level(delta)) / (2 * self.n)) / share
        return min(1.0, self.alpha + slack / self.n + chance)

    @property
    def sentence(self) -> str:
        """Where it stands, and what holds."""
        sure = "is at most" if self.labelled_share == 1 else "is expected to be at most"
        most = f"{sure} {self.bound():.3g}"
        return (
            f"{self.answered} of {self.n} questions answered, {self.errors} of {self.labelled} labels wrong, "
            f"{len(self._awaited)} awaited. The share answered wrongly so far {most}, whatever came. "
            "Nothing is promised of a single question."
        )

    def decide(self, key: float | Iterable[float]) -> OnlineDecision:
        """Answer or abstain on the next question; where no label is wanted, the threshold moves at once."""
        entries = as_key(key, self._scale.width)
        number = self.n
        answered = entries[0] > 0 and entries > self.threshold_key
        wanted = answered and (self.labelled_share == 1 or self._coins[number] < self.labelled_share)
        self.n += 1
        self.answered += answered
        if wanted:
            self._awaited.add(number)
            self.most_awaited = max(self.most_awaited, len(self._awaited))
        else:
            self._move(0.0)
        return OnlineDecision(number, answered, wanted)

    def update(self, number: int, wrong: bool) -> Self:
        """Take the label of a question that `decide` wanted one for; labels may come in any order."""
        if not isinstance(wrong, (bool, np.bool_)):
            raise InvalidValue(f"a label must be True where the answer is wrong, else False, got {wrong!r:.60}")
        if as_count(number, "number") not in self._awaited:
            raise InvalidValue(
                f"no label is awaited for question {number}: none was wanted, or it has come already",
                "give labels by the number of the decision that wanted them",
            )
        self._awaited.remove(number)
        self.labelled += 1
        self.errors += bool(wrong)
        self._move(bool(wrong) / self.labelled_share)
        return self

    def _move(self, error: float) -> None:
        self.threshold = max(self.threshold + self.step * (error - self.alpha), float(self._scale.least))

    def state(self) -> dict[str, Any]:
        known = {"alpha": self.alpha, "guarantee": self.rule.guarantee.name, "step": self.step}
        drawn = {"labelled_share": self.labelled_share, "seed": self._coins.seed}
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {**known, **drawn, **counts, "threshold": self.threshold, "awaited": self.awaited}

    @classmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        settings = ("alpha", "guarantee", "step", "labelled_share", "seed")
        *values, threshold, awaited = take(state, *settings, *_COUNTS, "threshold", "awaited")
        online = cls(policy, **dict(zip(settings, values[: len(settings)], strict=True)))
        for name, value in zip(_COUNTS, values[len(settings) :], strict=True):
            setattr(online, name, as_count(value, name))
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not abs(threshold) < math.inf:
            raise InvalidValue(f"threshold must be a finite number, got {threshold!r:.60}")
        if not isinstance(awaited, list):
            raise InvalidValue(f"awaited must be a list of question numbers, got {awaited!r:.60}")
        online.threshold = float(threshold)
        online._awaited = {as_count(number, "a question's number") for number in awaited}
        wanted = len(awaited) + online.labelled
        if online.awaited != awaited or not online.errors <= online.labelled <= wanted <= online.answered <= online.n:
            raise InvalidValue("its counts do not fit each other")
        return online
