"""Calibration evidence: how many votes were right and wrong at each distinct level of confidence.

Everything calibration and its diagnostics need is in these counts, and none of it depends on the order of rows.
A level is a key of one number (ν) or of more (ν, then what breaks ties), compared lexicographically; levels ascend.
Votes without a label are counted apart. For thresholds and p-values they are wrong, which can only raise both, so that
what holds of full labels holds of any part of them, however it was chosen; rates speak of labelled votes alone.
Where a judge labelled the votes and people checked a random part of them, the errors it missed there are counted apart.
Where questions count with importance weights, their sums stand beside the counts, which stay what they are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import InvalidValue
from demur.pools.voted_pools import as_labels
from demur.voting.cases import refuse_bad_weights

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
ThresholdKey = tuple[float, ...]
_WEIGHTS = ("right_weight", "not_right_weight", "squared_weight")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Right, wrong and unlabelled votes per distinct level."""

    levels: Floats
    """L × c: the distinct keys, ascending."""
    right: Counts
    wrong: Counts
    unlabelled: Counts | None = None
    """None where all are labelled."""
    right_weight: Floats | None = None
    """The sum of the importance weights of the right votes of each level; None where all count alike."""
    not_right_weight: Floats | None = None
    """The same of the others, which are wrong or may be."""
    squared_weight: Floats | None = None
    """The sum of the squares of all weights of each level: how unequal they are."""
    missed: Evidence | None = field(default=None, kw_only=True)
    """Of labels by a judge: the votes that people checked, `wrong` being those that it calls right and they wrong. None
    where labels are what they say."""

    @classmethod
    def of(
        cls,
        key: ArrayLike,
        correct: ArrayLike,
        known: NDArray[np.bool_] | None = None,
        weights: Floats | None = None,
    ) -> Evidence:
        """Count votes; `key` is a column of confidences, or one key per row (n × c).

        `known` says which of them have a label; whatever `correct` holds for the others is not looked at. `weights`
        are importance weights, one per vote.
        """
        keys = np.asarray(key, dtype=np.float64)
        if keys.ndim == 1:
            keys = keys[:, None]
        if not len(keys):
            raise InvalidValue("calibration needs at least one labelled vote, got none")
        labels = as_labels(correct, len(keys))
        if not ((keys[:, 0] >= 0) & (keys[:, 0] <= 1)).all():
            raise InvalidValue("confidences must lie in [0, 1]")
        partly = known is not None and not known.all()
        if keys.shape[1] == 1 and not partly and weights is None:
            return cls(*_count_one_column(keys[:, 0], labels))
        # Equal keys in the order of their weights: a sum of floats must not depend on the order of rows.
        order = np.lexsort(keys.T[::-1] if weights is None else [weights, *keys.T[::-1]])
        ordered = keys[order]
        starts = _starts(ordered)
        every = np.diff(np.append(starts, len(keys)))
        is_right = labels if known is None or not partly else labels & known
        sums = _weight_sums(weights, is_right, order, starts)
        right = np.add.reduceat(is_right[order].astype(np.int64), starts)
        if known is None or not partly:
            return cls(ordered[starts], right, every - right, None, *sums)
        unlabelled = np.add.reduceat((~known)[order].astype(np.int64), starts)
        return cls(ordered[starts], right, every - right - unlabelled, unlabelled, *sums)

    @classmethod
    def merged(cls, parts: Sequence[Evidence]) -> Evidence:
        """The counts of several, together."""
        if len(parts) == 1:
            return parts[0]
        levels = np.concatenate([part.levels for part in parts])
        order = np.lexsort(levels.T[::-1])
        levels = levels[order]
        starts = _starts(levels)
        right, wrong, not_right = (
            np.add.reduceat(np.concatenate([getattr(part, name) for part in parts])[order], starts)
            for name in ("right", "wrong", "not_right")
        )
        partly = any(part.unlabelled is not None for part in parts)
        sums = (_merged_weights([getattr(part, name) for part in parts], order, starts) for name in _WEIGHTS)
        return cls(levels[starts], right, wrong, not_right - wrong if partly else None, *sums)

    @cached_property
    def n(self) -> int:
        """All votes, labelled or not."""
        return self.n_right + int(self.not_right.sum())

    @cached_property
    def n_right(self) -> int:
        return int(self.right.sum())

    @cached_property
    def n_wrong(self) -> int:
        return int(self.wrong.sum())

    @cached_property
    def n_unlabelled(self) -> int:
        return 0 if self.unlabelled is None else int(self.unlabelled.sum())

    @property
    def weighted(self) -> bool:
        """Whether its votes count with importance weights."""
        return self.not_right_weight is not None

    @property
    def total_weight(self) -> float:
        """What all votes weigh together; how many they are, where all count alike."""
        if self.right_weight is None or self.not_right_weight is None:
            return float(self.n)
        return float(self.right_weight.sum() + self.not_right_weight.sum())

    @property
    def effective_size(self) -> float:
        """(Σω)² / Σω²: about so many votes that all count alike would say as much; n where they do."""
        if self.squared_weight is None or not (squares := float(self.squared_weight.sum())):
            return 0.0 if self.weighted else float(self.n)
        return self.total_weight**2 / squares

    @property
    def not_right(self) -> Counts:
        """What thresholds are made of: wrong votes, and those that may be."""
        return self.wrong if self.unlabelled is None else self.wrong + self.unlabelled

    @property
    def vote_accuracy(self) -> float:
        """p_v; NaN where some votes have no label, for those that have one need not be like the others, and where
        labels are those of a judge.
        """
        return math.nan if self.n_unlabelled or self.missed is not None else self.n_right / self.n

    @property
    def confident_wrong(self) -> float:
        """P(wrong, ν > 0): no more than these can be answered wrongly, for votes without confidence never are."""
        return int(self.not_right[self.levels[:, 0] > 0].sum()) / self.n

    @cached_property
    def by_confidence(self) -> Evidence:
        """The same counts by confidence alone, tie-breaks summed out."""
        if self.levels.shape[1] == 1:
            return self
        nu = self.levels[:, 0]
        starts = np.flatnonzero(np.concatenate([[True], nu[1:] != nu[:-1]]))
        right, wrong = (np.add.reduceat(counts, starts) for counts in (self.right, self.wrong))
        unlabelled, *sums = (
            None if column is None else np.add.reduceat(column, starts)
            for column in (self.unlabelled, *(getattr(self, name) for name in _WEIGHTS))
        )
        return Evidence(self.levels[starts, :1], right, wrong, unlabelled, *sums)

    @cached_property
    def labelled(self) -> Evidence:
        """The labelled votes alone, which need not be like the others; itself where all are."""
        if self.unlabelled is None:
            return self
        some = self.right + self.wrong > 0
        return Evidence(self.levels[some], self.right[some], self.wrong[some])

    def threshold(self, k: int) -> ThresholdKey:
        """The k-th largest key among votes that are not known to be right; the key that nothing exceeds for k = 0, 0
        for fewer than k.
        """
        width = self.levels.shape[1]
        if k <= 0:
            return above_all(width)
        position = int(np.searchsorted(np.cumsum(self.not_right[::-1]), k))
        # A vote without confidence is never answered, whatever breaks its ties.
        if position == len(self.levels) or self.levels[-1 - position, 0] == 0:
            return answer_all(width)
        return tuple(self.levels[-1 - position].tolist())

    def above(self, threshold: ThresholdKey) -> tuple[int, int]:
        """How many right and wrong votes are answered at this threshold (strict >); unlabelled ones count as wrong."""
        over = exceeds(self.levels, threshold)
        return int(self.right[over].sum()), int(self.not_right[over].sum())

    def unlabelled_above(self, threshold: ThresholdKey) -> int:
        """How many votes without a label are answered at this threshold."""
        return 0 if self.unlabelled is None else int(self.unlabelled[exceeds(self.levels, threshold)].sum())

    def wrong_at_least(self, key: ArrayLike) -> Counts:
        """For each key, how many votes that are not known to be right are at least as large."""
        keys = np.asarray(key, dtype=np.float64).reshape(-1, self.levels.shape[1])
        return np.asarray(or_above(self.not_right)[levels_below(self.levels, keys)], dtype=np.int64)

    @cached_property
    def _lookup(self) -> tuple[list[ThresholdKey], list[int]]:
        """The levels as tuples, and how many wrong votes lie at each or above, for one key at a time."""
        return list(map(tuple, self.levels.tolist())), or_above(self.not_right).tolist()

    def p_value_of(self, key: ThresholdKey) -> float:
        """The p-value of one key, without arrays."""
        levels, from_here = self._lookup
        own = (1 + from_here[bisect_left(levels, key)]) / (self.n + 1)
        return own if self.missed is None else min(1.0, 2 * max(own, self.missed.p_value_of(key)))

    def p_value(self, key: ArrayLike) -> Floats:
        """The conformal p-value (1 + #{wrong, at least as confident}) / (n + 1) of each key.

        Of labels by a judge: twice the larger of that among all votes and that of missed errors among checked ones.
        """
        own = np.asarray((1 + self.wrong_at_least(key)) / (self.n + 1))
        return own if self.missed is None else np.minimum(1.0, 2 * np.maximum(own, self.missed.p_value(key)))


