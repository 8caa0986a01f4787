"""Which vote to label next: from the top down, until no label can move a threshold any more.

    λ̂    the k-th largest key among wrong votes: what full labels give
    λ̃    the same, with every vote that has no label as wrong: never below λ̂, so its promise holds at any moment
    τ    a threshold as the number of its level, counted from the top: levels before it are answered

Votes below λ̂ need no label. Labels in descending order, until k errors are found, give λ̂ itself; whoever stops before,
or skips some, has λ̃, and answers less. The order is that of the calibrated key, ties included: labels of the least
confident votes change nothing (theory, m).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.down_to import DownTo
from demur.calibration.grouped import POOLED, Grouped, refuse_without_groups
from demur.calibration.guarantee import Guarantee, RankGuarantee
from demur.calibration.partial_labels import refuse_unranked, without_groups
from demur.errors import InvalidValue
from demur.evidence.counts import Floats, exceeds
from demur.pools.voted_pools import VotedPools, as_part_of_labels
from demur.records import Groups
from demur.voting.cases import Cases

_OPEN, _RIGHT, _WRONG, _SKIPPED = range(4)
_PRIOR_WRONG, _PRIOR = 1.0, 8.0
"""An error among eight votes: what is guessed of the next ones while little is seen."""
_RECENT = 30


@dataclass(frozen=True)
class LabelProgress:
    """How far the labels of one guarantee are."""

    alpha: float
    guarantee: str
    errors_to_find: int
    """Wrong votes that must still be found for the threshold of full labels; 0 where it is there."""
    answered: float
    """The yield of a policy that is calibrated now, on the calibration questions."""
    labels_to_go: int
    """About how many labels it takes to get there, by the rate of errors among the last labels."""
    feasible: bool
    """False where the votes are too few for the promise, whatever their labels."""


class LabelQueue:
    """Votes in the order in which their labels are of use, and what is known of them. Rows are those of the votes.

    Rows that share a cluster or a question are asked about once; votes without any confidence are never answered, and
    need no label.
    """

    def __init__(
        self,
        voted: VotedPools,
        guarantees: Sequence[Guarantee],
        *,
        sizes_by_chance: bool = False,
        rows: NDArray[np.intp] | None = None,
        down_to: DownTo | None = None,
    ) -> None:
        """`rows` are those that were drawn to be checked, `down_to` is where labelling ends: all down to there, or all
        of these, are asked about, and no others.
        """
        refuse_unranked(guarantees)
        unscored = voted.votes.unscored
        scored = np.arange(len(voted)) if unscored is None else np.flatnonzero(~unscored)
        some = voted.scored
        counted = some.in_order if rows is None else some.in_order[np.isin(scored[some.in_order], rows)]
        if not len(counted):
            raise InvalidValue("there are no votes to label")
        cases = some.votes.cases.take(counted)
        if any(isinstance(guarantee, Grouped) for guarantee in guarantees):
            refuse_without_groups(cases)
        order = np.lexsort(cases.keys.T[::-1])[::-1]
        order = order[cases.keys[order, 0] > 0]
        self.down_to = None if down_to is None else down_to.key(cases.keys)
        """The key above which all are asked about, and no others; None where labels decide how many are."""
        asked = order if self.down_to is None else order[exceeds(cases.keys[order], self.down_to)]
        self.rows: NDArray[np.intp] = scored[counted[asked]]
        """What may be asked about, in the order of asking."""
        self.n, self._voted = len(counted), voted
        self._all = rows is not None or down_to is not None
        self._place = {row: place for place, row in enumerate(self.rows.tolist())}
        self._marks = np.full(len(asked), _OPEN, dtype=np.uint8)
        apart = not sizes_by_chance and voted.votes.stopping is None
        ordered = _Ordered(cases, order, _levels(cases.keys[order]), apart=apart)
        self._goals = [_goal_of(guarantee, ordered) for guarantee in guarantees]

    @property
    def next(self) -> int | None:
        """The row whose label is wanted most; None where no label is of use any more, skipped ones aside."""
        if self._all:
            return next(iter(self.wanted), None)
        places = [place for goal in self._goals if (place := goal.next_place()) is not None]
        return int(self.rows[min(places)]) if places else None

    @property
    def wanted(self) -> list[int]:
        """All rows without a label, in the order of asking: what another tool may be given."""
        return [int(row) for row in self.rows[self._marks == _OPEN]]

    @property
    def skipped(self) -> list[int]:
        return [int(row) for row in self.rows[self._marks == _SKIPPED]]

    @property
    def n_labelled(self) -> int:
        return int(((self._marks == _RIGHT) | (self._marks == _WRONG)).sum())

    @property
    def n_wrong(self) -> int:
        return int((self._marks == _WRONG).sum())

    def label(self, row: int, *, right: bool) -> None:
        """Say whether a vote is right; twice on one vote is an error."""
        if self._marks[self._at(row)] in (_RIGHT, _WRONG):
            raise InvalidValue(f"vote {row} has a label already", "take it back first")
        self._mark(row, _RIGHT if right else _WRONG)

    def skip(self, row: int) -> None:
        """Leave a vote without a label: it counts as wrong, and is not asked about again."""
        if self._marks[self._at(row)] in (_RIGHT, _WRONG):
            raise InvalidValue(f"vote {row} has a label already", "take it back first")
        self._mark(row, _SKIPPED)

    def take_back(self, row: int) -> None:
        """Forget what was said of a vote."""
        self._mark(row, _OPEN)

    def labels(self) -> NDArray[Any]:
        """One label per vote, None where there is none."""
        labels = np.full(len(self._voted), None, dtype=object)
        labels[self.rows[self._marks == _RIGHT]] = True
        labels[self.rows[self._marks == _WRONG]] = False
        labels[~self._voted.votes.has_answer] = False
        return labels

    def labelled_votes(self) -> VotedPools:
        """The votes with the labels that were given so far: what `calibrate(…, partly_labelled=True)` takes."""
        labelled = self._voted.with_labels(*as_part_of_labels(self.labels(), len(self._voted)))
        return replace(labelled, down_to=self.down_to)

    def progress(self) -> list[LabelProgress]:
        """How far each guarantee is, in the order in which they were given."""
        return [goal.progress(self.n) for goal in self._goals]

    def _at(self, row: int) -> int:
        if row not in self._place:
            raise InvalidValue(f"vote {row} is not in the queue: it does not count, or has no confidence")
        return self._place[row]

    def _mark(self, row: int, mark: int) -> None:
        place = self._at(row)
        self._marks[place] = mark
        for goal in self._goals:
            goal.mark(place, mark)


def _levels(ordered: Floats) -> NDArray[np.intp]:
    """The number of each key's level, counted from the top, of keys that descend."""
    if not len(ordered):
        return np.zeros(0, dtype=np.intp)
    return np.cumsum(np.append(False, (ordered[1:] != ordered[:-1]).any(axis=1)))


