"""What thresholds that follow labels share: where there may be one, and the scale on which it moves.

λ    a share of the calibration keys: a key is answered that exceeds more than a share λ of them
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np

from demur.calibration import Level, Rule, Shifted
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, ThresholdKey, above_all, answer_all
from demur.monitoring.monitor import refuse_groups
from demur.policy.policy import Policy


class KeyScale:
    """The calibration keys in order, from a share of them to a key and back."""

    def __init__(self, evidence: Evidence) -> None:
        self.n, self.width = evidence.n, evidence.levels.shape[1]
        self._keys: list[ThresholdKey] = list(map(tuple, evidence.levels.tolist()))
        self._up_to: list[int] = np.cumsum(evidence.right + evidence.not_right).tolist()
        """How many calibration keys are at most each of those."""

    @property
    def least(self) -> Fraction:
        """The share at which all is answered that has any confidence."""
        return Fraction(-1, 2 * self.n)

    def key_at(self, share: float | Fraction) -> ThresholdKey:
        """The key that must be exceeded: a calibration key, or one that all or none exceed."""
        rank = math.floor(share * self.n) + 1
        if rank <= 0:
            return answer_all(self.width)
        if rank > self.n:
            return above_all(self.width)
        return self._keys[bisect_left(self._up_to, rank)]

    def share_of(self, key: ThresholdKey) -> Fraction:
        """Where λ must be for exactly the keys above one to be answered."""
        if key >= above_all(self.width):
            return Fraction(1)
        position = bisect_right(self._keys, key)
        return Fraction(2 * (self._up_to[position - 1] if position else 0) - 1, 2 * self.n)


def movable_point(policy: Policy, alpha: Level | None, guarantee: str | None) -> Rule:
    """The rule of an operating point; raises where no single threshold can follow labels in its place."""
    rule = policy.point(alpha, guarantee)
    refuse_groups(rule)
    if rule.among_answers:
        raise InvalidValue(
            f"the alpha of the guarantee {rule.guarantee.name} is about the answers given, and a threshold "
            "that follows labels keeps one about all questions",
            "name another as {guarantee}",
        )
    if isinstance(rule.guarantee, Shifted):
        raise InvalidValue(
            "a threshold that follows labels is the same for all questions, and this promise is by their weights",
            "name another as {guarantee}",
        )
    if policy.outliers is not None:
        raise InvalidValue(
            "a threshold that follows labels decides by keys alone, and this policy abstains on outliers as well",
            "watch with a policy that was calibrated without {outlier_level}",
        )
    return rule