def _weight_sums(
    weights: Floats | None, right: NDArray[np.bool_], order: NDArray[np.intp], starts: NDArray[np.intp]
) -> tuple[Floats, ...]:
    """The weights of right and of other votes, and their squares, summed by level; nothing where there are none."""
    if weights is None:
        return ()
    if weights.shape != right.shape:
        raise InvalidValue(f"weights must hold one number per vote, {len(right)} of them, got shape {weights.shape}")
    refuse_bad_weights(weights)
    columns = (np.where(right, weights, 0.0), np.where(right, 0.0, weights), weights**2)
    return tuple(np.add.reduceat(column[order], starts) for column in columns)


def _merged_weights(
    columns: Sequence[Floats | None], order: NDArray[np.intp], starts: NDArray[np.intp]
) -> Floats | None:
    """Sums of weights of several, together; some must not have weights where others have none."""
    weights = [column for column in columns if column is not None]
    if not weights:
        return None
    if len(weights) < len(columns):
        raise InvalidValue("votes with weights and votes without cannot be counted together")
    return np.asarray(np.add.reduceat(np.concatenate(weights)[order], starts))


def _starts(ordered: Floats) -> NDArray[np.intp]:
    """Where each distinct key begins, in keys that are in order."""
    return np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))


def above_all(width: int) -> ThresholdKey:
    """The threshold that abstains always."""
    return (1.0, *[float("inf")] * (width - 1))


def answer_all(width: int) -> ThresholdKey:
    """The threshold that answers wherever there is any confidence at all."""
    return (0.0, *[float("inf")] * (width - 1))


def or_above(counts: Counts) -> Counts:
    """How many lie at each level or above it, and behind the last level none."""
    return np.append(np.cumsum(counts[::-1])[::-1], 0)


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
    packed = confidence.view(np.int64) << 1  # the sign of −0.0 falls off
    packed |= labels
    packed.sort()
    starts = np.flatnonzero(np.concatenate([[True], (packed[1:] ^ packed[:-1]) > 1]))  # other than in the label
    levels = (packed[starts] >> 1).view(np.float64)[:, None]
    packed &= 1
    right = np.add.reduceat(packed, starts)
    del packed  # a million votes are eight megabytes a column: let go of each as soon as it has served
    return levels, right, np.diff(starts, append=len(confidence)) - right
