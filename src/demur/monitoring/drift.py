"""Have the keys drifted? A conformal test martingale on ranks, without any label.

    N       calibration keys and stream keys before this one
    p       (places in higher cells + u·places in its own cell) / (N + 1), u uniform on [0, 1): see `cells`

While the stream is exchangeable with the calibration questions, these p-values are independent and uniform, exactly
and with any ties, so every bet on them of mean 1 is fair. Places count the stream so far too: p-values against the
calibration keys alone share those keys, are dependent, and bets on them win without any drift. Equal keys are told
apart by draws, one for each calibration key and one for each key of the stream.

Where a policy keeps pools of different sizes apart, a key is ranked among those of its own size, so that sizes may
occur as they like.

A part of the traffic will do, if what is in it was decided without regard to the keys: a part of an exchangeable
stream that was chosen so is exchangeable. So will any order that does not depend on the keys, such as that in which
questions arrived; the order in which pools were finished does, where hard questions take longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from demur.calibration.choices import choices_of
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats
from demur.monitoring.betting import Stakes, as_count
from demur.monitoring.cells import Cells, Counts, Key, ordered_bytes
from demur.monitoring.monitor import BettingMonitor, as_level, take, what_counts
from demur.monitoring.uniforms import Uniforms
from demur.policy.policy import Policy
from demur.policy.weighing import refuse_weighted
from demur.voting.votes import Votes

_BETS = ("lower", "higher", "lower", "higher", "lower", "higher", "spread out", "drawn together")
_ALL_SIZES = 0
_LEANS = ("lower", "higher", "spread out", "drawn together")
_ALLOWED = 0.05
"""How far the mean of a lean may be above its mean without a change, before its sum grows."""


class DriftMonitor(BettingMonitor):
    """Raises an alarm when keys stop looking like the calibration ones.

    If the stream is exchangeable with the calibration questions, the probability of any alarm, ever, is at most
    `delta`. An alarm says that the keys changed, harmlessly perhaps; no alarm does not say that errors stayed as they
    were, for answers can become wrong while keys stay. Each question counts once: one that is asked again is not a
    new one; and where calibration counted clusters, one question of each. A part of the traffic will do that was chosen
    without regard to the keys. Where promises are per group it watches all groups together: another mix of them is
    drift to it.
    """

    kind = "drift"

    def __init__(self, policy: Policy, *, delta: float = 0.01, seed: int = 0) -> None:
        refuse_weighted(
            policy,
            "keys in use are compared with those of calibration, which must be alike",
            "watch with a policy that was calibrated without the shift",
        )
        self.policy, self.delta = policy, as_level(delta)
        self.chosen = max(choices_of(rule.guarantee) for rule in policy.points)
        self.stakes = Stakes(len(_BETS), self.chosen / self.delta)
        self._sums, self._least = np.zeros(len(_LEANS)), np.zeros(len(_LEANS))
        self._before = np.zeros(len(_LEANS), dtype=np.int64)
        """Of each lean: its sum, the least that it was, and how many keys there were when it last was so."""
        self._uniforms = Uniforms(seed)
        self._width = policy.evidence.levels.shape[1]
        self._apart = not policy.strata.by_chance and len(policy.sizes) > 1
        parts = policy.strata.by_size if self._apart else {_ALL_SIZES: policy.evidence}
        self._cells: dict[int, Cells] = {}
        drawn = 0
        for size, part in parts.items():  # no draw is used twice: sizes must not know of each other's
            self._cells[size] = Cells(self._keys_of(part, drawn))
            drawn += part.n

    @property
    def seed(self) -> int:
        """What breaks ties between keys."""
        return self._uniforms.seed

    @property
    def change(self) -> str | None:
        """How keys differ from those before, by the bet that has won most; None before an alarm."""
        stakes = self.stakes.stakes
        return _BETS[stakes.index(max(stakes))] if self.alarm else None

    @property
    def change_from(self) -> int | None:
        """The first key after the change, as estimated; None before an alarm.

        It comes after the least sum of p − ½ − 0.05 before the alarm, or of what else the keys lean to: the estimate
        of the change that belongs to a CUSUM test.
        """
        return self.starts[self.change] if self.change is not None else None

    @property
    def starts(self) -> dict[str, int]:
        """By what keys may lean to, the key that a change would have begun with; fixed from the alarm on."""
        return dict(zip(_LEANS, (self._before + 1).tolist(), strict=True))

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
            f"{self.change}, probably from key {self.change_from} on. The promise was about questions with keys as "
            f"before; audit these, and calibrate again."
            f"{self._mix}{what_counts(self.policy)}"
        )

    @property
    def _mix(self) -> str:
        """What else an alarm may mean where promises are per group; blank if none is."""
        if not any(rule.needs_groups for rule in self.policy.points):
            return ""
        return " It may be that groups occur in another mix; a promise that each of them has by itself stands then."

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
        sizes, first = self._sizes(n_paths, len(rows)), self.stakes.seen
        draws = self._uniforms.some(2 * first, 2 * len(rows))
        keys = ordered_bytes(np.column_stack([rows, draws[::2]]))
        if len(keys) == 1:
            self._take(keys[0], float(draws[1]), *sizes)
        elif keys:
            self._take_many(keys, draws[1::2], np.fromiter(sizes, dtype=np.int64, count=len(rows)))
        return self

    def _take(self, key: Key, draw: float, size: int) -> None:
        cells = self._cells.get(size)
        if cells is None:  # a size that calibration never saw: nothing to compare with
            self.stakes.bet((1.0,) * len(_BETS))
            return
        place = cells.add(key)
        p = (place.above + draw * place.within) / place.among
        if not self.alarm:
            self._lean(np.array([p]), np.array([self.n + 1]))
        self.stakes.bet(_factors(p))

    def _take_many(self, keys: Sequence[Key], draws: Floats, sizes: Counts) -> None:
        """Keys of each size are placed together; bets are made in the order they came."""
        factors, first, watching = np.ones((len(keys), len(_BETS))), self.n + 1, not self.alarm
        p = np.full(len(keys), np.nan)
        for size in np.unique(sizes).tolist():
            if (cells := self._cells.get(size)) is not None:
                own = np.flatnonzero(sizes == size)
                alone = len(own) == len(keys)
                above, within, among = cells.add_many(keys if alone else [keys[row] for row in own.tolist()])
                p[own] = (above + draws[own] * within) / among
                factors[own] = np.column_stack(_factors(p[own]))
        self.stakes.bet_each(factors)
        until = len(keys) if self.alarm_at is None else max(0, self.alarm_at - first + 1)
        there = np.flatnonzero(~np.isnan(p[:until]))
        if watching and len(there):
            self._lean(p[there], there + first)

    def _lean(self, p: Floats, numbers: Counts) -> None:
        """Add up how far keys of these numbers lean each way: where a sum is least, a change may have begun."""
        far = abs(2 * p - 1)
        leans = np.array([p, 1 - p, far, 1 - far]) - (0.5 + _ALLOWED)
        sums = np.cumsum(np.column_stack([self._sums, leans]), axis=1)[:, 1:]
        least = np.minimum.accumulate(np.column_stack([self._least, sums]), axis=1)
        fell = sums <= least[:, :-1]
        last = len(p) - 1 - fell[:, ::-1].argmax(axis=1)
        self._before = np.where(fell.any(axis=1), numbers[last], self._before)
        self._sums, self._least = sums[:, -1], least[:, -1]

    def _keys_of(self, evidence: Evidence, drawn: int) -> Floats:
        """Every calibration key, as often as it occurs, and the draw that tells it from its equals."""
        rows = np.repeat(evidence.levels, evidence.right + evidence.not_right, axis=0)
        return np.column_stack([rows, self._uniforms.some(-drawn - len(rows), len(rows))[::-1]])

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
        cells = {str(size): cells.counts for size, cells in self._cells.items()}
        leans = [
            list(row) for row in zip(*(each.tolist() for each in (self._sums, self._least, self._before)), strict=True)
        ]
        known = {"delta": self.delta, "seed": self.seed, "stakes": self.stakes.document()}
        return {**known, "cells": cells, "leans": leans}

    @classmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        state = {"leans": None, **state}  # files from before have none
        delta, seed, stakes, cells, leans = take(state, "delta", "seed", "stakes", "cells", "leans")
        monitor = cls(policy, delta=delta, seed=seed)
        if not isinstance(stakes, dict) or not isinstance(cells, dict):
            raise InvalidValue("its stakes and its cells must be objects")
        monitor.stakes.restore(stakes)
        sizes = sorted(map(str, monitor._cells))
        if sorted(cells) != sizes:
            raise InvalidValue(
                f"its cells must be those of pools of {', '.join(sizes)} paths, got {sorted(cells)!r:.60}"
            )
        for size, own in monitor._cells.items():
            own.restore(cells[str(size)])
        counted = sum(sum(own.counts) for own in monitor._cells.values())
        if counted > monitor.n or (counted < monitor.n and not monitor._apart):
            raise InvalidValue(f"it says that it has seen {monitor.n} keys, and its cells hold {counted}")
        monitor._restore_leans(leans)
        return monitor

    def _restore_leans(self, leans: Any) -> None:
        """Where they are not known, a change is looked for from here on."""
        if leans is None:
            self._before = np.full(len(_LEANS), self.n if self.alarm_at is None else self.alarm_at)
            return
        try:
            table = np.asarray(leans, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.shape != (len(_LEANS), 3) or not np.isfinite(table).all() or (table[:, 1] > table[:, 0]).any():
            raise InvalidValue(f"its leans must be {len(_LEANS)} sums, least sums and counts, got {leans!r:.60}")
        self._sums, self._least, _ = table.T.copy()
        self._before = np.array([as_count(row[2], "the third number of a lean") for row in leans])
        if (self._before > self.n).any():
            raise InvalidValue(f"its leans count more than the {self.n} keys that it has seen")


def _factors(p: Any) -> tuple[Any, ...]:
    """What each bet pays at a p-value, or at each of many; in the order of `_BETS`, each a density on [0, 1].

    Low keys have large p.
    """
    tilt = 2 * p - 1
    far = 2 * abs(tilt)
    rest = 1 - p
    return (1 + tilt / 2, 1 - tilt / 2, 2 * p, 2 * rest, 3 * p * p, 3 * rest * rest, far, 2 - far)
