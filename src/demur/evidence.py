"""Calibration evidence: how many votes were right and wrong at each distinct level of confidence.

Everything calibration and its diagnostics need is in these counts, and none of it depends on the order of rows.
A level is a key of one number (ν) or of more (ν, then a secondary key), compared lexicographically; levels ascend.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.coding import refuse_mask
from demur.errors import InvalidValue
from demur.exact_sums import Floats

Counts = NDArray[np.int64]
ThresholdKey = tuple[float, ...]


def as_labels(correct: ArrayLike, rows: int) -> NDArray[np.bool_]:
    """Labels as a boolean array with one entry per row."""
    refuse_mask(correct, "correct")
    labels = np.asarray(correct)
    if labels.dtype == object and all(isinstance(label, (bool, np.bool_)) for label in labels.ravel()):
        labels = labels.astype(np.bool_)
    if labels.dtype != np.bool_:
        shown = labels.ravel()[0] if labels.size else "nothing"
        raise InvalidValue(
            f"correct must hold booleans, got {labels.dtype} (such as {shown!r}); "
            "compare the answers with gold to get them: votes.answer == gold"
        )
    if labels.shape != (rows,):
        raise InvalidValue(f"correct must hold one label per vote, {rows} of them, got shape {labels.shape}")
    return labels


@dataclass(frozen=True, eq=False)
class Evidence:
    """Right and wrong votes per distinct level."""

    levels: Floats
    """L × c: the distinct keys, ascending."""
    right: Counts
    wrong: Counts

    @classmethod
    def of(cls, key: ArrayLike, correct: ArrayLike) -> Evidence:
        """Count labelled votes; `key` is a column of confidences, or one key per row (n × c)."""
        keys = np.asarray(key, dtype=np.float64)
        if keys.ndim == 1:
            keys = keys[:, None]
        if not len(keys):
            raise InvalidValue("calibration needs at least one labelled vote, got none")
        labels = as_labels(correct, len(keys))
        if not ((keys[:, 0] >= 0) & (keys[:, 0] <= 1)).all():
            raise InvalidValue("confidences must lie in [0, 1]")
        if keys.shape[1] == 1:
            return cls(*_count_one_column(keys[:, 0], labels))
        order = np.lexsort(keys.T[::-1])
        ordered = keys[order]
        new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
        starts = np.flatnonzero(new)
        right = np.add.reduceat(labels[order].astype(np.int64), starts)
        return cls(ordered[starts], right, np.diff(np.append(starts, len(keys))) - right)

    @cached_property
    def n(self) -> int:
        return self.n_right + self.n_wrong

    @cached_property
    def n_right(self) -> int:
        return int(self.right.sum())

    @cached_property
    def n_wrong(self) -> int:
        return int(self.wrong.sum())

    @property
    def vote_accuracy(self) -> float:
        """p_v."""
        return self.n_right / self.n

    @cached_property
    def by_confidence(self) -> Evidence:
        """The same counts by confidence alone, secondary keys summed out."""
        if self.levels.shape[1] == 1:
            return self
        nu = self.levels[:, 0]
        starts = np.flatnonzero(np.concatenate([[True], nu[1:] != nu[:-1]]))
        return Evidence(
            self.levels[starts, :1], np.add.reduceat(self.right, starts), np.add.reduceat(self.wrong, starts)
        )

    def threshold(self, k: int) -> ThresholdKey:
        """The k-th largest key among wrong votes; the key that nothing exceeds for k = 0, 0 for fewer than k."""
        width = self.levels.shape[1]
        if k <= 0:
            return above_all(width)
        from_top = np.cumsum(self.wrong[::-1])
        position = int(np.searchsorted(from_top, k))
        if position == len(from_top):
            return answer_all(width)
        level = self.levels[len(from_top) - 1 - position]
        # A vote without confidence is never answered, whatever its secondary key.
        return tuple(level.tolist()) if level[0] > 0 else answer_all(width)

    def above(self, threshold: ThresholdKey) -> tuple[int, int]:
        """How many right and wrong votes are answered at this threshold (strict >)."""
        over = exceeds(self.levels, threshold)
        return int(self.right[over].sum()), int(self.wrong[over].sum())

    def wrong_at_least(self, key: ArrayLike) -> Counts:
        """For each key, how many wrong votes are at least as large."""
        keys = np.asarray(key, dtype=np.float64).reshape(-1, self.levels.shape[1])
        from_here = np.append(np.cumsum(self.wrong[::-1])[::-1], 0)
        return np.asarray(from_here[levels_below(self.levels, keys)], dtype=np.int64)

    def p_value(self, key: ArrayLike) -> Floats:
        """The conformal p-value (1 + #{wrong, at least as confident}) / (n + 1) of each key."""
        return np.asarray((1 + self.wrong_at_least(key)) / (self.n + 1))


def above_all(width: int) -> ThresholdKey:
    """The threshold that abstains always."""
    return (1.0, *[float("inf")] * (width - 1))


def answer_all(width: int) -> ThresholdKey:
    """The threshold that answers wherever there is any confidence at all."""
    return (0.0, *[float("inf")] * (width - 1))


def exceeds(keys: Floats, threshold: ThresholdKey) -> NDArray[np.bool_]:
    """key > threshold, lexicographically and strictly, for each row of keys."""
    over = np.zeros(len(keys), dtype=np.bool_)
    level = np.ones(len(keys), dtype=np.bool_)
    for column, bound in zip(keys.T, threshold, strict=True):
        over |= level & (column > bound)
        level &= column == bound
    return over


def levels_below(levels: Floats, keys: Floats) -> NDArray[np.intp]:
    """How many of the ascending levels are smaller than each key."""
    if levels.shape[1] == 1:
        return np.searchsorted(levels[:, 0], keys[:, 0], side="left")
    both = np.concatenate([levels, keys])
    is_level = np.arange(len(both)) < len(levels)
    order = np.lexsort([is_level, *both.T[::-1]])  # among equals, keys come before levels
    passed = np.empty(len(both), dtype=np.intp)
    passed[order] = np.cumsum(is_level[order])
    return passed[len(levels) :]


def _count_one_column(confidence: Floats, labels: NDArray[np.bool_]) -> tuple[Floats, Counts, Counts]:
    # Numbers in [0, 1] order like their bit patterns, whose top two bits are free: with the label in the lowest bit
    # one plain sort puts equal confidences together, and reads many times faster than an argsort.
    packed = (confidence + 0.0).view(np.int64) << 1  # + 0.0 turns −0.0 into 0.0
    packed |= labels
    packed.sort()
    bits = packed >> 1
    starts = np.flatnonzero(np.concatenate([[True], bits[1:] != bits[:-1]]))
    levels = bits[starts].view(np.float64)[:, None]
    del bits  # a million votes are eight megabytes a column: let go of each as soon as it has served
    packed &= 1
    right = np.add.reduceat(packed, starts)
    del packed
    return levels, right, np.diff(starts, append=len(confidence)) - right
