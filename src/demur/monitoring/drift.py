"""Have the keys drifted? A conformal test martingale on online ranks, without any label.

    N       calibration keys and stream keys before this one
    p       (#{larger keys} + u·(#{equal keys} + 1)) / (N + 1), u uniform on [0, 1)

While the stream is exchangeable with the calibration questions, these p-values are independent and uniform, exactly
and with any ties, so every bet on them of mean 1 is fair. The ranks must be online, among the stream so far too:
p-values against the calibration keys alone share those keys, are dependent, and bets on them win without any drift.

Where a policy keeps pools of different sizes apart, a key is ranked among those of its own size, so that sizes may
occur as they like.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from demur.calibration.choices import choices_of
from demur.calibration.guarantee import without_infinity
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats
from demur.monitoring.betting import Stakes, as_count
from demur.monitoring.monitor import BettingMonitor, as_level, take, what_counts
from demur.monitoring.ranks import Key, OnlineRanks, ordered_bytes
from demur.monitoring.uniforms import Uniforms
from demur.policy.policy import Policy
from demur.policy.weighing import refuse_weighted
from demur.voting.votes import Votes

_BETS = ("lower", "higher", "lower", "higher", "lower", "higher", "spread out", "drawn together")
_ALL_SIZES = 0


class DriftMonitor(BettingMonitor):
    """Raises an alarm when keys stop looking like the calibration ones.

    If the stream is exchangeable with the calibration questions, the probability of any alarm, ever, is at most
    `delta`. An alarm says that the keys changed, harmlessly perhaps; no alarm does not say that errors stayed as they
    were, for answers can become wrong while keys stay. Each question counts once: one that is asked again is not a
    new one; and where calibration counted clusters, one question of each. All keys so far are kept: ranks need them.
    """

    kind = "drift"

    def __init__(self, policy: Policy, *, delta: float = 0.01, seed: int = 0) -> None:
        refuse_weighted(
            policy,
            "keys in use are compared with those of calibration, which must be alike",
            "watch with a policy that was calibrated without the shift",
        )
        self.policy, self.delta = policy, as_level(delta)
        self._chosen = max(choices_of(rule.guarantee) for rule in policy.points)
        """From how many ways to vote calibration chose this one: any of them might have been the unlucky one."""
        self.stakes = Stakes(len(_BETS), self._chosen / self.delta)
        self._uniforms = Uniforms(seed)
        self._width = policy.evidence.levels.shape[1]
        self._apart = not policy.strata.by_chance and len(policy.sizes) > 1
        parts = policy.strata.by_size if self._apart else {_ALL_SIZES: policy.evidence}
        self._ranks = {size: OnlineRanks(_keys_of(part)) for size, part in parts.items()}
        self._stream: dict[int, array[float]] = {}
        """The keys of the stream, one after another, by size."""

    @property
    def seed(self) -> int:
        """What breaks ties between keys."""
        return self._uniforms.seed

    @property
    def p_value(self) -> float:
        return min(1.0, self._chosen * super().p_value)

    @property
    def change(self) -> str | None:
        """How keys differ from those before, by the bet that has won most; None before an alarm."""
        stakes = self.stakes.stakes
        return _BETS[stakes.index(max(stakes))] if self.alarm else None

    @property
    def sentence(self) -> str:
        """What it has found, and what that means."""
        if not self.alarm:
            return (
                f"No drift found in {self.n} keys (p = {self.p_value:.3g}, alarm at {self.delta:g}). "
                f"This says nothing of errors that leave the keys as they were.{what_counts(self.policy)}"
            )
        return (
            f"Keys have drifted: alarm at key {self.alarm_at} of {self.n} (p = {self.p_value:.3g}), they lie "
            f"{self.change}. The promise no longer holds for such questions; audit them, and calibrate again."
            f"{what_counts(self.policy)}"
        )

    def update(self, keys: Votes | ArrayLike, n_paths: ArrayLike | None = None) -> Self:
        """Take one key, or many in the order they came; or votes, made as the policy's were.

        Where the policy keeps pools of different sizes apart, bare keys need their numbers of paths too.
        """
        if isinstance(keys, Votes):
            self.policy.check(keys)
            n_paths = keys.n_paths
            rows = keys.key
        else:
            rows = self._rows(keys)
        if len(rows) == 1:
            self._take(rows, *self._sizes(n_paths, 1))
        elif len(rows):
            self._take_many(rows, self._sizes(n_paths, len(rows)))
        return self

    def _take(self, row: Floats, size: int) -> None:
        place = self._ranks_of(size, row).add(*ordered_bytes(row))
        draw = self._uniforms[self.stakes.seen]
        p = (place.above + draw * (place.equal + 1)) / (place.among + 1)
        self.stakes.bet(_factors(p))

    def _take_many(self, rows: Floats, sizes: Iterable[int]) -> None:
        """Rows of each size are ranked together; bets are made in the order they came."""
        sizes = np.fromiter(sizes, dtype=np.int64, count=len(rows))
        above, equal, among = np.empty((3, len(rows)), dtype=np.int64)
        for size in np.unique(sizes).tolist():
            own = np.flatnonzero(sizes == size)
            above[own], equal[own], among[own] = self._ranks_of(size, rows[own]).add_many(rows[own])
        p = (above + self._uniforms.some(self.stakes.seen, len(rows)) * (equal + 1)) / (among + 1)
        self.stakes.bet_each(np.column_stack(_factors(p)))

    def _ranks_of(self, size: int, rows: Floats) -> OnlineRanks:
        """The ranks that keys of one size join, which are written down too."""
        self._stream.setdefault(size, array("d")).frombytes(rows.tobytes())
        return self._ranks.setdefault(size, OnlineRanks())

    def _rows(self, keys: ArrayLike) -> Floats:
        try:
            rows = np.asarray(keys, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidValue(f"keys must be numbers, got {keys!r:.60}") from None
        if not rows.size:  # nothing came
            return np.empty((0, self._width))
        if rows.ndim < 2:
            rows = rows.reshape(-1, 1) if self._width == 1 else rows.reshape(1, -1)
        if rows.ndim != 2 or rows.shape[1] != self._width:
            raise InvalidValue(
                f"keys of this policy hold {self._width} number{'s' * (self._width > 1)} each, got an array of shape "
                f"{rows.shape}",
                "give the key of votes that the policy made",
            )
        usual = ((rows[:, 0] >= 0) & (rows[:, 0] <= 1)) & (rows < math.inf).all(axis=1)
        if not usual.all():
            shown = tuple(rows[usual.argmin()].tolist())
            raise InvalidValue(f"a key must begin with a confidence in [0, 1] and hold no NaN, got {shown}")
        return rows

    def _sizes(self, n_paths: ArrayLike | None, rows: int) -> Iterable[int]:
        if not self._apart:
            return repeat(_ALL_SIZES, rows)
        if n_paths is None:
            raise InvalidValue(
                f"this policy keeps pools of {self.policy.told_sizes} paths apart, and keys come without sizes",
                "give {n_paths} with the keys",
            )
        sizes = np.atleast_1d(np.asarray(n_paths))
        if sizes.shape != (rows,):
            raise InvalidValue(f"n_paths must hold one size per key, {rows} of them, got shape {sizes.shape}")
        return [as_count(size, "n_paths") for size in sizes.tolist()]

    def state(self) -> dict[str, Any]:
        keys = {
            str(size): [without_infinity(key) for key in np.array(rows).reshape(-1, self._width).tolist()]
            for size, rows in self._stream.items()
        }
        return {"delta": self.delta, "seed": self.seed, "stakes": self.stakes.document(), "keys": keys}

    @classmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        delta, seed, stakes, keys = take(state, "delta", "seed", "stakes", "keys")
        monitor = cls(policy, delta=delta, seed=seed)
        if not isinstance(stakes, dict) or not isinstance(keys, dict):
            raise InvalidValue("its stakes and its keys must be objects")
        monitor.stakes.restore(stakes)
        for name, rows in keys.items():
            size = as_count(int(name) if name.isdecimal() and len(name) < 10 else name, "a number of paths")
            if monitor._apart == (size == _ALL_SIZES):
                raise InvalidValue(
                    f"its keys are of pools of {size} paths, and this policy does not tell them apart so"
                )
            if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
                raise InvalidValue(f"its keys must be lists of numbers, got {rows!r:.60}")
            whole = monitor._rows([[-math.inf if part is None else part for part in row] for row in rows])
            monitor._stream[size] = array("d", whole.ravel())
            monitor._ranks[size] = OnlineRanks([*monitor._ranks.get(size, ()), *ordered_bytes(whole)])
        if sum(map(len, monitor._stream.values())) != monitor.n * monitor._width:
            raise InvalidValue(f"it says that it has seen {monitor.n} keys, and holds another number")
        return monitor


def _factors(p: Any) -> tuple[Any, ...]:
    """What each bet pays at a p-value; each is a density on [0, 1], in the order of `_BETS`. Low keys have large p."""
    tilt = 2 * p - 1
    far = 2 * abs(tilt)
    rest = 1 - p
    return (1 + tilt / 2, 1 - tilt / 2, 2 * p, 2 * rest, 3 * p * p, 3 * rest * rest, far, 2 - far)


def _keys_of(evidence: Evidence) -> list[Key]:
    """Every calibration key, as often as it occurs."""
    return ordered_bytes(np.repeat(evidence.levels, evidence.right + evidence.not_right, axis=0))