class _Count:
    """One order statistic: the k-th largest key that is not known to be right, among some of the votes."""

    def __init__(self, places: NDArray[np.intp], level: NDArray[np.intp], k: int) -> None:
        self.k, self.places = k, places
        self.level = level[places]
        self.marks = np.full(len(places), _OPEN, dtype=np.uint8)
        self._last, self._not_right = min(k, len(places)) - 1, min(k, len(places))
        self._behind = int(level[-1]) + 1 if len(level) else 0

    @property
    def threshold(self) -> int:
        """τ: 0 where nothing is answered, one behind the last level where everything is."""
        if self.k == 0:
            return 0
        return int(self.level[self._last]) if self._not_right == self.k else self._behind

    def mark(self, place: int, mark: int) -> None:
        position = int(np.searchsorted(self.places, place))
        if position == len(self.places) or self.places[position] != place:
            return
        change = int(self.marks[position] == _RIGHT) - int(mark == _RIGHT)
        self.marks[position] = mark
        if position > self._last or not change:
            return
        self._not_right += change
        while self._not_right < self.k and self._last + 1 < len(self.places):
            self._last += 1
            self._not_right += int(self.marks[self._last] != _RIGHT)
        while self._not_right > self.k or (self._not_right == self.k and self.marks[self._last] == _RIGHT):
            self._not_right -= int(self.marks[self._last] != _RIGHT)
            self._last -= 1

    @property
    def _head(self) -> NDArray[np.uint8]:
        """The marks of what is as large as the threshold or larger."""
        if self.k == 0 or self._not_right < self.k:
            return self.marks[:0]
        return self.marks[: int(np.searchsorted(self.level, self.level[self._last], side="right"))]

    def errors_to_find(self) -> int:
        """How many wrong votes are lacking for a threshold that no label can lower."""
        head = self._head
        if not len(head):
            return 0
        found = int(np.count_nonzero(head >= _WRONG))
        return max(0, self.k - found) if np.count_nonzero(head == _OPEN) else 0

    def next_place(self) -> int | None:
        """The first vote that may lower the threshold if it is right."""
        return int(self.places[np.argmax(self.marks == _OPEN)]) if self.errors_to_find() else None

    def labels_to_go(self) -> float:
        """By the rate of errors among the lower half of the labels, and some of the upper while there are few."""
        errors = self.errors_to_find()
        if not errors:
            return 0.0
        said = self.marks[(self.marks == _RIGHT) | (self.marks == _WRONG)]
        last = said[-max(len(said) // 2, _RECENT) :]
        rate = (np.count_nonzero(last == _WRONG) + _PRIOR_WRONG) / (len(last) + _PRIOR)
        return min(errors / rate, float(np.count_nonzero(self.marks == _OPEN)))


@dataclass(frozen=True)
class _Ordered:
    """The votes that count, and those of them that may be asked about from the top down."""

    cases: Cases
    order: NDArray[np.intp]
    level: NDArray[np.intp]
    apart: bool
    """Whether each pool size has to pass by itself."""

    def counts(self, guarantee: RankGuarantee, member: NDArray[np.bool_]) -> _Counts:
        """One order statistic of some votes and, where they differ in size, one of each size that is large enough."""
        sizes, place = self.cases.n_paths, np.flatnonzero(member[self.order])
        pooled = _Count(place, self.level, guarantee.law(int(member.sum())).k)
        numbers = {size: int((sizes[member] == size).sum()) for size in np.unique(sizes[member]).tolist()}
        if not self.apart or len(numbers) == 1:
            return _Counts(pooled, None)
        own = {
            size: _Count(place[sizes[self.order[place]] == size], self.level, guarantee.law(n).k)
            for size, n in numbers.items()
            if n >= guarantee.n_needed()
        }
        return _Counts(pooled, own)


@dataclass(frozen=True)
class _Counts:
    """A count among some votes and, where each pool size has to pass by itself, one of each size."""

    pooled: _Count
    own: dict[int, _Count] | None

    def mark(self, place: int, mark: int) -> None:
        for count in (self.pooled, *(self.own or {}).values()):
            count.mark(place, mark)

    def threshold(self, size: int) -> int:
        """τ of a pool size."""
        if self.own is None:
            return self.pooled.threshold
        return min(self.pooled.threshold, self.own[size].threshold) if size in self.own else 0

    def active(self) -> list[_Count]:
        """The counts whose thresholds decide, of which a size takes the larger: the others need no labels."""
        if self.own is None:
            return [self.pooled]
        bound, own = self.pooled.threshold, self.own.values()
        deciding = [count for count in own if count.threshold <= bound]
        return deciding + ([self.pooled] if any(bound <= count.threshold for count in own) else [])

    def labels_to_go(self) -> float:
        active = self.active()
        own = sum(count.labels_to_go() for count in active if count is not self.pooled)
        return max(own, self.pooled.labels_to_go() if self.pooled in active else 0.0)

    @property
    def feasible(self) -> bool:
        return any(count.k > 0 for count in ([self.pooled] if self.own is None else self.own.values()))


@dataclass(frozen=True)
class _Goal:
    """One guarantee: counts among all votes, or among those of each group."""

    guarantee: Guarantee
    parts: list[_Counts]
    strata: list[tuple[NDArray[np.intp], list[_Counts], int]]
    """Levels of the votes that pass by the same counts, those counts, and their size."""

    def mark(self, place: int, mark: int) -> None:
        for counts in self.parts:
            counts.mark(place, mark)

    def next_place(self) -> int | None:
        counts = [count for part in self.parts for count in part.active()]
        return min((place for count in counts if (place := count.next_place()) is not None), default=None)

    def progress(self, n: int) -> LabelProgress:
        answered = 0
        for level, counts, size in self.strata:
            bound = min((part.threshold(size) for part in counts), default=0)
            answered += int(np.searchsorted(level, bound, side="left"))
        return LabelProgress(
            alpha=self.guarantee.alpha,
            guarantee=self.guarantee.name,
            errors_to_find=sum(
                max((count.errors_to_find() for count in part.active()), default=0) for part in self.parts
            ),
            answered=answered / n,
            labels_to_go=round(sum(part.labels_to_go() for part in self.parts)),
            feasible=any(part.feasible for part in self.parts),
        )


def _goal_of(guarantee: Guarantee, ordered: _Ordered) -> _Goal:
    """The counts of a guarantee: each group is one more to fill."""
    cases, inner = ordered.cases, without_groups(guarantee)
    assert isinstance(inner, RankGuarantee)
    everyone = np.ones(len(cases), dtype=np.bool_)
    if not isinstance(guarantee, Grouped):
        counts = ordered.counts(inner, everyone)
        return _Goal(guarantee, [counts], _strata(ordered, {(): everyone}, lambda _: [counts]))
    kinds = {kind: _mask(len(cases), rows) for kind, rows in cases.rows_by_groups().items()}
    members: dict[str, NDArray[np.bool_]] = {}
    for kind, mask in kinds.items():
        for name in kind:
            members[name] = members.get(name, False) | mask
    large = {name: mask for name, mask in sorted(members.items()) if mask.sum() >= guarantee.n_needed()}
    by_group = {name: ordered.counts(inner, mask) for name, mask in large.items()}
    pooled = ordered.counts(inner, everyone) if guarantee.fallback == POOLED else None
    never: list[_Counts] = []

    def passed(kind: Groups) -> list[_Counts]:
        counts = [by_group.get(name, pooled) for name in kind] or [pooled]
        there = [one for one in counts if one is not None]
        return there if len(there) == len(counts) else never

    parts = [*by_group.values(), *([] if pooled is None else [pooled])]
    return _Goal(guarantee, parts, _strata(ordered, kinds, passed))


def _strata(
    ordered: _Ordered, kinds: Mapping[Groups, NDArray[np.bool_]], passed: Callable[[Groups], list[_Counts]]
) -> list[tuple[NDArray[np.intp], list[_Counts], int]]:
    """The levels of the votes of each kind and size, with what they must pass."""
    sizes, strata = ordered.cases.n_paths[ordered.order], []
    for kind, mask in kinds.items():
        own = mask[ordered.order]
        strata += [(ordered.level[own & (sizes == size)], passed(kind), size) for size in np.unique(sizes).tolist()]
    return strata


def _mask(n: int, rows: Any) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    mask[rows] = True
    return mask
